#!/usr/bin/env bash
# Builds the library `ddtc` and its tests for aarch64 and runs the tests. On an aarch64 machine they
# run natively. On any other machine this script uses a cross compiler and QEMU's user-mode
# emulation. See docs/TESTING.md, "aarch64". The arguments of this script are passed on to the tests
# as filters, for example: tests/aarch64.sh micro::
#
# The environment variable DDTC_QEMU names the emulator, if it is not the qemu-aarch64 on the path.
# AARCH64_ROOT names the folder with the libraries of the target, aarch64.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 1; }

# Builds the tests in release mode, which is how users build the library, but without link-time
# optimization, and runs them. The arguments of this function go to `cargo test`.
suite() {
    cargo test --no-fail-fast --release --package ddtc --package ddtc-cli --lib --bins --tests "$@"
    cargo test --no-fail-fast --release --package ddtc-bench --package ddtc-capi --package ddtc-hosts --package ddtc-hunt --package ddtc-preload --lib "$@"
}

if [ "$(uname -m)" = aarch64 ]; then
    suite -- "$@"
    exit
fi

target=aarch64-unknown-linux-gnu
gcc=aarch64-linux-gnu-gcc
root=${AARCH64_ROOT:-/usr/aarch64-linux-gnu}
# shellcheck source=tests/emulator.sh
. tests/emulator.sh
find_emulator
gcc=$(command -v "$gcc") || fail "$gcc is missing: install the cross compiler (Debian: apt-get install gcc-aarch64-linux-gnu)"
[ -e "$root/lib/ld-linux-aarch64.so.1" ] ||
    fail "$root/lib/ld-linux-aarch64.so.1 is missing: install the C library of the target (Debian: apt-get install" \
        "libc6-dev-arm64-cross) or name its root in AARCH64_ROOT"
command -v rustup >/dev/null || fail "rustup is missing, which installs the standard library of $target: install Rust through https://rustup.rs"
rustup target list --installed | grep -qx "$target" || rustup target add "$target"

# Some tests compile the C loops of ddtc's benchmark with -march=native. The cross compiler does not
# know that option, so this wrapper around the compiler removes it from the command line.
tools=${CARGO_TARGET_DIR:-target}/aarch64-tools
mkdir -p "$tools"
cat >"$tools/cc" <<EOF
#!/bin/sh
for word; do
    shift
    [ "\$word" = -march=native ] || set -- "\$@" "\$word"
done
exec $gcc "\$@"
EOF
chmod +x "$tools/cc"

export CC="$(cd "$tools" && pwd)/cc"
export CARGO_BUILD_TARGET=$target
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$qemu -L $root"
cat <<EOF
These tests are left out:
  bench_times_commits, no_thread_to_be_had: they start their own program again, which does not work in QEMU's emulation of
      one program
  a_missing_compiler.., a_missing_valgrind..: in the emulation, a program that cannot be started looks like one that fails
  a_filter_on_.., no_address_space..: the emulation does not apply filters of system calls or limits of memory
  capi/tests, preload/tests: they run C compilers, MPI libraries and launchers of this machine
EOF
suite -- --skip bench_times_commits --skip no_thread_to_be_had --skip a_missing_ --skip a_filter_on_ --skip no_address_space "$@"
