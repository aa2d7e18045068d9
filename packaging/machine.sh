# shellcheck shell=sh
# Decides everything that depends on the machine for which files are made. install.sh, portable.sh,
# prefixes.sh, deb.sh, wheel.sh, release.sh and tests/old.sh source this file. The variable
# `machine` then has the value of their option --target, or is empty for the machine on which they
# run. The file sets these variables:
#
#   this      the machine on which the script runs, as `uname -m` names it
#   machine   the machine for which files are made, as `uname -m` names it
#   elf       the machine as readelf names it; empty if ddtc is not for this machine
#   debian    the machine as Debian names it
#   rust      Rust's name of the target
#   features  features of the installed command. It contains Cranelift only for machines without
#             code templates. On x86-64, which has templates, Cranelift would be half of the
#             installed bytes
#   cross     prefix in the names of gcc and binutils that make files for another machine than the
#             one on which the script runs; empty if they are the same
#   compiler  C compiler that makes programs for the machine
#   toolchain what to install if the compiler or one of the binutils is missing
this=$(uname -m)
machine=${machine:-$this}
case $machine in
    x86_64 | aarch64 | "$this") ;;
    *) fail "--target $machine: files for another machine than this one are built for x86_64 and aarch64 only: give one of these" ;;
esac
elf=
debian=$machine
features=cranelift
case $machine in
    x86_64) elf=X86-64 debian=amd64 features= ;;
    aarch64) elf=AArch64 debian=arm64 ;;
    riscv64) elf=RISC-V ;;
esac
rust=$machine-unknown-linux-gnu
cross=
compiler=cc
toolchain="gcc with binutils"
if [ "$machine" != "$this" ]; then
    cross=$machine-linux-gnu-
    compiler=${cross}gcc
    toolchain="gcc-$(echo "$machine" | tr _ -)-linux-gnu (Debian's name), the cross compiler"
fi
