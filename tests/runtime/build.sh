# shellcheck shell=bash
# What tests/runtime.sh builds in $cache, each step once. Sourced by that script. Needs $cache,
# $here (this folder), $jobs, $archive, fail, step and the functions of tests/debian.sh.

version=4.0.2-3
packages=(gcc g++ make perl python3 dpkg-dev libfabric-dev libhwloc-dev libpsm-infinipath1-dev libpsm2-dev librdmacm-dev libibverbs-dev)
orig_sha256=b27039f964afeb6b8a3e009c56b441cbe368c26d6d6476ad3bb7190996875860

fetch() {
    source_package mpich "$version" "$orig_sha256" "${DDTC_RUNTIME_MIRROR:-}"
}

# Reads from the sources the version of MPICH, where yaksa is, whether its tests are there, and
# which options configure needs.
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
    # Debian's 4.0.2 has the options of hwloc's own macros.
    if grep -q -e --with-hwloc-prefix "$cache/source/configure"; then
        mpich_options+=(--with-hwloc-prefix=system)
    else
        mpich_options+=(--with-hwloc=/usr)
    fi
    [ -d "$cache/source/src/mpi/romio" ] || mpich_options+=(--disable-romio)
}

# Makes yaksa's header as its configure does. Besides a library, MPICH and the tests need nothing
# else of yaksa.
configure_yaksa() {
    rm -rf "$cache/yaksa-build" && mkdir "$cache/yaksa-build" && cd "$cache/yaksa-build" &&
        "$yaksa/configure" --prefix="$cache/stock" --disable-static CFLAGS=-O2
}

# Builds the library that ours replaces: 600 generated files, which take most of the time of a whole
# run.
build_stock() {
    cd "$cache/yaksa-build" && make -j "$jobs" && make install
}

# Builds the same library without assertions, in $cache/stock-ndebug. Types and their flattened
# forms are in `frontend` and `util`. The generated files, which take most of the time, are not
# built again.
build_stock_ndebug() {
    cd "$cache/yaksa-build" && find src/frontend src/util -name '*.lo' -delete && make -j "$jobs" CFLAGS="-O2 -DNDEBUG" libyaksa.la &&
        mkdir -p "$cache/stock-ndebug" && cp -L .libs/libyaksa.so.0 "$cache/stock-ndebug/libyaksa.so.0"
}

build_mixed() {
    "$cache/mpich/bin/mpicc" -O2 -Wall -Wextra -o "$cache/mixed" "$here/mixed.c"
}

# Makes the prefix that MPICH's configure expects of our library. It contains the header that
# packaging/install.sh installs.
make_face() {
    rm -rf "$cache/face" && mkdir -p "$cache/face/include" "$cache/face/lib" &&
        cp "$here/../../yaksa/include/yaksa.h" "$cache/face/include" &&
        cp "$ours/libyaksa.so.0" "$cache/face/lib" && ln -s libyaksa.so.0 "$cache/face/lib/libyaksa.so"
}

# Builds MPICH with the yaksa of prefix $2 and installs it as $cache/$1. Further arguments go to
# configure. LDFLAGS sets the run path that a libtool library would provide, which ours is not.
# LD_LIBRARY_PATH is searched before it.
build_mpich() {
    local name=$1 yaksa=$2
    shift 2
    rm -rf "$cache/$name" "$cache/$name-build" && mkdir "$cache/$name-build" && cd "$cache/$name-build" &&
        "$cache/source/configure" --prefix="$cache/$name" --with-yaksa="$yaksa" LDFLAGS="-Wl,-rpath,$yaksa/lib" "$@" && make -j "$jobs" && make install || return 1
    # From 4.1 on, the tests are not configured together with the library.
    [ -f test/mpi/Makefile ] && return
    mkdir -p test/mpi && cd test/mpi && "$cache/source/test/mpi/configure" --with-mpi="$cache/$name" --disable-fortran --disable-cxx --disable-romio
}

mpich_options=(--with-device=ch4:ofi --with-libfabric=/usr --disable-fortran --disable-cxx --enable-fast=O2 --disable-static)

# Builds yaksa's tests, linked with the library in folder $1. yaksa's own makefile would make
# wrappers that put its own library first.
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

# Builds programs of MPICH's test/mpi in the build of MPICH $1, whose names FOLDER/PROGRAM are read
# from standard input. A program that does not compile is reported as not built with each library.
build_mpi_tests() {
    local top=$cache/$1-build/test/mpi folder programs
    make -C "$top/util" -j "$jobs" && make -C "$top/dtpools" -j "$jobs" || return 1
    sort -u >"$cache/$1-programs"
    for folder in $(cut -d / -f 1 "$cache/$1-programs" | sort -u); do
        mapfile -t programs < <(sed -n "s,^$folder/,,p" "$cache/$1-programs")
        make -C "$top/$folder" -k -j "$jobs" "${programs[@]}" || echo "note: some programs of $folder could not be built; their cases get the verdict \`not built\`"
    done
}

build_witness() {
    cc -O2 -Wall -Wextra -Werror -shared -fPIC -o "$cache/witness.so" "$here/witness.c" -ldl
}

# Copies our release library, or the one that the caller names, to $ours under the name that the
# loader looks for.
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
            # Do not write into a file that a process may have mapped: replace it.
            cp -L "$file" "$ours/libyaksa.so.0.part" && mv -f "$ours/libyaksa.so.0.part" "$ours/libyaksa.so.0"
            return
        fi
    done
    fail "$built has neither libyaksa.so.0 nor libyaksa.so: if DDTC_RUNTIME_LIBRARY is set, it must name a folder with one"
}
