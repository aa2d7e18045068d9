# shellcheck shell=bash

# Functions of tests/runtime.sh that build MPICH and the programs of the test in the folder $cache.
# tests/runtime.sh sources this file. Steps that take long are skipped if an earlier run has done
# them (see the function `once` in tests/debian.sh). Before it sources this file, the script must
# define $cache, $here (tests/runtime), $jobs, $archive, $target, fail and step, and must source
# tests/debian.sh.

version=4.0.2-3
packages=(gcc g++ make perl python3 dpkg-dev libfabric-dev libhwloc-dev libpsm-infinipath1-dev libpsm2-dev librdmacm-dev libibverbs-dev)
orig_sha256=b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860

fetch() {
    source_package mpich "$version" "$orig_sha256" "${DDTC_RUNTIME_MIRROR:-}"
}

# Finds out from the sources which version of MPICH they are, in which folder yaksa is, whether the
# tests of yaksa are there, and which options MPICH's configure needs.
describe_source() {
    if [ -n "$archive" ]; then
        version=$(sed -n 's/^m4_define(\[MPICH_VERSION_m4\],\[\(.*\)\]).*/\1/p' "$cache/source/maint/version.m4")
        [ -n "$version" ] || fail "$cache/source/maint/version.m4 names no version of MPICH: --mpich must name a release archive of MPICH"
    fi
    yaksa=$cache/source/modules/yaksa
    [ -d "$yaksa" ] || yaksa=$cache/source/src/mpi/datatype/typerep/yaksa
    [ -d "$yaksa" ] || fail "$cache/source has yaksa neither in modules/yaksa nor in src/mpi/datatype/typerep/yaksa: use a release of MPICH that has"
    yaksa_tests=
    if [ -d "$yaksa/test" ]; then yaksa_tests=$yaksa/test; else echo "note: these sources have no tests of yaksa"; fi
    # The configure of Debian's MPICH 4.0.2 has the option --with-hwloc-prefix. If a configure does
    # not have it, the option with the same purpose is --with-hwloc.
    if grep -q -e --with-hwloc-prefix "$cache/source/configure"; then
        mpich_options+=(--with-hwloc-prefix=system)
    else
        mpich_options+=(--with-hwloc=/usr)
    fi
    [ -e "$cache/source/src/mpi/romio/configure" ] || mpich_options+=(--disable-romio)
}

# Runs yaksa's configure, which makes the header yaksa.h. MPICH and its tests need nothing else of
# the original yaksa if they are built with another library.
configure_yaksa() {
    rm -rf "$cache/yaksa-build" && mkdir "$cache/yaksa-build" && cd "$cache/yaksa-build" &&
        "$yaksa/configure" --prefix="$cache/stock" --disable-static CFLAGS=-O2
}

# Builds and installs the original yaksa, which ddtc's library replaces. It has 600 generated files,
# whose compilation takes most of the time of a whole run.
build_stock() {
    cd "$cache/yaksa-build" && make -j "$jobs" && make install
}

# Builds the original yaksa without assertions, and puts it into $cache/stock-ndebug. Only the
# folders `frontend` and `util` are compiled again, because the code for types and their flattened
# forms is there. Compiling the generated files again would take too long.
build_stock_ndebug() {
    cd "$cache/yaksa-build" && find src/frontend src/util -name '*.lo' -delete && make -j "$jobs" CFLAGS="-O2 -DNDEBUG" libyaksa.la &&
        mkdir -p "$cache/stock-ndebug" && cp -L .libs/libyaksa.so.0 "$cache/stock-ndebug/libyaksa.so.0"
}

build_mixed() {
    "$cache/mpich/bin/mpicc" -O2 -Wall -Wextra -o "$cache/mixed" "$here/mixed.c"
}

# Makes $cache/face, a folder with ddtc's libyaksa.so.0 and its header in the places in which
# MPICH's configure looks for them. The header is the one that packaging/install.sh installs.
make_face() {
    rm -rf "$cache/face" && mkdir -p "$cache/face/include" "$cache/face/lib" &&
        cp "$here/../../yaksa/include/yaksa.h" "$cache/face/include" &&
        cp "$ours/libyaksa.so.0" "$cache/face/lib" && ln -s libyaksa.so.0 "$cache/face/lib/libyaksa.so"
}

# Builds MPICH with the yaksa that is installed in $2, and installs MPICH as $cache/$1. Further
# arguments are passed on to configure. LDFLAGS sets the run path of MPICH's libraries to the yaksa.
# libtool would do so only for a library that libtool has built, and ddtc's is not. At run time, the
# loader searches LD_LIBRARY_PATH before that run path.
build_mpich() {
    local name=$1 yaksa=$2
    shift 2
    rm -rf "$cache/$name" "$cache/$name-build" && mkdir "$cache/$name-build" && cd "$cache/$name-build" &&
        "$cache/source/configure" --prefix="$cache/$name" --with-yaksa="$yaksa" LDFLAGS="-Wl,-rpath,$yaksa/lib" "$@" && make -j "$jobs" && make install || return 1
    # In MPICH 4.1 and later, the configure of the library does not configure the tests. Do it here.
    [ -f test/mpi/Makefile ] && return
    mkdir -p test/mpi && cd test/mpi && "$cache/source/test/mpi/configure" --with-mpi="$cache/$name" --disable-fortran --disable-cxx --disable-romio
}

mpich_options=(--with-device=ch4:ofi --with-libfabric=/usr --disable-fortran --disable-cxx --enable-fast=O2 --disable-static)

# Builds yaksa's own tests and links them with the libyaksa in folder $1. yaksa's makefile is not
# used: it would start each test by a wrapper script that selects the library of its own build.
build_yaksa_tests() {
    local test=$yaksa_tests out=$cache/yaksa-tests name
    local flags=(-O2 -w -I "$cache/yaksa-build/src/frontend/include" -I "$test/dtpools/src" -I "$test/pack")
    rm -rf "$out" && mkdir "$out" || return 1
    for name in simple_test lbub test_contig threaded_test; do
        cc "${flags[@]}" -o "$out/$name" "$test/simple/$name.c" -L "$1" -lyaksa -lpthread -lm || return 1
    done
    cc "${flags[@]}" -o "$out/pack" "$test"/pack/*.c "$test"/dtpools/src/*.c -L "$1" -lyaksa -lpthread -lm || return 1
    for name in iov flatten; do
        cc "${flags[@]}" -o "$out/$name" "$test/$name/$name.c" "$test"/dtpools/src/*.c -L "$1" -lyaksa -lpthread -lm || return 1
    done
}

# Builds programs of MPICH's test/mpi in the folder in which the MPICH named $1 was built. Standard
# input has the names of the programs as FOLDER/PROGRAM. A program that does not compile gets
# the verdict "not built", for stock yaksa and for ddtc's.
build_mpi_tests() {
    local top=$cache/$1-build/test/mpi folder programs
    make -C "$top/util" -j "$jobs" && make -C "$top/dtpools" -j "$jobs" || return 1
    sort -u >"$cache/$1-programs"
    for folder in $(cut -d / -f 1 "$cache/$1-programs" | sort -u); do
        # Some cases name a file of the sources, and run in the folder of the build.
        find "$cache/source/test/mpi/$folder" -maxdepth 1 -name '*.txt' -exec cp {} "$top/$folder/" \;
        mapfile -t programs < <(sed -n "s,^$folder/,,p" "$cache/$1-programs")
        make -C "$top/$folder" -k -j "$jobs" "${programs[@]}" || echo "note: some programs of $folder could not be built; their cases get the verdict \`not built\`"
    done
}

build_witness() {
    cc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$cache/witness.so" "$here/witness.c" -ldl
}

# Copies ddtc's libyaksa.so.0 to $ours, under the name that the loader looks for. It is the release
# build of this tree, or the library in the folder that DDTC_RUNTIME_LIBRARY names.
build_ours() {
    local built=${DDTC_RUNTIME_LIBRARY:-}
    if [ -z "$built" ]; then
        step "libyaksa.so.0 of this tree"
        cargo build --release --package ddtc-yaksa
        built=$target/release
    fi
    mkdir -p "$ours"
    local file
    for file in "$built/libyaksa.so.0" "$built/libyaksa.so"; do
        if [ -e "$file" ]; then
            # A process may have mapped the file that is there. Do not write into it; rename a new
            # file to its name instead.
            cp -L "$file" "$ours/libyaksa.so.0.part" && mv -f "$ours/libyaksa.so.0.part" "$ours/libyaksa.so.0"
            return
        fi
    done
    fail "$built has neither libyaksa.so.0 nor libyaksa.so: if DDTC_RUNTIME_LIBRARY is set, it must name a folder with one"
}
