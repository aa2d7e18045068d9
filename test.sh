#!/usr/bin/env bash
# Runs the tests of ddtc. Before that, the script makes sure that everything they need is there: it
# downloads Python wheels with MPI libraries into target/, and installs Debian packages if it runs
# as root. If something is missing that it cannot install, it prints one line that names it and says
# what to type, and ends before anything that takes long starts.
#
#   ./test.sh               runs the fast tier, which is `cargo test`
#   ./test.sh all           runs the fast tier and all parts of e2e, which is done before a release.
#                           A part that needs an archive of sources, a release or an emulator runs
#                           only if an environment variable names it
#   ./test.sh PART..        runs these parts of e2e, which tests/parts.txt and docs/TESTING.md
#                           ("Parts") list. `fast` is the fast tier
#   ./test.sh --list        prints the names, seconds and descriptions of the parts
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
    # Run a part in a subshell of its own, so that a command that fails ends it (`set -e`). If the
    # part were the condition of an `if`, bash would ignore `set -e` in it.
    set +e
    if [ "$name" = fast ]; then cargo test --locked; else (set -e; part "$name"); fi
    status=$?
    set -e
    [ $status = 0 ] || failed+=("$name")
    echo "$name: $([ $status = 0 ] && echo passed || echo FAILED), $((SECONDS - began)) s"
done
[ ${#failed[@]} -eq 0 ] || fail "these parts failed: ${failed[*]}: see the output above; ./test.sh PART runs one of them again"
