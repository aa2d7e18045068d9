#!/usr/bin/env bash
# Builds Open MPI 4.1.4 with the patches in packaging/openmpi, and runs Open MPI's own datatype
# tests and other tests with it. One patch, mover-provider.patch, lets a library register as a
# "mover provider", whose functions Open MPI then calls to pack and unpack.
# packaging/openmpi/provider.c is such a provider, which packs and unpacks by ddtc. See
# packaging/openmpi/README.md.
#
# In the following, "the preload library inside" means that ddtc's preload library packs and unpacks
# the bytes of Open MPI's own requests, through a hook in Open MPI's convertors.
#
#   tests/openmpi.sh
#       Builds Open MPI, compares what Open MPI's functions and the provider pack and unpack, shows
#       the truncation fault with and without its patch, and runs Open MPI's datatype tests three
#       times: on the unmodified library, with the provider, and with the preload library inside.
#       If an earlier run was interrupted, this command continues it.
#   tests/openmpi.sh --cost
#       Counts the instructions of the functions that every request calls: without
#       mover-provider.patch, with the patch, and with the provider.
#   tests/openmpi.sh --suites [REGEX]
#       Runs MPICH's tests in the folders datatype, pt2pt, coll, rma, io and part under the pinned
#       Open MPI 5 wheel, each without and with the preload library inside. A test that passes
#       without it must also pass with it. `./test.sh inside` installs the wheel. If an earlier run
#       with the same preload library was interrupted, this command continues it.
#   tests/openmpi.sh --release ARCHIVE
#       Builds the release of Open MPI 5.0 or 6.0 whose sources are in this archive. Shows the
#       truncation fault with and without packaging/openmpi/truncation-5.patch, runs Open MPI's
#       datatype tests on the unmodified library and with the preload library inside, and runs the
#       matrix of docs/LIBRARIES.md on the release.
#
#   tests/openmpi.sh --movers ARCHIVE [--cost | --times]
#       Builds Open MPI 6.0, whose sources are in this archive, with
#       packaging/openmpi/mover-provider-6.patch and two small patches. Compares what its own datatype
#       engine and the provider pack and unpack, and runs its datatype tests and those of mpi4py without
#       the provider and with it. With --cost, counts instructions instead, as for 4.1.4. With
#       --times, measures the layouts of ddtc's benchmark without the provider and with it.
#
# DDTC_OPENMPI_CACHE: folder for sources, builds and results [target/ddtc-openmpi; with --release or
# --movers a folder in ~/.cache that has the name of the archive]. DDTC_OPENMPI_LIBRARIES: a folder with
# libddtc.so and libddtc_preload.so to test instead of the two that cargo builds.
# DDTC_OPENMPI_MIRROR: mirror of Debian from which the source package is fetched [the mirror that the
# system uses]. DDTC_OPENMPI_JOBS: number of compilers that run at the same time [the number of
# cores].
set -euo pipefail
cd "$(dirname "$0")/.."

fail() { echo "error: $*" >&2; exit 1; }
step() { printf '== %s (%ss)\n' "$*" "$SECONDS"; }

cost= suites= only= archive= movers= times=
case ${1-} in
    '') ;;
    --cost) cost=1 ;;
    --suites) suites=1 only=${2-} ;;
    --release | --movers)
        case ${2-} in /*) archive=$2 ;; *) archive=$OLDPWD/${2-} ;; esac
        [ -f "$archive" ] || fail "$1 ${2-}: no such file: give an archive of the sources of Open MPI 5.0 or 6.0"
        [ "$1" = --release ] || movers=1
        case $movers${3-} in
            1--cost) cost=1 ;;
            1--times) times=1 ;;
            1 | '') ;;
            *) fail "$1 $2 $3: no such argument: give --cost or --times after the archive, or nothing" ;;
        esac
        ;;
    *) fail "$1: no such argument: give --cost, or --suites [REGEX], or --release ARCHIVE, or --movers ARCHIVE [--cost | --times], or nothing" ;;
esac

here=$PWD/tests/openmpi
# shellcheck source=tests/debian.sh
. "$here/../debian.sh"
packaging=$PWD/packaging/openmpi
header=$PWD/capi/include
target=${CARGO_TARGET_DIR:-$PWD/target}
cache=$target/ddtc-openmpi
[ -z "$archive" ] || cache=$(folder_of_archive "$archive" "ddtc-openmpi${movers:+-movers}")
cache=${DDTC_OPENMPI_CACHE:-$cache}
jobs=${DDTC_OPENMPI_JOBS:-$(nproc)}
take_cache DDTC_OPENMPI_CACHE
ours=$cache/ours

# shellcheck source=tests/openmpi/build.sh
. "$here/build.sh"

# Runs a command for at most 600 seconds, writes its output to $cache/$1.log, and prints the lines
# of the output that match the regular expression $2. If the command fails, the script ends with an
# error.
judge() {
    local log=$cache/$1.log lines=$2 status=0
    shift 2
    timeout 600 nice -n 10 "$@" >"$log" 2>&1 || status=$?
    grep -E "$lines" "$log" || true
    [ $status = 0 ] || { tail -n 20 "$log" >&2; fail "$* failed with status $status (124: it took longer than 600 s): above is the end of its output, all of which is in $log"; }
}

if [ -n "$archive" ]; then
    # shellcheck source=tests/openmpi/release.sh
    . "$here/release.sh"
    # shellcheck source=tests/openmpi/movers.sh
    . "$here/movers.sh"
    if [ -n "$movers" ]; then judge_movers; else judge_release; fi
    exit
fi
build_ours
if [ -n "$suites" ]; then
    "$here/suites.sh" "$cache" "$target/ddtc-hosts/openmpi" "$jobs" "$only"
    exit
fi
build_openmpi
sources=$(cat "$packaging/provider.c" "$here"/*.c "$here"/*.h "$header/ddtc.h" "$packaging"/*.patch | sha256sum | cut -c 1-16)
once programs "$sources" build_programs

if [ -n "$cost" ]; then
    "$here/cost.sh" "$cache"
    exit
fi

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_btl=self,vader
# Without this setting, mpiexec looks for the program ssh, which may not be installed, and fails.
export OMPI_MCA_plm=isolated
export LD_LIBRARY_PATH=$cache/install/lib:$ours
provider=$cache/programs/libddtc_provider.so
bin=$cache/programs

step "random types, generic and by ddtc, call by call"
for seed in 1 2 3; do
    judge "judge-$seed" 'types compared' "$bin/judge" 1500 "$seed"
done

step "messages with the provider on both ranks, and on one"
run=("$cache/install/bin/mpiexec" --allow-run-as-root)
# Open MPI names the folder of a session by a process number, and stops if a job that was aborted
# left a folder of the same name. So give each run of this script an empty folder for sessions.
export TMPDIR=$cache/sessions
rm -rf "$TMPDIR" && mkdir "$TMPDIR"
with=(-x "LD_PRELOAD=$provider" -x DDTC_PROVIDER_REPORT=1)
judge messages 'messages:|ddtc provider' "${run[@]}" -n 2 "${with[@]}" "$bin/messages"
[ "$(grep -c 'ddtc provider: .* sends [1-9].* receives [1-9].* packed [1-9].* unpacked [1-9]' "$cache/messages.log")" = 2 ] ||
    fail "the provider must have sent, received, packed and unpacked on both ranks, and its reports in $cache/messages.log say otherwise: see \`dispatch\` in packaging/openmpi/provider.c"
awk '/^ddtc provider/ && $4 != $8 { exit 1 }' "$cache/messages.log" || fail "each committed mover must be destroyed, and the numbers of commits and destructs differ in $cache/messages.log: see opal_datatype_release_mover in packaging/openmpi/mover-provider.patch"
judge one-side 'messages:|ddtc provider' "${run[@]}" -n 1 "${with[@]}" "$bin/messages" generic : -n 1 "$bin/messages" generic
judge other-side 'messages:|ddtc provider' "${run[@]}" -n 1 "$bin/messages" generic : -n 1 "${with[@]}" "$bin/messages" generic

step "a truncated message, with truncation.patch and without"
judge truncated 'error class' "${run[@]}" -n 2 "$bin/truncated"
status=0
timeout 600 "${run[@]}" -x "LD_PRELOAD=$cache/faulty/libmpi.so.40" -n 2 "$bin/truncated" >"$cache/truncated-unpatched.log" 2>&1 || status=$?
grep 'error class' "$cache/truncated-unpatched.log" || true
# The fault of truncated messages is in the code by which Open MPI reads a message from the memory
# of the sending process (its "get"). If the kernel does not allow that, for example because ptrace
# is forbidden, Open MPI copies messages in another way, and the fault cannot appear.
[ $status != 0 ] || echo "note: the fault did not appear without the patch; it cannot appear if the kernel does not let processes read each other's memory"

step "Open MPI's own datatype tests: bare, with the provider, with the preload library inside"
"$here/own.sh" "$cache" "provider=$provider" "inside=$ours/libddtc_preload.so"
