#!/usr/bin/env bash
# Runs the tests, after making sure that what they need is there. Wheels are put below target/, and
# Debian's packages are installed if the script runs as root. Otherwise one line names what is
# missing and says what to type, before anything that takes long starts.
#
#   ./test.sh               the fast tier, which is `cargo test`
#   ./test.sh all           the fast tier and all parts of e2e, as before a release. A part that
#                           needs an archive of sources runs if a variable names the archive
#   ./test.sh PART..        these parts: tests/parts.txt, docs/TESTING.md ("Parts"); `fast` is the
#                           fast tier
#   ./test.sh --list        names, seconds and descriptions of the parts
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tests/tiers.sh
. tests/tiers.sh

if [ "${1-}" = --list ]; then
    for name in $(parts); do printf '%-12s %4s s  %s\n' "$name" "$(column "$name" seconds)" "$(column "$name" text)"; done
    exit
fi
wanted=("$@")
[ $# -gt 0 ] || wanted=(fast)
# shellcheck disable=SC2207
[ "$*" != all ] || { wanted=(fast $(usual)); without_archive; }
needs=(cc objcopy python3 venv)
hosts=(mpich openmpi)
for name in "${wanted[@]}"; do
    [ "$name" != fast ] || continue
    parts | grep -qxF -- "$name" || fail "$name: no such part of the tests: give names of $(parts | tr '\n' ' ')fast, or only \`all\`"
    # shellcheck disable=SC2207
    needs+=($(column "$name" needs))
    hosts=(mpich openmpi impi)
done
# shellcheck disable=SC2046
need $(printf '%s\n' "${needs[@]}" | awk '!seen[$0]++')
fetched "${hosts[@]}"

failed=()
for name in "${wanted[@]}"; do
    began=$SECONDS
    [ "${#wanted[@]}" = 1 ] || printf '\n== %s\n' "$name"
    # A part runs in a subshell of its own, so that `set -e` holds inside. In a condition it would
    # not.
    set +e
    if [ "$name" = fast ]; then cargo test --locked; else (set -e; part "$name"); fi
    status=$?
    set -e
    [ $status = 0 ] || failed+=("$name")
    echo "$name: $([ $status = 0 ] && echo passed || echo FAILED), $((SECONDS - began)) s"
done
[ ${#failed[@]} -eq 0 ] || fail "these parts failed: ${failed[*]}: see the output above; ./test.sh PART runs one of them again"
