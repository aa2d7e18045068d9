#!/usr/bin/env bash
# Makes the archive of the crate `ddtc` that cargo would publish on crates.io. Then it unpacks the
# archive in a temporary folder, and builds and tests the crate there. This shows that the crate
# needs no file of the repository that is not in the archive.
#
#   packaging/archive.sh [--out DIR]
#
# --out: folder into which ddtc-VERSION.crate is copied [the archive stays in target/package].
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "archive.sh: $*" >&2; exit 2; }
out=
while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -gt 1 ] || fail "$1 needs a value, the folder for the crate: packaging/archive.sh --out DIR"; out=$2; shift 2 ;;
        *) fail "unknown argument $1: the only one is --out DIR" ;;
    esac
done
cargo=${CARGO:-cargo}
[ -z "$out" ] || { mkdir -p "$out"; out=$(cd "$out" && pwd); }
cd "$here"
target=$("$cargo" metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)

# `cargo publish --workspace` takes all crates of the workspace that may be published. That is only
# the library `ddtc`. `--allow-dirty` is needed because the working tree may have changes that are
# not committed, and these must be tested, too.
"$cargo" publish --workspace --dry-run --locked --allow-dirty --no-verify
"$cargo" package --package ddtc --locked --allow-dirty --no-verify
archive=$target/package/ddtc-$version.crate
files=$(tar -tf "$archive" | wc -l)
for file in Cargo.toml Cargo.lock README.md src/README.md LICENSE-MIT LICENSE-APACHE src/lib.rs corpus/application.ddt; do
    tar -tf "$archive" "ddtc-$version/$file" >/dev/null || fail "$archive lacks $file, which the crate must have: correct \`include\` of the package ddtc in Cargo.toml"
done
! tar -tf "$archive" | grep -E "^ddtc-$version/(docs|e2e|capi|preload|benches)/" || fail "$archive has the files above, which are no part of the library: correct \`include\` of the package ddtc in Cargo.toml"

# Unpack the archive outside of the workspace, since cargo would otherwise take the crate for a
# member of the workspace. But keep using the target folder of the workspace: its tests use the
# dependencies with the same features, so that these are already compiled there.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$archive" -C "$work"
cd "$work/ddtc-$version"
# Otherwise cargo would run tests again that an earlier run of this script has compiled in another
# temporary folder, whose files they look for.
find . -name '*.rs' -exec touch {} +
export CARGO_TARGET_DIR=$target
"$cargo" test --locked --quiet --features foreign,fuzzing
# Check that the tests compile with the default features, with which a distribution would build the
# crate. Then check that the crate compiles with some of these features switched off.
"$cargo" check --locked --quiet --tests
if [ "$(uname -m)" = x86_64 ]; then
    for features in "" copies operations; do
        "$cargo" check --locked --quiet --no-default-features --features "$features"
    done
fi
RUSTDOCFLAGS="-D warnings" "$cargo" doc --locked --quiet --no-deps
[ -z "$out" ] || cp "$archive" "$out/"
echo "ddtc-$version.crate: $files files, $(wc -c <"$archive") bytes: built and tested where it is unpacked"
