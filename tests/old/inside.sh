#!/bin/sh
# Runs in the root that tests/old.sh makes: inside.sh NAME, the folder in the archive.
set -eu
cd /root/ddtc-test
fail() { echo "error: $*" >&2; exit 1; }
echo "glibc $(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)"

# As a stranger types it: unpack, extend the path, run a program.
tar -xf archive.tar.gz
export PATH="$PWD/$1/bin:$PATH"
prefix=$PWD/$1

# The C library, shared and static. The static library needs what its pkg-config file says.
cc -I "$prefix/include" -I . -o shared kinds.c -L "$prefix/lib" -lddtc -Wl,-rpath,"$prefix/lib"
./shared
# shellcheck disable=SC2046
cc -I "$prefix/include" -I . -o static kinds.c "$prefix/lib/libddtc.a" $(sed -n 's/^Libs.private: //p' "$prefix/lib/pkgconfig/ddtc.pc")
./static
echo "C library: shared and static"

# The command compiles layouts and compares what their code moves with the reference interpreter.
ddtc explain 'struct([1, 1], [0, 9], [int, double])' | grep '^code for pack: ' || fail "\`ddtc explain\` shows no code for a structure"
for type in 'vector(100, 3, 7, int)' 'indexed([3, 1, 4], [0, 5, 9], double)' 'struct([1, 1], [0, 9], [int, double])' \
    'hvector(20, 1, 100, vector(5, 2, 3, short))' overlap.vector; do
    said=$(ddtc check "$type")
    echo "$type: $said"
done
ddtc check --cases 200

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=^tcp OMPI_MCA_plm=isolated
export OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
# Runs a program on ranks, without the preload library and with it, and compares what it prints:
# same NAME RANKS PROGRAM.. .
same() {
    what=$1 ranks=$2
    shift 2
    timeout 60 $launcher -n "$ranks" "$@" >without 2>&1 || { cat without >&2; fail "$what fails without the preload library"; }
    # Convert everything from the first call on, whatever it gains.
    DDTC_POLICY=all DDTC_LAZY_THRESHOLD=0 timeout 60 ddtc preload --report report.json -- $launcher -n "$ranks" "$@" >with 2>&1 ||
        { cat with >&2; fail "$what fails with the preload library"; }
    sort without >without.sorted
    # The preload library says so if it does not know this release of the MPI library.
    grep -v '^ddtc: .* was not tried; ' with | sort >with.sorted
    cmp without.sorted with.sorted || { cat without with >&2; fail "$what prints something else with the preload library"; }
    cat without.sorted
}
# Prints a counter of the last report.
counter() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" report.json; }

for mpi in mpich openmpi mpich5; do
    # The programs of MPICH 5 are linked by hand: Debian's wrapper links a library of another name.
    case $mpi in
        mpich5)
            launcher=$PWD/mpich5/bin/mpiexec
            flags="-DMPICH_SKIP_MPICXX -I $PWD/mpich5/include" libraries="-L $PWD/mpich5/lib -lmpi" c=cc cxx=c++
            export LD_LIBRARY_PATH="$PWD/mpich5/lib" ;;
        *) launcher=mpiexec.$mpi flags='' libraries='' c=mpicc.$mpi cxx=mpicxx.$mpi ;;
    esac
    # shellcheck disable=SC2086
    for program in column.c throw.cpp thrown.cpp; do
        case $program in *.c) compiler=$c ;; *) compiler=$cxx ;; esac
        $compiler -O1 $flags -o "${program%.*}" $program $libraries
    done
    same "$mpi: column" 2 ./column
    [ "$(counter packs)" -gt 0 ] && [ "$(counter panics)" = 0 ] && [ "$(counter fallbacks)" = 0 ] ||
        { cat report.json >&2; fail "$mpi: the report above must have packs, and neither panics nor fallbacks"; }
    if [ $mpi = mpich5 ]; then [ "$(counter messages_packed)" = 40 ] || { cat report.json >&2; fail "$mpi: the report above must have 40 packed messages, since every message of column.c must be converted"; }; fi
    echo "$mpi: $(counter packs) packs, $(counter messages_packed) messages packed, $(counter hook_pieces_packed) pieces inside"
    for how in exception jump; do
        same "$mpi: throw $how" 1 ./throw $how
        for call in waitall sendrecv; do same "$mpi: thrown $how $call" 1 ./thrown $how $call; done
    done
    # `ddtc doctor` finds two MPI libraries here, and one that messages are not converted under, so it
    # has problems to report. Its self-test must pass, and the ranks must start.
    ddtc doctor -- $launcher -n 2 >doctor 2>&1 || true
    grep '^self-test .* compiled in' doctor && grep -q '^messages  .* by ddtc$' doctor || { cat doctor >&2; fail "$mpi: \`ddtc doctor\` must pass its self-test and find messages that are packed by ddtc, and printed what is above"; }
done
