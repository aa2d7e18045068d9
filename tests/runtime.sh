#!/usr/bin/env bash
# Builds MPICH with ddtc's libyaksa.so.0 in place of yaksa, MPICH's own datatype engine, and runs
# the tests of yaksa and of MPICH with it. Below, "the original" is the libyaksa.so.0 that is built
# from yaksa's sources, and "ours" is ddtc's. See docs/TESTING.md, "A runtime".
#
#   tests/runtime.sh
#       Runs all tests with the original and with ours, and compares the results. A case that passes
#       with only one of the two is run five more times with both. If an earlier run was interrupted,
#       this command continues it.
#   tests/runtime.sh --sample
#       Builds MPICH with ours, and runs a fixed sample of cases, which must all pass
#       (tests/runtime/sample.txt). This is the part `runtime` of e2e.
#   tests/runtime.sh --bench
#       Measures MPICH with the original and with ours in turn, prints a summary and writes a table.
#   tests/runtime.sh --only REGEX
#       Runs only the cases whose names match REGEX, with the original and with ours.
#   --mpich ARCHIVE
#       Together with any of the commands above: uses the release of MPICH in this archive instead
#       of Debian's MPICH 4.0.2. A run without --sample and --bench then also runs the tests of
#       mpi4py with both libraries, and ends with jobs in which one rank uses the original and the
#       other rank uses ours.
#
# DDTC_RUNTIME_CACHE: folder for sources, builds and results [target/ddtc-runtime; with --mpich a
# folder in ~/.cache, named after the archive]. DDTC_RUNTIME_LIBRARY: a folder with the
# libyaksa.so.0 to test instead of the one that cargo builds. DDTC_RUNTIME_LIMIT: seconds after
# which a case counts as hanging [900]. DDTC_RUNTIME_RANKS: maximum number of ranks of a case [4].
# DDTC_RUNTIME_MIRROR: mirror of Debian from which the source package is fetched [the mirror that
# the system uses].
set -euo pipefail
cd "$(dirname "$0")/.."
export PYTHONDONTWRITEBYTECODE=1

fail() { echo "error: $*" >&2; exit 1; }
step() { printf '== %s (%ss)\n' "$*" "$SECONDS"; }

mode=whole
only=
archive=
while [ $# -gt 0 ]; do
    case $1 in
        --sample | --bench) mode=${1#--} ;;
        --only) [ $# -ge 2 ] || fail "--only needs a value, a regular expression for names of cases: give --only REGEX"; only=$2; shift ;;
        --mpich)
            [ $# -ge 2 ] || fail "--mpich needs a value, an archive of MPICH's sources: give --mpich ARCHIVE"
            case $2 in /*) archive=$2 ;; *) archive=$OLDPWD/$2 ;; esac
            [ -f "$archive" ] || fail "--mpich $2: no such file: name an archive of MPICH's sources"
            shift ;;
        *) fail "$1: no such argument: give --sample, --bench, --only REGEX, --mpich ARCHIVE, or nothing" ;;
    esac
    shift
done

here=$PWD/tests/runtime
# shellcheck source=tests/debian.sh
. "$here/../debian.sh"
target=${CARGO_TARGET_DIR:-$PWD/target}
cache=$target/ddtc-runtime
[ -z "$archive" ] || cache=$(folder_of_archive "$archive" ddtc-runtime)
cache=${DDTC_RUNTIME_CACHE:-$cache}
jobs=$(nproc)
take_cache DDTC_RUNTIME_CACHE

# shellcheck source=tests/runtime/build.sh
. "$here/build.sh"
# shellcheck source=tests/runtime/both.sh
. "$here/both.sh"

# Runs test cases with the original libyaksa.so.0 or with ours, in the build of MPICH that is named
# $judged. The label $1, `stock` or `ours`, chooses the library. Further arguments are passed on to
# run.py. If $judged is `mpi4py`, the cases are the tests of mpi4py.
judged=mpich
run_cases() {
    local label=$1 library=$ours
    shift
    [ "$label" = ours ] || library=$cache/stock/lib
    if [ "$judged" = mpi4py ]; then
        python3 "$here/python.py" --hosts "$target/ddtc-hosts" --family mpich --mpi "$cache/mpich/lib/libmpi.so" --library "$library/libyaksa.so.0" \
            --label "$label" --launch "$cache/mpich/bin/mpiexec" --ranks 1 --ranks 2 --set "LD_LIBRARY_PATH=$library" "$@"
        return
    fi
    nice -n 10 python3 "$here/run.py" --cache "$cache" --mpich "$judged" --label "$label" --library "$library" \
        --limit "${DDTC_RUNTIME_LIMIT:-900}" "$@"
}

need_packages "${packages[@]}"
[ $mode != whole ] || [ -z "$archive" ] || need_mpi4py mpich
python3 "$here/test_harness.py" 2>"$cache/harness.log" || fail "tests/runtime/test_harness.py fails, so the verdicts of run.py cannot be trusted: $cache/harness.log says which test failed; correct run.py, cases.py or compare.py"
ours=$cache/ours
build_ours
if [ -n "$archive" ]; then
    once source "$(sha256sum <"$archive" | cut -c 1-16)" unpack "$archive" maint/version.m4
else
    once source "mpich $version" fetch
fi
describe_source
once header "of yaksa in mpich $version" configure_yaksa
once witness "$(sha256sum <"$here/witness.c" | cut -c 1-16)" build_witness

case $mode in
    sample)
        once face "around our library" make_face
        once mpich-on-ours "${mpich_options[*]} --disable-romio" build_mpich mpich-on-ours "$cache/face" "${mpich_options[@]}" --disable-romio
        [ -z "$yaksa_tests" ] || once yaksa-tests "against ours" build_yaksa_tests "$cache/face/lib"
        once sample-programs "$(sha256sum <"$here/sample.txt" | cut -c 1-16), $(cat "$cache/mpich-on-ours.done")" build_mpi_tests mpich-on-ours \
            < <(sed -nE 's,^(mpi|nolocal) ([^ ]+) .*,\2,p' "$here/sample.txt")
        step "sample"
        rm -f "$cache/sample.tsv"
        judged=mpich-on-ours
        run_cases ours --results "$cache/sample.tsv" --list "$here/sample.txt" --must-pass
        ;;
    whole | bench)
        once stock "yaksa of mpich $version" build_stock
        once mpich "${mpich_options[*]}" build_mpich mpich "$cache/stock" "${mpich_options[@]}"
        ;;&
    whole)
        [ -z "$yaksa_tests" ] || once yaksa-tests "against stock" build_yaksa_tests "$cache/stock/lib"
        once programs "of test/mpi, $(cat "$cache/mpich.done")" build_mpi_tests mpich < <(python3 "$here/run.py" --cache "$cache" --mpich mpich --programs)
        judge_both "$cache/results.tsv" stock ours "mpich $version" ${only:+--only "$only"}
        if [ -n "$archive" ]; then
            judged=mpi4py
            judge_both "$cache/python.tsv" stock ours "mpi4py under mpich $version"
            once stock-ndebug "yaksa of mpich $version, without assertions" build_stock_ndebug
            once mixed "$(sha256sum <"$here/mixed.c" | cut -c 1-16)" build_mixed
            step "jobs whose ranks use different libraries"
            python3 "$here/mixed.py" --mpiexec "$cache/mpich/bin/mpiexec" --program "$cache/mixed" --ours "$ours" \
                "$cache/stock/lib" "$cache/stock-ndebug"
        fi
        ;;
    bench)
        "$here/bench.sh" "$cache" "$ours"
        ;;
esac
