#!/usr/bin/env bash
# Makes the archive of the crate `ddtc` as cargo would publish it. Then it unpacks the archive in a
# temporary folder and builds and tests the crate there, where no other file of the repository
# exists.
#
#   packaging/archive.sh [--out DIR]
#
# --out: folder for ddtc-VERSION.crate [target/package].
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "archive.sh: $*" >&2; exit 2; }
out=
while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -gt 1 ] || fail "$1 needs a value"; out=$2; shift 2 ;;
        *) fail "unknown argument $1" ;;
    esac
done
cargo=${CARGO:-cargo}
[ -z "$out" ] || { mkdir -p "$out"; out=$(cd "$out" && pwd); }
cd "$here"
target=$("$cargo" metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)

# `--workspace` takes every member that may be published, which is only the library.
# `--allow-dirty` is needed because the working tree is tested, with its uncommitted changes.
"$cargo" publish --workspace --dry-run --locked --allow-dirty --no-verify
"$cargo" package --package ddtc --locked --allow-dirty --no-verify
archive=$target/package/ddtc-$version.crate
files=$(tar -tf "$archive" | wc -l)
for file in Cargo.toml Cargo.lock README.md LICENSE-MIT LICENSE-APACHE src/lib.rs corpus/application.ddt; do
    tar -tf "$archive" "ddtc-$version/$file" >/dev/null || fail "$archive lacks $file"
done
! tar -tf "$archive" | grep -E "^ddtc-$version/(docs|e2e|capi|preload|benches)/" || fail "$archive has files that are no part of the library"

# Unpack outside of the workspace, since cargo would otherwise take the crate for a member of it.
# Keep using the workspace's target folder: the tests of the workspace use the same features, so the
# dependencies are already compiled there.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$archive" -C "$work"
cd "$work/ddtc-$version"
export CARGO_TARGET_DIR=$target
"$cargo" test --locked --quiet --features foreign,fuzzing
# Check the crate as a distribution would test it, with the default features. Then check it with
# some of these features switched off.
"$cargo" check --locked --quiet --tests
if [ "$(uname -m)" = x86_64 ]; then
    for features in "" copies operations; do
        "$cargo" check --locked --quiet --no-default-features --features "$features"
    done
fi
RUSTDOCFLAGS="-D warnings" "$cargo" doc --locked --quiet --no-deps
[ -z "$out" ] || cp "$archive" "$out/"
echo "ddtc-$version.crate: $files files, $(wc -c <"$archive") bytes: built and tested where it is unpacked"
