#!/bin/sh
# Runs in the root that tests/old.sh makes, in whose folder /root/ddtc-test are the files of a
# release.
set -eu
cd /root/ddtc-test
fail() { echo "error: $*" >&2; exit 1; }
echo "glibc $(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)"

# As a stranger types it: unpack, extend the path, run a program.
tar -xf ddtc-[0-9]*.tar.gz
rm ddtc-[0-9]*.tar.gz
prefix=$(echo "$PWD"/ddtc-[0-9]*-linux-gnu)
before=$PATH
export PATH="$prefix/bin:$PATH"

# The C library, shared and static. The static library needs what its pkg-config file says.
cc -I "$prefix/include" -I . -o shared kinds.c -L "$prefix/lib" -lddtc -Wl,-rpath,"$prefix/lib"
./shared
tar -xf ddtc-static-*.tar.gz
library=$(echo ddtc-static-*-linux-gnu)
# shellcheck disable=SC2046
cc -I "$library/include" -I . -o static kinds.c "$library/lib/libddtc.a" $(sed -n 's/^Libs.private: //p' "$library/lib/pkgconfig/ddtc.pc")
./static
echo "C library: shared and static"

# The replacement for yaksa, by one of its test programs, which include ../../include/yaksa.h.
tar -xf ddtc-yaksa-*.tar.gz
library=$(echo "$PWD"/ddtc-yaksa-*-linux-gnu/lib/ddtc/yaksa)
ln -s "$library/include" yaksa/include
cc -std=gnu11 -pthread -o moves yaksa/tests/c/moves.c -L "$library/lib" -lyaksa -Wl,-rpath,"$library/lib"
./moves
echo "replacement for yaksa: packs and unpacks"

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
# same SETTINGS NAME RANKS PROGRAM.. .
same() {
    settings=$1 what=$2 ranks=$3
    shift 3
    timeout 60 $launcher -n "$ranks" "$@" >without 2>&1 || { cat without >&2; fail "$what fails without the preload library"; }
    # shellcheck disable=SC2086
    env $settings timeout 60 ddtc preload --report report.json -- $launcher -n "$ranks" "$@" >with 2>&1 ||
        { cat with >&2; fail "$what fails with the preload library"; }
    sort without >without.sorted
    # The preload library says so if it does not know this release of the MPI library.
    grep -v '^ddtc: .* was not tried; ' with | sort >with.sorted
    cmp without.sorted with.sorted || { cat without with >&2; fail "$what prints something else with the preload library"; }
    cat without.sorted
}
# Prints a counter of the last report.
counter() { sed -n "s/^ *\"$1\": \([0-9]*\),*$/\1/p" report.json; }

# Convert everything from the first call on, whatever it gains.
all="DDTC_POLICY=all DDTC_LAZY_THRESHOLD=0"

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
    for program in column.c many.c throw.cpp thrown.cpp; do
        case $program in *.c) compiler=$c ;; *) compiler=$cxx ;; esac
        $compiler -O1 $flags -o "${program%.*}" $program $libraries
    done
    same "$all" "$mpi: column" 2 ./column
    [ "$(counter packs)" -gt 0 ] && [ "$(counter panics)" = 0 ] && [ "$(counter fallbacks)" = 0 ] ||
        { cat report.json >&2; fail "$mpi: the report above must have packs, and neither panics nor fallbacks"; }
    if [ $mpi = mpich5 ]; then [ "$(counter messages_packed)" = 40 ] || { cat report.json >&2; fail "$mpi: the report above must have 40 packed messages, since every message of column.c must be converted"; }; fi
    echo "$mpi: $(counter packs) packs, $(counter messages_packed) messages packed, $(counter hook_pieces_packed) pieces inside"
    # By the shipped policy and without a variable, as a stranger runs it for the first time: times
    # that earlier runs have kept would decide too.
    rm -rf "$HOME/.cache/ddtc"
    same "" "$mpi: many" 2 ./many
    [ "$(counter panics)" = 0 ] || { cat report.json >&2; fail "$mpi: the report above must have no panics"; }
    if [ $mpi = mpich5 ]; then [ "$(counter messages_packed)" -gt 0 ] || { cat report.json >&2; fail "$mpi: the report above must have packed messages, which the shipped policy converts"; }; fi
    echo "$mpi: $(counter messages_packed) messages packed by the shipped policy"
    for how in exception jump; do
        same "$all" "$mpi: throw $how" 1 ./throw $how
        for call in waitall sendrecv; do same "$all" "$mpi: thrown $how $call" 1 ./thrown $how $call; done
    done
    # `ddtc doctor` finds two MPI libraries here, and one that messages are not converted under, so it
    # has problems to report. Its self-test must pass, and the ranks must start.
    ddtc doctor -- $launcher -n 2 >doctor 2>&1 || true
    grep '^self-test .* compiled in' doctor && grep -q '^messages  .* by ddtc$' doctor || { cat doctor >&2; fail "$mpi: \`ddtc doctor\` must pass its self-test and find messages that are packed by ddtc, and printed what is above"; }
done

# The Debian package and the wheel, without the archive on the path. Their commands find their own
# preload library.
export PATH="$before"
launcher=$PWD/mpich5/bin/mpiexec
# Checks the command ddtc: works WHAT FOLDER, in which its preload library must be.
works() {
    ddtc preload --dry-run -- true | grep -q "$2/libddtc_preload.so" || fail "\`ddtc preload --dry-run\` of $1 must name $2/libddtc_preload.so, and printed: $(ddtc preload --dry-run -- true)"
    ddtc doctor -- "$launcher" -n 2 >doctor 2>&1 || true
    grep -q '^self-test .* compiled in' doctor && grep -q '^messages  .* by ddtc$' doctor || { cat doctor >&2; fail "$1: \`ddtc doctor\` must pass its self-test and find messages that are packed by ddtc, and printed what is above"; }
    rm -rf "$HOME/.cache/ddtc"
    same "" "$1: many" 2 ./many
    [ "$(counter messages_packed)" -gt 0 ] || { cat report.json >&2; fail "$1: the report above must have packed messages"; }
    echo "$1: $(counter messages_packed) messages packed by the shipped policy"
}
dpkg -i ddtc_*.deb >dpkg 2>&1 || { cat dpkg >&2; fail "dpkg -i ddtc_*.deb failed: above is its output"; }
works "Debian package" /usr/lib
cc -I . -o packaged kinds.c -lddtc
./packaged
dpkg -r ddtc >dpkg 2>&1 || { cat dpkg >&2; fail "dpkg -r ddtc failed: above is its output"; }
python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    python3 -m venv environment
    environment/bin/pip install --quiet --no-index --disable-pip-version-check ddtc-*.whl
    PATH="$PWD/environment/bin:$before"
    works wheel "$PWD/environment/lib/python$python/site-packages/ddtc/bin"
    environment/bin/python -c 'import ddtc; assert ddtc.Datatype.vector(3, 1, 4, ddtc.DOUBLE).size == 24'
else
    python3 -m venv environment
    ! environment/bin/pip install --quiet --no-index --disable-pip-version-check ddtc-*.whl >pip 2>&1 || fail "pip installed the wheel with Python $python, and it needs 3.11 or newer"
    grep -q 'is not a supported wheel on this platform' pip || { cat pip >&2; fail "pip must say that the wheel is not for Python $python, and printed what is above"; }
    echo "wheel: refused by pip, since it needs Python 3.11 or newer, and this system has $python"
fi
