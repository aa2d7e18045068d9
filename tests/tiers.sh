# shellcheck shell=bash
# Functions that test.sh and .ci/run share: what the tests need and how it is installed, the parts
# of tests/parts.txt, and test runs whose filters must match. Sourced in the root of the repository.

nightly=nightly-2026-04-20 # cargo-fuzz and Miri need a nightly; dated, so that it is the same tomorrow

fail() { echo "error: $*" >&2; exit 1; }

# Succeeds if something is there that the fast tier or a part needs. $1 is a word of the column
# `needs` of tests/parts.txt, or of the fast tier's list.
there() {
    case $1 in
        venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
        chromium) [ -n "${DDTC_BROWSER:-}" ] || command -v chromium chromium-browser google-chrome chrome >/dev/null ;;
        nightly) rustup run "$nightly" rustc --version >/dev/null 2>&1 && rustup run "$nightly" cargo miri --version >/dev/null 2>&1 ;;
        lmod) [ -x /usr/share/lmod/lmod/libexec/lmod ] ;;
        apt) command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ;;
        DDTC_*) [ -f "${!1:-}" ] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# Prints the packages of Debian that contain what a word names.
package() {
    case $1 in
        cc) echo gcc libc6-dev ;;
        c++) echo g++ ;;
        objcopy) echo binutils ;;
        venv) echo python3-venv ;;
        abidiff) echo abigail-tools ;;
        *) echo "$1" ;;
    esac
}

# Installs what is missing of the words in $@ where the script may do so. Otherwise ends with one
# line that says what to type.
need() {
    local word packages=() still=()
    if ! command -v cargo >/dev/null; then
        fail "Rust is missing: curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y"
    fi
    local wanted have
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    have=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$wanted" "$have" | sort -V | head -n 1)" = "$wanted" ] ||
        fail "Rust $have is too old, $wanted or newer is needed: rustup update stable"
    for word; do
        there "$word" && continue
        case $word in
            nightly)
                command -v rustup >/dev/null || fail "rustup is missing, for the dated nightly of Miri and the fuzzers: install Rust through https://rustup.rs"
                rustup toolchain install "$nightly" --profile minimal --component rust-src --component miri --no-self-update ||
                    fail "$nightly could not be installed (no network?): rustup toolchain install $nightly --profile minimal --component rust-src --component miri"
                ;;
            apt) fail "apt-get and dpkg are missing: this part takes a source package of Debian; run it on Debian 12" ;;
            DDTC_*) fail "$word must name an archive of sources, and names '${!word:-}': docs/TESTING.md, \"Parts\"" ;;
            # shellcheck disable=SC2207
            *) packages+=($(package "$word")) ;;
        esac
    done
    [ ${#packages[@]} -gt 0 ] || return 0
    local type="apt-get install ${packages[*]}"
    command -v apt-get >/dev/null || fail "missing: $*; with Debian's names: $type"
    [ "$(id -u)" = 0 ] || fail "packages are missing: sudo $type"
    echo "installs ${packages[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >/tmp/ddtc-packages.$$ 2>&1 ||
        { tail -n 3 /tmp/ddtc-packages.$$ >&2; fail "packages could not be installed (no network?): $type"; }
    rm -f /tmp/ddtc-packages.$$
    for word; do there "$word" || still+=("$word"); done
    [ ${#still[@]} -eq 0 ] || fail "still missing: ${still[*]}: $type"
}

# Fetches what comes from registries before anything that takes long starts: crates, and the wheels
# of MPI libraries. $@ are the folders of the wheels.
fetched() {
    cargo fetch --locked --quiet || fail "crates could not be fetched (no network?): cargo fetch --locked"
    local folder package version cache missing=()
    cache=${CARGO_TARGET_DIR:-target}/ddtc-hosts
    while read -r folder package version _; do
        [[ " $* " = *" $folder "* ]] || continue
        grep -qs "^$package==$version " "$cache/$folder/.ready" || missing+=("$package==$version")
    done < <(grep -v '^#' preload/tests/hosts/wheels.txt)
    [ ${#missing[@]} -gt 0 ] || return 0
    missing+=("mpi4py==$(sed -n 's/^mpi4py mpi4py //p' preload/tests/hosts/wheels.txt)")
    mkdir -p "$cache"
    [ -x "$cache/pip/bin/pip" ] || python3 -m venv "$cache/pip" || fail "python3 -m venv fails: apt-get install python3-venv"
    # pip keeps the wheels: the tests install them by their hashes without asking the index again.
    "$cache/pip/bin/pip" download --quiet --no-deps --dest "$cache/wheels" "${missing[@]}" ||
        fail "MPI wheels could not be fetched (no network? PIP_INDEX_URL says where): pip download ${missing[*]}"
}

# Runs `cargo test` with the arguments before --, and with the filters after it. Each filter must
# match a test. The output counts the tests of all filters together.
tests() {
    local arguments=() filters=() skips=() word listed filter seen=
    while [ $# -gt 0 ]; do
        word=$1
        shift
        case $seen$word in
            --) seen=filters: ;;
            filters:--skip) skips+=(--skip "$1"); shift ;;
            filters:*) filters+=("$word") ;;
            *) arguments+=("$word") ;;
        esac
    done
    "${cargo_test[@]:-cargo}" test "${arguments[@]}" --no-run || return
    for filter in ${filters[@]+"${filters[@]}"}; do
        listed=$("${cargo_test[@]:-cargo}" test --quiet "${arguments[@]}" -- --list "$filter" ${skips[@]+"${skips[@]}"}) || return
        grep -q ': test$' <<<"$listed" || { echo "error: no test matches $filter: cargo test ${arguments[*]}" >&2; return 1; }
    done
    "${cargo_test[@]:-cargo}" test "${arguments[@]}" -- ${filters[@]+"${filters[@]}"} ${skips[@]+"${skips[@]}"}
}

# Runs tests of the library under Miri, which uses one core. The filters in each argument run in a
# process of their own, at the same time as the others.
miri() {
    local cargo_test=(cargo "+$nightly" miri) of=(--package ddtc --no-default-features --features cranelift --lib) group i running=() status=0
    export MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=$PWD/target/miri
    "${cargo_test[@]}" test "${of[@]}" --no-run || return
    for group; do
        # shellcheck disable=SC2086
        tests "${of[@]}" -- $group >"target/miri/${#running[@]}.log" 2>&1 &
        running+=($!)
    done
    for i in "${!running[@]}"; do
        wait "${running[i]}" || status=$?
        cat "target/miri/$i.log"
    done
    return $status
}

# Checks the links in the documentation of all members, including private items. Each member has an
# output folder of its own, since two of the libraries are named ddtc, and shares what is compiled
# for it with other builds.
rustdoc() {
    local manifest package target status=0
    for manifest in Cargo.toml */Cargo.toml tests/*/Cargo.toml; do
        [ "$manifest" != fuzz/Cargo.toml ] || continue # a workspace of its own
        package=$(sed -n 's/^name = "\(ddtc.*\)"$/\1/p' "$manifest" | head -n 1)
        target=--lib
        [ -f "${manifest%Cargo.toml}src/lib.rs" ] || [ ! -f "${manifest%Cargo.toml}src/main.rs" ] || target=--bins
        echo "$package"
        CARGO_BUILD_BUILD_DIR=$PWD/target CARGO_TARGET_DIR=$PWD/target/rustdoc/$package RUSTDOCFLAGS="-D warnings" \
            cargo rustdoc --locked --quiet --package "$package" "$target" -- --document-private-items || status=$?
    done
    return $status
}

# Prints the names of the parts, in order.
parts() { sed -n 's/^\([a-z0-9]*\) | .*/\1/p' tests/parts.txt; }

# Prints the names of the parts that run without being asked for by name. Parts that need an archive
# of sources which no variable names are left out.
usual() {
    local name word
    for name in $(parts); do
        for word in $(column "$name" needs); do
            case $word in DDTC_*) [ -n "${!word:-}" ] || continue 2 ;; esac
        done
        echo "$name"
    done
}

# Prints which parts are left out because no variable names their archive, if there are any.
without_archive() {
    local names
    names=$(parts | grep -vxF -f <(usual) | tr '\n' ' ' || true)
    [ -z "$names" ] || echo "not run, since no variable names an archive of their sources: $names(docs/TESTING.md, \"Parts\")"
}

# Prints a column of a part: seconds, needs, files, text or command.
column() {
    local at
    case $2 in seconds) at=2 ;; needs) at=3 ;; files) at=4 ;; text) at=5 ;; command) at=6 ;; esac
    sed -n "s/^$1 |/&/p" tests/parts.txt | cut -d '|' -f "$at" | sed 's/^ *//; s/ *$//'
}

# Runs a part.
part() { eval "$(column "$1" command)"; }
