#!/usr/bin/env bash
# Builds a release of MPICH 5 with packaging/mpich/cma.patch, and tests and measures the patch. ddtc
# is needed for the last column of --bench only. See packaging/mpich/README.md.
#
#   tests/mpich-cma.sh ARCHIVE
#       Sends messages of many pieces with several values of the variable that the patch adds, and
#       compares every byte. Then runs MPICH's own datatype and pt2pt tests on 2 ranks with the
#       patch off and on. A case that passes in only one of these ways is run five more times in
#       both. If an earlier run was interrupted, this command continues the tests of MPICH.
#   tests/mpich-cma.sh ARCHIVE --bench
#       Measures messages of many pieces with the patch off and on, and with CMA off, in turn, and
#       writes bench.csv in the folder of the builds. Needs both cores of the machine for itself.
#
# ARCHIVE has the sources of an unmodified release of MPICH 5. MPICH is built with an external yaksa,
# so that the datatype engine can be exchanged.
#
# DDTC_MPICH_CMA_CACHE: folder for sources, builds and results [a folder in ~/.cache that has the
# name of the archive]. DDTC_RUNTIME_LIBRARY: a folder with ddtc's libyaksa.so.0, which --bench then
# measures too. DDTC_MPICH_CMA_ROUNDS: number of processes for each variant of --bench [5].
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1 DDTC_RUNTIME_RANKS=2

fail() { echo "error: $*" >&2; exit 1; }
step() { printf '== %s (%ss)\n' "$*" "$SECONDS"; }

case ${1-} in /*) archive=$1 ;; *) archive=$OLDPWD/${1-} ;; esac
[ -f "$archive" ] || fail "${1-}: no such file: give the archive of MPICH's sources as the first argument"
mode=${2-}
case $mode in '' | --bench) ;; *) fail "$mode: no such argument: give --bench or nothing after the archive" ;; esac

here=$PWD/tests/runtime
packaging=$PWD/packaging/mpich
# shellcheck source=tests/debian.sh
. "$here/../debian.sh"
cache=${DDTC_MPICH_CMA_CACHE:-$(folder_of_archive "$archive" ddtc-mpich-cma)}
jobs=$(nproc)
take_cache DDTC_MPICH_CMA_CACHE
# shellcheck source=tests/runtime/build.sh
. "$here/build.sh"
# shellcheck source=tests/runtime/both.sh
. "$here/both.sh"

# The variable of the patch. The value 0 switches the patch off.
variable=MPIR_CVAR_CH4_IPC_CMA_DENSITY_MIN

# Unpacks the archive and applies the patch. extractcvars then writes the tables of variables again;
# a release contains these tables, which are made of comments in the sources.
unpack_and_patch() {
    unpack "$archive" maint/version.m4 && cd "$cache/source" && patch -p1 --fuzz=0 <"$packaging/cma.patch" && perl maint/extractcvars
}

build_pieces() {
    "$cache/mpich/bin/mpicc" -O2 -Wall -Wextra -Werror -o "$cache/pieces" "$packaging/pieces.c"
}

# Runs MPICH's own tests with the patch off or on, as the label $1 says. Further arguments are passed
# on to run.py.
run_cases() {
    local label=$1 value=0
    shift
    [ "$label" = off ] || value=$minimum
    nice -n 10 python3 "$here/run.py" --cache "$cache" --mpich mpich --label "$label" --library "$cache/stock/lib" --limit 900 \
        --set "$variable=$value" "$@"
}

need_packages "${packages[@]}"
once source "$(cat "$archive" "$packaging/cma.patch" | sha256sum | cut -c 1-16)" unpack_and_patch
describe_source
once header "of yaksa in mpich $version" configure_yaksa
once stock "yaksa of mpich $version" build_stock
once mpich "${mpich_options[*]} --disable-romio" build_mpich mpich "$cache/stock" "${mpich_options[@]}" --disable-romio
once pieces "$(sha256sum <"$packaging/pieces.c" | cut -c 1-16)" build_pieces
minimum=$(sed -n "/name *: $variable\$/,/description/s/.*default *: *//p" "$cache/source/src/mpid/ch4/shm/ipc/cma/cma_post.h")
[ -n "$minimum" ] || fail "src/mpid/ch4/shm/ipc/cma/cma_post.h of the patched sources has no variable $variable"
run=(env "LD_LIBRARY_PATH=$cache/stock/lib" "$cache/mpich/bin/mpiexec" -bind-to core -n 2)

if [ "$mode" = --bench ]; then
    python3 "$packaging/bench.py" --cache "$cache" --variable "$variable" --default "$minimum" --rounds "${DDTC_MPICH_CMA_ROUNDS:-5}" \
        ${DDTC_RUNTIME_LIBRARY:+--ours "$DDTC_RUNTIME_LIBRARY"}
    exit
fi

step "messages of many pieces, with the patch off, on, and for pieces of every length"
for value in 0 "$minimum" 1000000000; do
    timeout 600 nice -n 10 "${run[@]}" -genv "$variable" "$value" "$cache/pieces" check >"$cache/check-$value.log" 2>&1 ||
        { tail -n 20 "$cache/check-$value.log" >&2; fail "the check with $variable=$value failed: the whole output is in $cache/check-$value.log"; }
    echo "$variable=$value: $(cat "$cache/check-$value.log")"
done
once witness "$(sha256sum <"$here/witness.c" | cut -c 1-16)" build_witness
names='^mpi (datatype|pt2pt)/'
once programs "of test/mpi, $(cat "$cache/mpich.done")" build_mpi_tests mpich < <(python3 "$here/run.py" --cache "$cache" --mpich mpich --programs --only "$names")
judge_both "$cache/results.tsv" off on "mpich $version, patch off and on" --only "$names"
