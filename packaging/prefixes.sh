#!/usr/bin/env bash
# Makes the archives of installed prefixes that a release has, for every system with glibc 2.28 or
# newer:
#
#   ddtc-VERSION-MACHINE-linux-gnu.tar.gz           what install.sh installs by default
#   ddtc-static-VERSION-MACHINE-linux-gnu.tar.gz    the C library, shared and static
#   ddtc-yaksa-VERSION-MACHINE-linux-gnu.tar.gz     the replacement for yaksa
#
#   packaging/prefixes.sh --out DIR [--target MACHINE]
#
# --target: build for the machine x86_64 or aarch64 instead of this one
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "prefixes.sh: $*" >&2; exit 2; }
usage="packaging/prefixes.sh --out DIR [--target MACHINE]"
out=
machine=
while [ $# -gt 0 ]; do
    case $1 in
        --out | --target) ;;
        *) fail "unknown argument $1: $usage" ;;
    esac
    [ $# -gt 1 ] || fail "$1 needs a value: $usage"
    case $1 in --out) out=$2 ;; *) machine=$2 ;; esac
    shift 2
done
[ -n "$out" ] || fail "--out DIR is needed, the folder for the archives: $usage"
# shellcheck source=packaging/machine.sh
. "$here/packaging/machine.sh"
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Makes one archive: archive NAME OPTION.. . The options are those of install.sh.
archive() {
    local name=$1-$version-$machine-linux-gnu
    shift
    packaging/install.sh --prefix "$work/$name" --portable --target "$machine" --no-debug "$@"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -czf "$out/$name.tar.gz" "$name"
}
archive ddtc
archive ddtc-static --only capi --static
archive ddtc-yaksa --only yaksa
