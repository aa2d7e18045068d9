#!/usr/bin/env bash
# Compares docs/api.txt with the list of the public items of the crate `ddtc`. The tool
# cargo-public-api makes that list from the documentation that a nightly compiler writes. With
# DDTC_BLESS=1 this script writes docs/api.txt instead of comparing it.
#
# On x86-64 the list is made with all default features except `cranelift`, because it then takes a
# fraction of the time. On x86-64 the full default features are therefore only checked for compile
# errors. No public item depends on `cranelift`. The list leaves out implementations that are
# derived, automatic, or exist for every type, and all items that only the feature `internal` makes
# public.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/tiers.sh
. tests/tiers.sh

target=${CARGO_TARGET_DIR:-$PWD/target}
tool=$target/tools/bin/cargo-public-api
version=0.52.0
need nightly
if [ "$("$tool" --version 2>/dev/null)" != "cargo-public-api $version" ]; then
    # cargo-public-api has to read only one file, so its own speed does not matter. Build it without
    # optimization, which takes a third of the time of an optimized build.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
        cargo install cargo-public-api --version "$version" --locked --root "$target/tools" --target-dir "$target/tools/build"
fi

# Check that the crate compiles as it does for a program that depends on it: without the additional
# features that the crates of the workspace switch on for their tests.
cargo check --locked --package ddtc

features=()
[ "$(uname -m)" != x86_64 ] || features=(--no-default-features --features copies,operations)
list=$target/public-api/items.txt
mkdir -p "$target/public-api"
CARGO_TARGET_DIR=$target/public-api RUSTUP_TOOLCHAIN=$nightly "$tool" public-api --package ddtc -sss "${features[@]}" >"$list"
[ "$(wc -l <"$list")" -gt 50 ] || fail "$list has at most 50 lines, so cargo-public-api $version has not found the public items: check whether" \
    "it can read what $nightly writes"
if [ -n "${DDTC_BLESS-}" ]; then
    cp "$list" docs/api.txt
else
    diff docs/api.txt "$list" || fail "docs/api.txt (<) does not list the public items of the code (>): if the change is intended," \
        "DDTC_BLESS=1 ./test.sh api writes the file"
fi
echo "test result: ok. 1 passed; 0 failed; 0 ignored: docs/api.txt has $(wc -l <docs/api.txt) lines"
