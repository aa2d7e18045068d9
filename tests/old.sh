#!/usr/bin/env bash
# Runs files of a release on another system: by default Debian 11 on x86-64 with glibc 2.31, the
# oldest that could be had. Neither Rust nor anything of ddtc was installed there. The files are the
# archives of prefixes, the Debian package and, where Python is new enough, the wheel. Most is tested
# of the first archive, which has the command and the preload library. Programs are compiled on that
# system, with its compiler and its releases of MPICH and Open MPI. Each program must print the same
# with the preload library and without. One of them calls MPI_Pack, and ddtc must have packed for it.
# ddtc does not pack messages under MPICH 3.4.1 and Open MPI 4.1.0 of Debian 11, so the programs also
# run under MPICH 5.0.2 from PyPI, where ddtc must have packed every message of one program, and
# messages of another by the shipped policy.
#
#   tests/old.sh [--suite NAME] [DIR]
#
# --suite: the release of Debian, such as trixie [bullseye]
# DIR: the folder of a release, which packaging/release.sh made. Without it the files are built
#
# It needs an x86-64 machine, root, for a chroot, and debootstrap, which takes packages from the
# mirror of this system.
set -euo pipefail
fail() { echo "error: $*" >&2; exit 1; }
suite=bullseye
if [ "${1-}" = --suite ]; then
    [ -n "${2-}" ] || fail "--suite needs a value, a release of Debian such as trixie: tests/old.sh [--suite NAME] [DIR]"
    suite=$2
    shift 2
fi
release=${1-}
[ -z "$release" ] || [ -f "$release/SHA256SUMS" ] || fail "$release: no folder of a release: give one that packaging/release.sh made, or none"
case $release in '' | /*) ;; *) release=$PWD/$release ;; esac
cd "$(dirname "$0")/.."

[ "$(id -u)" = 0 ] || fail "root is needed, to make a root file system and run programs in it: run this as root"
[ "$(uname -m)" = x86_64 ] || fail "this machine is $(uname -m), and the MPI wheel and the root are those of x86-64: run this on such a machine"
command -v debootstrap >/dev/null || fail "debootstrap is missing: apt-get install debootstrap"
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/old"
target=$(cd "$target" && pwd)
work=$target/old
root=$work/$suite

if [ -z "$release" ]; then
    release=$work/release
    rm -rf "$release"
    packaging/prefixes.sh --out "$release"
    packaging/deb.sh --out "$release" --portable
    packaging/wheel.sh --out "$release" --portable
fi

# debootstrap does not find that automake is what libopenmpi-dev needs under another name.
packages=mpich,libmpich-dev,openmpi-bin,libopenmpi-dev,g++,automake,python3-venv
if [ "$(cat "$root/.ready" 2>/dev/null)" != "$packages" ]; then
    rm -rf "$root"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -m 1 '/debian/*$') || fail "the configuration of apt names no mirror of Debian: add one to /etc/apt/sources.list"
    mkdir -p "$work/packages"
    # debootstrap has a script for each suite that it knows. Those of newer suites are alike.
    script=/usr/share/debootstrap/scripts/$suite
    [ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
    debootstrap --variant=minbase --cache-dir="$work/packages" --include="$packages" "$suite" "$root" "$mirror" "$script" >"$work/debootstrap.log" 2>&1 ||
        { tail -n 5 "$work/debootstrap.log" >&2; fail "the root of Debian $suite could not be made (no network? no release of that name?): the whole output is in $work/debootstrap.log"; }
    # Launchers look up the name of this machine.
    printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$root/etc/hosts"
    echo "$packages" >"$root/.ready"
fi

# The wheel of MPICH, by the hash that preload/tests/hosts/wheels.txt has. A zip file as Python
# unpacks it has no modes.
read -r _ package version hash _ < <(grep '^mpich ' preload/tests/hosts/wheels.txt)
rm -rf "$root/root/ddtc-test"
inside=$root/root/ddtc-test
mkdir -p "$inside"
wheels=$target/ddtc-hosts/wheels
wheel=$wheels/$package-$version-py3-none-manylinux_2_28_x86_64.whl
[ -f "$wheel" ] || python3 -m pip download --quiet --no-deps --dest "$wheels" "$package==$version"
echo "$hash  $wheel" | sha256sum --check --quiet || fail "$wheel has another hash than preload/tests/hosts/wheels.txt says: remove the file, and run this again"
python3 -m zipfile -e "$wheel" "$inside/wheel"
mv "$inside/wheel/$package-$version.data/data" "$inside/mpich5"
chmod -R a+x "$inside/mpich5/bin"
cp "$release"/ddtc-*-"$(uname -m)"-linux-gnu.tar.gz "$release"/ddtc_*_amd64.deb "$release"/ddtc-*_x86_64.whl "$inside/"
mkdir -p "$inside/yaksa/tests"
cp -r yaksa/tests/c "$inside/yaksa/tests/"
cp tests/old/{column.c,many.c,inside.sh} preload/tests/c/throw.cpp preload/tests/c/thrown.cpp capi/tests/c/{kinds.c,check.h,integers.h} "$inside/"

# Processes that the programs leave end with the namespace, and so do the mounts. MPI libraries look
# at /sys, and glibc 2.31 makes shared memory only in a file system of its kind.
unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" sh -eu -c '
    mount -t sysfs sys "$1/sys"
    mount -t tmpfs shm "$1/dev/shm"
    exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C sh /root/ddtc-test/inside.sh
' sh "$root"
