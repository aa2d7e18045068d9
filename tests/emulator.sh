# shellcheck shell=bash
# Finds an emulator for programs for aarch64 and has the kernel start such programs with it.
# tests/aarch64.sh and tests/old.sh source this file. They define the function `fail`.

# Sets the variable `qemu` to the path of QEMU's user-mode emulator for aarch64. The environment
# variable DDTC_QEMU names it, if it is not the qemu-aarch64 on the path.
#
# QEMU before 8.1 ignores the instruction IC IVAU, which invalidates the instruction cache. If a
# program writes new code to a place through another mapping, such a QEMU keeps running its
# translation of the old code. ddtc reuses places in its executable memory, so kernels that it no
# longer has would run there.
find_emulator() {
    local version wanted="QEMU 8.1 or newer (Debian 13: apt-get install qemu-user; Debian 12: the same from bookworm-backports)"
    qemu=$(command -v "${DDTC_QEMU:-qemu-aarch64}") || fail "${DDTC_QEMU:-qemu-aarch64} is missing: install $wanted, or name it in DDTC_QEMU"
    qemu=$(realpath "$qemu")
    version=$("$qemu" --version | sed -n 's/.*version \([0-9]*\.[0-9]*\).*/\1/p')
    [ "$(printf '%s\n' 8.1 "$version" | sort -V | head -n 1)" = 8.1 ] ||
        fail "$qemu is QEMU $version, and older versions than 8.1 ignore instruction cache maintenance: install $wanted, or name it in DDTC_QEMU"
}

# Has the kernel start programs for aarch64 with the emulator until this script ends. With the flag
# F the kernel opens the emulator now, so that programs in any root find it. The emulator must be
# linked statically, because other roots lack its libraries.
emulate() {
    local binfmt=/proc/sys/fs/binfmt_misc name=ddtc-aarch64
    ! LC_ALL=C readelf -lW "$qemu" | grep -q 'program interpreter' ||
        fail "$qemu is linked dynamically, and finds its libraries in no other root: install a static one (Debian 13: apt-get install qemu-user), or name it in DDTC_QEMU"
    [ -e $binfmt/register ] || mount -t binfmt_misc none $binfmt || fail "the kernel has no binfmt_misc, with which it starts programs for another machine: use another kernel, or run this on an aarch64 machine"
    [ ! -e $binfmt/$name ] || fail "$binfmt/$name is there already: another run of this script uses it; if there is none, write -1 to this file"
    # The first 20 bytes of a program for aarch64: 64 bits, little endian, type 2 or 3, machine 183.
    printf ':%s:M::%s:%s:%s:F' $name '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00' \
        '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff' "$qemu" >$binfmt/register
    trap "echo -1 >$binfmt/$name" EXIT
}
