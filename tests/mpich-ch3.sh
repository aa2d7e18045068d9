#!/usr/bin/env bash
# Builds a release of MPICH with the device ch3:nemesis, as some distributions do, and runs the
# matrix of docs/LIBRARIES.md on it, over shared memory and over TCP. The wheels of the matrix all
# have the device ch4.
#
#   tests/mpich-ch3.sh ARCHIVE
#
# ARCHIVE has the sources of a release of MPICH. If an earlier run was interrupted, this command
# continues the build. With DDTC_BLESS=1, the verdicts are written into hosts/src/tried.txt.
#
# DDTC_MPICH_CH3_CACHE: folder for sources and builds [a folder in ~/.cache that has the name of the
# archive]. DDTC_MPICH_CH3_JOBS: number of compilers that run at the same time [the number of cores].
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 1; }
step() { printf '== %s (%ss)\n' "$*" "$SECONDS"; }

case ${1-} in /*) archive=$1 ;; *) archive=$OLDPWD/${1-} ;; esac
[ -f "$archive" ] || fail "${1-}: no such file: give the archive of MPICH's sources as the only argument"
[ $# = 1 ] || fail "$2: no such argument: give the archive alone"

# shellcheck source=tests/debian.sh
. tests/debian.sh
cache=${DDTC_MPICH_CH3_CACHE:-$(folder_of_archive "$archive" ddtc-mpich-ch3)}
jobs=${DDTC_MPICH_CH3_JOBS:-$(nproc)}
take_cache DDTC_MPICH_CH3_CACHE

options=(--with-device=ch3:nemesis --disable-fortran --disable-cxx --enable-fast=O2 --disable-static)

build() {
    rm -rf "$cache/build" "$cache/mpich" && mkdir "$cache/build" &&
        (cd "$cache/build" && "$cache/source/configure" --prefix="$cache/mpich" "${options[@]}") &&
        make -C "$cache/build" -j "$jobs" && make -C "$cache/build" install
}

need_packages gcc g++ make perl python3
once source "$(sha256sum <"$archive" | cut -c 1-16)" unpack "$archive" maint/version.m4
# Some archives have files of ROMIO, but not its configure.
[ -e "$cache/source/src/mpi/romio/configure" ] || options+=(--disable-romio)
once mpich "${options[*]}" build

step "the matrix of docs/LIBRARIES.md on this release"
DDTC_MATRIX="mpich=$cache/mpich" DDTC_TRANSPORTS="${DDTC_TRANSPORTS:-shared tcp}" \
    cargo test --package ddtc-e2e --test hosts -- matrix::what_is --nocapture
