#!/usr/bin/env bash
# Runs files of a release on another system: by default Debian 11 with glibc 2.31, the oldest that
# could be had. Neither Rust nor anything of ddtc was installed there. The files are the archives of
# prefixes, the Debian package and the wheel, which pip must refuse where Python is older than 3.11.
# Most is tested of the first archive, which has the command and the preload library. Programs are compiled on that
# system, with its compiler and its releases of MPICH and Open MPI. Each program must print the same
# with the preload library and without. One of them calls MPI_Pack, and ddtc must have packed for
# it. ddtc does not pack messages under MPICH 3.4.1 and Open MPI 4.1.0 of Debian 11, so the programs
# also run under MPICH 5.0.2 from PyPI, where ddtc must have packed every message of one program,
# and messages of another by the shipped policy.
#
#   tests/old.sh [--suite NAME] [--target MACHINE] [DIR]
#
# --suite: the release of Debian, such as trixie [bullseye]
# --target: the machine of the files and of the system, x86_64 or aarch64 [this machine]. For
#   aarch64 on another machine, programs run in QEMU's user-mode emulation (tests/emulator.sh)
# DIR: the folder of a release, which packaging/release.sh made. Without it the files are built
#
# It needs root, for a chroot, and debootstrap, which takes packages from the mirror of this system.
set -euo pipefail
fail() { echo "error: $*" >&2; exit 1; }
suite=bullseye
machine=
while case ${1-} in --suite | --target) ;; *) false ;; esac do
    [ -n "${2-}" ] || fail "$1 needs a value, such as --suite trixie or --target aarch64: tests/old.sh [--suite NAME] [--target MACHINE] [DIR]"
    case $1 in --suite) suite=$2 ;; *) machine=$2 ;; esac
    shift 2
done
release=${1-}
[ -z "$release" ] || [ -f "$release/SHA256SUMS" ] || fail "$release: no folder of a release: give one that packaging/release.sh made, or none"
case $release in '' | /*) ;; *) release=$PWD/$release ;; esac
[ -z "$release" ] || (cd "$release" && sha256sum --check --quiet SHA256SUMS) || fail "$release: not as SHA256SUMS says (see above): copy the folder again, or make it anew"
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || fail "root is needed, to make a root file system and run programs in it: run this as root"
# shellcheck source=packaging/machine.sh
. packaging/machine.sh
case $cross$machine in
    x86_64 | aarch64) ;;
    aarch64-linux-gnu-aarch64)
        # shellcheck source=tests/emulator.sh
        . tests/emulator.sh
        find_emulator
        emulate ;;
    *) fail "--target $machine: this machine is $this, on which programs for it do not run: give another --target, or run this on another machine" ;;
esac
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/old"
target=$(cd "$target" && pwd)
work=$target/old
root=$work/$suite-$machine

if [ -z "$release" ]; then
    release=$work/release-$machine
    rm -rf "$release"
    packaging/prefixes.sh --out "$release" --target "$machine"
    packaging/deb.sh --out "$release" --portable --target "$machine"
    packaging/wheel.sh --out "$release" --portable --target "$machine"
fi

# debootstrap does not find that automake is what libopenmpi-dev needs under another name.
packages=mpich,libmpich-dev,openmpi-bin,libopenmpi-dev,g++,automake,python3-venv
if [ "$(cat "$root/.ready" 2>/dev/null)" != "$packages" ]; then
    # A mount that another run has left in the root stays as it is.
    rm -rf --one-file-system "$root"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$') || fail "the configuration of apt names no mirror of Debian: add one to /etc/apt/sources.list"
    mkdir -p "$work/packages"
    # debootstrap has a script for each suite that it knows. Those of newer suites are alike.
    script=/usr/share/debootstrap/scripts/$suite
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    debootstrap --arch="$debian" --variant=minbase --cache-dir="$work/packages" --include="$packages" "$suite" "$root" "$mirror" "$script" >"$work/debootstrap.log" 2>&1 ||
        { tail -n 5 "$work/debootstrap.log" >&2; fail "the root of Debian $suite could not be made (no network? no release of that name?): the whole output is in $work/debootstrap.log"; }
    # Launchers look up the name of this machine.
    printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"
    echo "$packages" >"$root/.ready"
fi

# The wheel of MPICH, by the hash that preload/tests/hosts/wheels.txt has. A zip file as Python
# unpacks it has no modes.
read -r _ package version x86_64 aarch64 _ < <(grep '^mpich ' preload/tests/hosts/wheels.txt)
rm -rf "$root/root/ddtc-test"
inside=$root/root/ddtc-test
mkdir -p "$inside"
wheels=$target/ddtc-hosts/wheels
wheel=$wheels/$package-$version-py3-none-manylinux_2_28_$machine.whl
[ -f "$wheel" ] || python3 -m pip download --quiet --no-deps --only-binary=:all: --platform "manylinux_2_28_$machine" --dest "$wheels" "$package==$version"
echo "${!machine}  $wheel" | sha256sum --check --quiet || fail "$wheel has another hash than preload/tests/hosts/wheels.txt says: remove the file, and run this again"
python3 -m zipfile -e "$wheel" "$inside/wheel"
mv "$inside/wheel/$package-$version.data/data" "$inside/mpich5"
chmod -R a+x "$inside/mpich5/bin"
cp "$release"/ddtc-*-"$machine"-linux-gnu.tar.gz "$release"/ddtc_*_"$debian".deb "$release"/ddtc-*_"$machine".whl "$inside/" ||
    fail "$release lacks files for $machine: give the folder of a release for this machine, or another --target"
mkdir -p "$inside/yaksa/tests"
cp -r yaksa/tests/c "$inside/yaksa/tests/"
cp tests/old/{column.c,many.c,inside.sh} preload/tests/c/throw.cpp preload/tests/c/thrown.cpp capi/tests/c/{kinds.c,check.h,integers.h} "$inside/"

# Processes that the programs leave end with the namespace, and so do the mounts. MPI libraries look
# at /sys, and glibc 2.31 makes shared memory only in a file system of its kind. QEMU lacks the
# system call process_vm_readv, with which MPICH 5 otherwise moves long messages between processes.
unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" sh -eu -c '
    mount -t sysfs sys "$1/sys"
    mount -t tmpfs shm "$1/dev/shm"
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C $2 sh /root/ddtc-test/inside.sh
' sh "$root" "${cross:+MPIR_CVAR_CH4_CMA_ENABLE=0}"
