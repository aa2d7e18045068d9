#!/usr/bin/env bash
# Makes the archives of installed prefixes that a release has, for every system with glibc 2.28 or
# newer:
#
#   ddtc-VERSION-MACHINE-linux-gnu.tar.gz           what install.sh installs by default
#   ddtc-static-VERSION-MACHINE-linux-gnu.tar.gz    the C library, shared and static
#   ddtc-yaksa-VERSION-MACHINE-linux-gnu.tar.gz     the replacement for yaksa
#
#   packaging/prefixes.sh --out DIR
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "prefixes.sh: $*" >&2; exit 2; }
[ $# = 2 ] && [ "$1" = --out ] || fail "the only argument is --out DIR, the folder for the archives"
mkdir -p "$2"
out=$(cd "$2" && pwd)
cd "$here"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Makes one archive: archive NAME OPTION.. . The options are those of install.sh.
archive() {
    local name=$1-$version-$(uname -m)-linux-gnu
    shift
    packaging/install.sh --prefix "$work/$name" --portable --no-debug "$@"
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -czf "$out/$name.tar.gz" "$name"
}
archive ddtc
archive ddtc-static --only capi --static
archive ddtc-yaksa --only yaksa
