#!/bin/sh
# Compares interfaces with those of the last release: the Rust items by cargo-semver-checks, the C library by abidiff.
#
#   packaging/compare.sh [TAG]
#
# TAG: by default the newest tag vX.Y.Z that this commit comes from. Before the first one there is nothing that was promised to anybody: the
# script says so and compares nothing. (The exports of the C library are held to capi/tests/abi.txt at any time.)
# Allowed are additions, whatever a new major version (while it is 0: a new minor version) says, and fields at the end of ddtc_config.
set -eu

cd "$(dirname "$0")/.."
fail() { echo "compare.sh: $*" >&2; exit 1; }
tag=${1-$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true)}
if [ -z "$tag" ]; then
    echo "compare.sh: no tag v* yet: no release to compare with"
    exit 0
fi
git rev-parse --verify --quiet "$tag^{commit}" >/dev/null || fail "$tag: no such tag or commit"
target=${CARGO_TARGET_DIR:-$PWD/target}
series() { sed -n 's/^#define DDTC_VERSION_\(MAJOR\|MINOR\) \([0-9]*\)$/\2/p' "$1/capi/include/ddtc.h" | paste -sd.; }

base=$target/compare/base
rm -rf "$base"
mkdir -p "$base"
git archive "$tag" | tar -x -C "$base"

if [ ! -x "$target/tools/bin/cargo-semver-checks" ]; then
    cargo install cargo-semver-checks --version 0.51.0 --locked --root "$target/tools" --target-dir "$target/tools/build"
fi
"$target/tools/bin/cargo-semver-checks" semver-checks --package ddtc --baseline-root "$base" --target-dir "$target/compare/semver"

if ! command -v abidiff >/dev/null; then
    apt-get install -y -qq abigail-tools >/dev/null 2>&1 || fail "abidiff is missing: install abigail-tools"
fi
# With all debug data, by which types are compared; without link-time optimization, which costs minutes and changes no interface.
for side in "$base" "$PWD"; do
    (cd "$side" && CARGO_PROFILE_QUICK_DEBUG=2 CARGO_TARGET_DIR="$target/compare/capi" cargo build --quiet --package ddtc-capi --profile quick)
    cp "$target/compare/capi/quick/libddtc.so" "$target/compare/$( [ "$side" = "$PWD" ] && echo new || echo old ).so"
done
if [ "$(series "$base")" != "$(series .)" ]; then
    echo "compare.sh: another soname than $tag: nothing of the C library is promised"
    exit 0
fi
cat > "$target/compare/allowed" <<'ALLOWED'
[suppress_type]
  name_regexp = .*(ddtc_config|Config)$
  has_data_member_inserted_at = end
ALLOWED
abidiff --no-added-syms --suppressions "$target/compare/allowed" "$target/compare/old.so" "$target/compare/new.so" ||
    fail "the C library breaks programs that were built for $tag: see above; a new minor version gets a new soname"
