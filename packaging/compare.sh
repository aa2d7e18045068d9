#!/bin/sh
# Compares interfaces with those of the last release: the items at the root of the Rust crate with
# cargo-semver-checks, and the C library with abidiff.
#
#   packaging/compare.sh [COMMIT]       with the release that packaging/released names, or COMMIT
#   packaging/compare.sh --self-check   only the self-check, which every run does first: on tiny
#                                       crates and libraries, both tools notice what breaks programs
#
# Allowed are: additions; any change if the major version is new (while it is 0: the minor version);
# fields at the end of ddtc_config; and any change inside committed types, which C holds only by
# pointers.
# Items that the crate has only for its own workspace are not compared. They are not public in the
# current crate, and the script hides the modules that a release declares public. A test holds the
# exports of the C library to capi/tests/abi.txt at any time.
#
# cargo-semver-checks is pinned and built below the target folder, once.
set -eu

cd "$(dirname "$0")/.."
fail() { echo "compare.sh: $*" >&2; exit 1; }
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target/compare"
work=$(cd "$target/compare" && pwd)
cargo=${CARGO:-cargo}

# Look for everything that is needed before anything is built.
base=
if [ "${1-}" != --self-check ]; then
    command -v git >/dev/null || fail "git is missing: install it"
    git rev-parse --git-dir >/dev/null 2>&1 || fail "these sources are no clone of the repository, from which the last release is taken: clone it"
    release=$(sed '/^#/d' packaging/released)
    read -r version commit date <<RELEASE
$release
RELEASE
    # If the release has a tag in this clone, the tag must name the commit in packaging/released.
    tagged=$(git rev-parse --verify --quiet "v$version^{commit}" || true)
    [ -z "$tagged" ] || [ "$tagged" = "$commit" ] || fail "tag v$version is $tagged, packaging/released says $commit: which one was released?"
    if [ $# -gt 0 ]; then
        commit=$(git rev-parse --verify --quiet "$1^{commit}") || fail "$1: no such commit or tag here"
        version=$1
    fi
    git cat-file -e "$commit^{commit}" 2>/dev/null ||
        fail "$commit, which is version $version of $date, is not in this clone: fetch it (git fetch --unshallow, or git fetch origin $commit)"
    base=$work/base-$commit
fi
for tool in cc abidiff; do
    command -v $tool >/dev/null || fail "$tool is missing: install gcc and abigail-tools"
done
semver=$target/tools/bin/cargo-semver-checks
if [ ! -x "$semver" ]; then
    # Build the tool without link-time optimization, in a third of the time. It compares only a few
    # megabytes, so its own speed does not matter.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        "$cargo" install cargo-semver-checks --version 0.51.0 --locked --root "$target/tools" --target-dir "$target/tools/build"
fi

# Compares the Rust items of package $3 in folder $2 with those in folder $1.
rust_items() {
    features=
    [ "$(uname -m)" = x86_64 ] || [ "$3" != ddtc ] || features="--features cranelift"
    # Give each side a target folder of its own. In a common folder they would overwrite each other.
    # shellcheck disable=SC2086
    env -u CARGO_TARGET_DIR "$semver" semver-checks --manifest-path "$2/Cargo.toml" --package "$3" --baseline-root "$1" --only-explicit-features $features
}

# Rust names of the structures that C holds only by pointers. Each name must exist, since a
# misspelled name would allow nothing.
held='Committed CommittedOperation LayoutCopy'
for name in $held; do
    grep -rqE "^pub struct $name\b" src/committed.rs src/committed || fail "no structure of src/committed is named $name: correct \`held\`"
done
# Compares library $2 with library $1. Both must have debug data: abidiff compares the types in it.
c_library() { abidiff --no-added-syms --suppressions "$work/allowed" "$1" "$2"; }
cat > "$work/allowed" <<ALLOWED
[suppress_type]
  name_regexp = .*(ddtc_config|Config)\$
  has_data_member_inserted_at = end
[suppress_type]
  name_regexp = ^(opaque|ddtc::committed::([a-z]+::)?($(echo $held | tr ' ' '|')))\$
ALLOWED

# Show on tiny crates and libraries that the comparisons can fail: they must refuse a function that
# is gone and a field that moved, and accept what is allowed.
tiny=$work/tiny
rm -rf "$tiny"
for side in old same gone; do
    mkdir -p "$tiny/$side/src"
    printf '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n' > "$tiny/$side/Cargo.toml"
    printf '#[doc(hidden)]\npub mod room {\n    pub fn one() {}\n    pub fn two() {}\n}\npub use room::{one, two};\n' > "$tiny/$side/src/lib.rs"
done
printf '#[doc(hidden)]\npub mod room {\n    pub fn one() {}\n}\npub use room::one;\n' > "$tiny/gone/src/lib.rs"
# A function that exists only in a hidden module may disappear.
printf '#[doc(hidden)]\npub mod room {\n    pub fn one() {}\n    pub fn two() {}\n    pub fn three() {}\n}\npub use room::{one, two};\n' > "$tiny/old/src/lib.rs"
library() { # name, fields of ddtc_config, fields of another structure, those of one that is opaque
    printf 'struct ddtc_config { %s };\nstruct other { %s };\nstruct opaque { %s };\n' "$2" "$3" "$4" > "$tiny/$1.c"
    printf 'int tiny(struct ddtc_config *c, struct other *o, struct opaque *p) { return c->size + o->b + p->n; }\n' >> "$tiny/$1.c"
    cc -g -shared -fPIC -o "$tiny/$1.so" "$tiny/$1.c"
}
library old 'int size; int level;' 'int a; int b;' 'int n;'
library longer 'int size; int level; int mode;' 'int a; int b;' 'long n; int m;'
library moved 'int size; int mode; int level;' 'int a; int b;' 'int n;'
library other 'int size; int level;' 'long a; int b;' 'int n;'
said=$tiny/said
rust_items "$tiny/old" "$tiny/same" tiny > "$said" 2>&1 || { cat "$said" >&2; fail "cargo-semver-checks refuses what is allowed"; }
if rust_items "$tiny/old" "$tiny/gone" tiny > "$said" 2>&1; then fail "cargo-semver-checks does not notice that a function is gone"; fi
grep -q 'function_missing' "$said" || { cat "$said" >&2; fail "cargo-semver-checks fails for another reason than a function that is gone"; }
c_library "$tiny/old.so" "$tiny/longer.so" > "$said" 2>&1 || { cat "$said" >&2; fail "abidiff refuses a field at the end of ddtc_config, or what is opaque"; }
for side in moved other; do
    if c_library "$tiny/old.so" "$tiny/$side.so" > "$said" 2>&1; then fail "abidiff does not notice a structure that changed: $tiny/$side.c"; fi
    grep -q 'offset changed' "$said" || { cat "$said" >&2; fail "abidiff fails for another reason than a structure that changed"; }
done
echo "compare.sh: both comparisons notice what breaks programs"
[ -n "$base" ] || exit 0

# Compare copies of both sides. In the copies, public modules are hidden.
new=$work/new
mkdir -p "$base" "$new"
for side in "$base" "$new"; do
    find "$side" -mindepth 1 -maxdepth 1 ! -name target -exec rm -rf {} +
done
git archive "$commit" | tar -x -C "$base"
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - --ignore-failed-read 2>/dev/null | tar -x -C "$new"
for side in "$base" "$new"; do
    sed -i 's/^pub mod /#[doc(hidden)]\n&/' "$side/src/lib.rs"
done
# If the next release has a new minor version, a heading in CHANGELOG.md names the version.
next=$(sed -n 's/^## Unreleased (\([0-9.]*\))$/\1/p' CHANGELOG.md)
if [ -n "$next" ] && [ "${next%.*}" != "${version%.*}" ]; then
    echo "compare.sh: the next release is $next: of the Rust items of $version nothing is promised"
else
    rust_items "$base" "$new" ddtc || fail "the crate breaks programs that were written for $version: see above"
fi

series() { sed -n 's/^#define DDTC_VERSION_\(MAJOR\|MINOR\) \([0-9]*\)$/\2/p' "$1/capi/include/ddtc.h" | paste -sd.; }
if [ "$(series "$base")" != "$(series "$new")" ]; then
    echo "compare.sh: another soname than that of $version: nothing of the C library is promised"
    exit 0
fi
for side in "$base" "$new"; do
    # Build without optimization, which would take minutes and changes no interface. Build each side
    # in its own target folder: cargo takes packages at the same place in two workspaces for the
    # same package, and would use the older one in the place of the newer one.
    (cd "$side" && env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=2 CARGO_PROFILE_DEV_OPT_LEVEL=0 "$cargo" build --quiet --package ddtc-capi --lib)
done
if cmp -s "$base/target/debug/libddtc.so" "$new/target/debug/libddtc.so" && ! git diff --quiet "$commit" -- src capi/src; then
    fail "both libraries are the same file, though sources differ: the comparison would compare nothing"
fi
c_library "$base/target/debug/libddtc.so" "$new/target/debug/libddtc.so" ||
    fail "the C library breaks programs that were built for $version: see above; a new minor version gets a new soname"
echo "compare.sh: nothing that $version promised is broken"
