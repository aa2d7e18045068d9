#!/bin/sh
# Compares the public interfaces of ddtc with those of its last release, and fails if a change
# breaks programs that were written for the release. cargo-semver-checks compares the items at the
# root of the Rust crate, and abidiff compares the C library.
#
#   packaging/compare.sh [COMMIT]
#       Compares with the release that the file packaging/released names, or with COMMIT.
#   packaging/compare.sh --self-check
#       Only checks the two tools: on tiny crates and libraries they must notice a change that
#       breaks programs. Every other run of this script does this first.
#
# These changes are allowed: additions; any change if the release has another major version or,
# while the major version is 0, another minor version; new fields at the end of the C structure
# ddtc_config; and any change inside of the structures of committed types, which a C program has
# only as pointers. Items of the crate that are only for other crates of its workspace are not
# compared. They are not public in the current crate, and for a release whose modules are public,
# the script hides these. In addition, a test in capi/tests/installed.rs checks at any time that the
# C library exports exactly the functions that its headers declare.
#
# The version of cargo-semver-checks is fixed. The tool is built once, in the target folder.
set -eu

cd "$(dirname "$0")/.."
fail() { echo "compare.sh: $*" >&2; exit 1; }
target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target/compare"
work=$(cd "$target/compare" && pwd)
cargo=${CARGO:-cargo}

# First make sure that everything is there that the comparison needs, before anything is built.
base=
if [ "${1-}" != --self-check ]; then
    command -v git >/dev/null || fail "git is missing: install git"
    git rev-parse --git-dir >/dev/null 2>&1 || fail "these sources are no clone of the repository, from which the last release is taken: clone it"
    release=$(sed '/^#/d' packaging/released)
    read -r version commit date <<RELEASE
$release
RELEASE
    # If this clone has a tag for the release, the tag must name the same commit as the file
    # packaging/released.
    tagged=$(git rev-parse --verify --quiet "v$version^{commit}" || true)
    [ -z "$tagged" ] || [ "$tagged" = "$commit" ] || fail "tag v$version names $tagged, and packaging/released says $commit: correct the one that does not name the commit that was released"
    if [ $# -gt 0 ]; then
        commit=$(git rev-parse --verify --quiet "$1^{commit}") || fail "$1: no such commit or tag in this clone: fetch it, or give another one, or nothing for the last release"
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
    # Build cargo-semver-checks without link-time optimization, which takes a third of the time. It
    # compares only a few megabytes, so its own speed does not matter.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=1 \
        "$cargo" install cargo-semver-checks --version 0.51.0 --locked --root "$target/tools" --target-dir "$target/tools/build"
fi

# Compares the public Rust items of package $3 in folder $2 with those of the same package in folder
# $1.
rust_items() {
    features=
    [ "$(uname -m)" = x86_64 ] || [ "$3" != ddtc ] || features="--features cranelift"
    # Unset CARGO_TARGET_DIR, so that each of the two folders has a target folder of its own. In a
    # common target folder, one would overwrite the files of the other.
    # shellcheck disable=SC2086
    env -u CARGO_TARGET_DIR "$semver" semver-checks --manifest-path "$2/Cargo.toml" --package "$3" --baseline-root "$1" --only-explicit-features $features
}

# Rust names of the structures to which a C program only has pointers. abidiff gets these names and
# ignores changes inside of the structures. Check that each name exists, since a misspelled name
# would allow nothing.
opaque='Committed CommittedOperation LayoutCopy'
for name in $opaque; do
    grep -rqE "^pub struct $name\b" src/committed.rs src/committed || fail "no structure of src/committed is named $name: correct \`opaque\`"
done
# Compares the C library $2 with the C library $1. Both must have debug data, in which abidiff finds
# the types.
c_library() { abidiff --no-added-syms --suppressions "$work/allowed" "$1" "$2"; }
cat > "$work/allowed" <<ALLOWED
[suppress_type]
  name_regexp = .*(ddtc_config|Config)\$
  has_data_member_inserted_at = end
[suppress_type]
  name_regexp = ^(opaque|ddtc::committed::([a-z]+::)?($(echo $opaque | tr ' ' '|')))\$
ALLOWED

# Check the two tools on tiny crates and libraries: they must report a function that is gone and a
# field that has moved, and must accept changes that are allowed.
tiny=$work/tiny
rm -rf "$tiny"
for side in old same gone; do
    mkdir -p "$tiny/$side/src"
    printf '[package]\nname = "tiny"\nversion = "0.1.0"\nedition = "2024"\n[workspace]\n' > "$tiny/$side/Cargo.toml"
    printf '#[doc(hidden)]\npub mod inner {\n    pub fn one() {}\n    pub fn two() {}\n}\npub use inner::{one, two};\n' > "$tiny/$side/src/lib.rs"
done
printf '#[doc(hidden)]\npub mod inner {\n    pub fn one() {}\n}\npub use inner::one;\n' > "$tiny/gone/src/lib.rs"
# A function that is public only in a hidden module may be removed. So add one to the old crate.
printf '#[doc(hidden)]\npub mod inner {\n    pub fn one() {}\n    pub fn two() {}\n    pub fn three() {}\n}\npub use inner::{one, two};\n' > "$tiny/old/src/lib.rs"
library() { # $1: name; $2, $3, $4: fields of ddtc_config, of another and of an opaque structure
    printf 'struct ddtc_config { %s };\nstruct other { %s };\nstruct opaque { %s };\n' "$2" "$3" "$4" > "$tiny/$1.c"
    printf 'int tiny(struct ddtc_config *c, struct other *o, struct opaque *p) { return c->size + o->b + p->n; }\n' >> "$tiny/$1.c"
    cc -g -shared -fPIC -o "$tiny/$1.so" "$tiny/$1.c"
}
library old 'int size; int level;' 'int a; int b;' 'int n;'
library longer 'int size; int level; int mode;' 'int a; int b;' 'long n; int m;'
library moved 'int size; int mode; int level;' 'int a; int b;' 'int n;'
library other 'int size; int level;' 'long a; int b;' 'int n;'
said=$tiny/said
# Ends the script, since a tool has failed its check as $* says. Its verdict on ddtc would mean
# nothing.
unfit() {
    cat "$said" >&2
    fail "$*: read what the tool has printed above, and adapt its use in packaging/compare.sh, or install another version of it"
}
rust_items "$tiny/old" "$tiny/same" tiny > "$said" 2>&1 || unfit "cargo-semver-checks refuses what is allowed"
if rust_items "$tiny/old" "$tiny/gone" tiny > "$said" 2>&1; then unfit "cargo-semver-checks does not notice that a function is gone"; fi
grep -q 'function_missing' "$said" || unfit "cargo-semver-checks fails for another reason than a function that is gone"
c_library "$tiny/old.so" "$tiny/longer.so" > "$said" 2>&1 || unfit "abidiff refuses a field at the end of ddtc_config, or what is opaque"
for side in moved other; do
    if c_library "$tiny/old.so" "$tiny/$side.so" > "$said" 2>&1; then unfit "abidiff does not notice a structure that changed, $tiny/$side.c"; fi
    grep -q 'offset changed' "$said" || unfit "abidiff fails for another reason than a structure that changed"
done
echo "compare.sh: both comparisons notice what breaks programs"
[ -n "$base" ] || exit 0

# Compare copies of the sources of both versions. In the copies, hide the public modules, so that
# only the items at the root of the crate are compared.
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
# If the next release will have a new minor version, a heading in CHANGELOG.md names that version.
next=$(sed -n 's/^## Unreleased (\([0-9.]*\))$/\1/p' CHANGELOG.md)
if [ -n "$next" ] && [ "${next%.*}" != "${version%.*}" ]; then
    echo "compare.sh: the next release is $next: of the Rust items of $version nothing is promised"
else
    rust_items "$base" "$new" ddtc || fail "the crate breaks programs that were written for $version (see above): undo the change, or name a new minor version in CHANGELOG.md by the heading \`## Unreleased (VERSION)\`"
fi

series() { sed -n 's/^#define DDTC_VERSION_\(MAJOR\|MINOR\) \([0-9]*\)$/\2/p' "$1/capi/include/ddtc.h" | paste -sd.; }
if [ "$(series "$base")" != "$(series "$new")" ]; then
    echo "compare.sh: another soname than that of $version: nothing of the C library is promised"
    exit 0
fi
for side in "$base" "$new"; do
    # Build without optimization, which would take minutes and changes no interface. Build each
    # version in a target folder of its own. In a common target folder, cargo would take the two
    # packages for the same one, since they have the same place in their workspaces, and could use
    # the library of the old version as that of the new version.
    (cd "$side" && env -u CARGO_TARGET_DIR CARGO_PROFILE_DEV_DEBUG=2 CARGO_PROFILE_DEV_OPT_LEVEL=0 "$cargo" build --quiet --package ddtc-capi --lib)
done
if cmp -s "$base/target/debug/libddtc.so" "$new/target/debug/libddtc.so" && ! git diff --quiet "$commit" -- src capi/src; then
    fail "both libraries are the same file, though sources differ, so the comparison would compare nothing: remove $base and $new, and run this again"
fi
c_library "$base/target/debug/libddtc.so" "$new/target/debug/libddtc.so" ||
    fail "the C library breaks programs that were built for $version (see above): undo the change, or raise the minor version, by which the library gets a new soname"
echo "compare.sh: nothing that $version promised is broken"
