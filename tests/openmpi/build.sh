# shellcheck shell=bash

# Functions with which tests/openmpi.sh builds in the folder $cache. That script sources this file.
# Steps that take long are done only once (see the function `once` in tests/debian.sh). Before it
# sources this file, the script must define $cache, $here (the folder of this file), $packaging,
# $header, $ours, $jobs, $target, fail and step, and must source tests/debian.sh.

version=4.1.4-3
orig_sha256=ddaee7dbdb01eb4fab1fda5b5e03e8bbff026711806c095c1f39bb410f99f263
# Options of Open MPI's configure: take PMIx, hwloc and libevent from Open MPI's own sources, use
# only shared memory and TCP as transports, build only the C interface, and link all components into
# the library. The build then takes three minutes on two idle cores.
openmpi_options=(--disable-dlopen --disable-static --enable-shared --disable-mpi-fortran --disable-mpi-cxx --disable-oshmem --disable-io-romio
    --with-pmix=internal --with-libevent=internal --with-hwloc=internal --disable-hwloc-pci --disable-libxml2 --without-verbs --without-ucx
    --without-ofi --without-psm --without-psm2 --without-slurm --without-memory-manager)

# Fetches Open MPI's sources. Debian's patches change input files of autotools, but not the files
# that autotools generate from them. Giving all files the same date keeps make from generating these
# again.
fetch() {
    source_package openmpi "$version" "$orig_sha256" "${DDTC_OPENMPI_MIRROR:-}" &&
        find "$cache/source" -type f -exec touch -d 2022-06-01 {} +
}

configure_openmpi() {
    rm -rf "$cache/build" && mkdir "$cache/build" &&
        (cd "$cache/build" && "$cache/source/configure" --prefix="$cache/install" "${openmpi_options[@]}")
}

# Builds libopen-pal without the patches and keeps it in $cache/stock, so that what
# mover-provider.patch costs can be measured in comparison with it.
build_stock() {
    make -C "$cache/build/opal" -j "$jobs" && rm -rf "$cache/stock" && mkdir "$cache/stock" &&
        cp -d "$cache"/build/opal/.libs/libopen-pal.so* "$cache/stock"
}

apply() {
    patch -p1 --forward --fuzz=0 -d "$cache/source" <"$packaging/$1.patch"
}

build_patched() {
    apply mover-provider && make -C "$cache/build" -j "$jobs" && rm -rf "$cache/faulty" && mkdir "$cache/faulty" &&
        cp -d "$cache"/build/ompi/.libs/libmpi.so* "$cache/faulty"
}

install_openmpi() {
    apply truncation && make -C "$cache/build" -j "$jobs" install
}

# Prints a hash of the changes in the patch $1. The text that precedes the first changed file in the
# patch is not part of the hash.
digest() {
    sed '/^--- /,$!d' "$packaging/$1.patch" | sha256sum | cut -c 1-16
}

# Fetches, patches, builds and installs Open MPI, in steps that are done once. If a patch has
# changed since the last run, first restores the files that the patches change, and applies the
# patches again.
build_openmpi() {
    local movers truncation
    movers=$(digest mover-provider)
    truncation=$(digest truncation)
    # A hash differs from that of the last run, so the sources were changed by another version of a
    # patch. Restore only the files that are in the patches, and keep the rest of the build.
    if [ -e "$cache/patched.done" ] && [ "$(cat "$cache/patched.done" "$cache/install.done" 2>/dev/null)" != "$movers"$'\n'"$movers $truncation" ]; then
        rm -f "$cache"/{restored,patched,install}.done
        once restored "sources as Debian has them" restore
    fi
    once source "openmpi $version" fetch
    once configured "${openmpi_options[*]}" configure_openmpi
    once stock "libopen-pal of openmpi $version" build_stock
    once patched "$movers" build_patched
    once install "$movers $truncation" install_openmpi
}

# Restores the files that the patches change: unpacks the source package into another folder, and
# copies these files from it.
restore() {
    local files
    mapfile -t files < <(sed -n 's,^+++ b/,,p' "$packaging"/{mover-provider,truncation}.patch)
    dpkg-source --no-check -x "$cache/openmpi_$version.dsc" "$cache/fresh" &&
        (cd "$cache/fresh" && cp --parents "${files[@]}" "$cache/source") && rm -rf "$cache/fresh" && (cd "$cache/source" && touch "${files[@]}")
}

build_programs() {
    local out=$cache/programs include name
    rm -rf "$out" && mkdir "$out" || return 1
    include=(-I "$cache/source" -I "$cache/build" -I "$cache/source/opal/include" -I "$cache/build/opal/include"
        -I "$cache/source/ompi/include" -I "$cache/build/ompi/include" -I "$cache/source/orte/include" -I "$cache/build/orte/include"
        -I "$cache/build/opal/mca/hwloc/hwloc201/hwloc/include" -I "$cache/source/opal/mca/hwloc/hwloc201/hwloc/include"
        -I "$cache/source/opal/mca/event/libevent2022/libevent" -I "$cache/source/opal/mca/event/libevent2022/libevent/include"
        -I "$cache/build/opal/mca/event/libevent2022/libevent/include")
    local flags=(-std=gnu11 -O2 -g -Wall -Wextra -Wno-sign-compare -Wno-unused-parameter)
    cc "${flags[@]}" -fvisibility=hidden -shared -fPIC "${include[@]}" -I "$header" -o "$out/libddtc_provider.so" "$packaging/provider.c" \
        -L "$ours" -lddtc || return 1
    # A provider that is linked into the programs judge and cost-provider must not register itself
    # when the program starts. These programs do so at the right time by calling
    # ddtc_provider_register.
    cc "${flags[@]}" -DDDTC_PROVIDER_LINKED -c "${include[@]}" -I "$header" -o "$out/provider.o" "$packaging/provider.c" || return 1
    local with=("$out/provider.o" -L "$cache/install/lib" -Wl,-rpath-link,"$cache/install/lib" -lopen-pal -L "$ours" -lddtc)
    cc "${flags[@]}" "${include[@]}" -o "$out/judge" "$here/judge.c" "${with[@]}" -lmpi || return 1
    cc "${flags[@]}" "${include[@]}" -o "$out/cost" "$here/cost.c" -L "$cache/install/lib" -lopen-pal || return 1
    cc "${flags[@]}" "${include[@]}" -o "$out/cost-provider" "$here/cost.c" "${with[@]}" || return 1
    for name in "$here/messages.c" "$packaging/truncated.c"; do
        "$cache/install/bin/mpicc" "${flags[@]}" -o "$out/$(basename "$name" .c)" "$name" || return 1
    done
    # to_self is the only one of Open MPI's datatype tests that sends messages. As it is, it tests
    # only one of its six types, and only packs. So build a changed copy of it, to_self_all, that
    # tests all types in all ways.
    sed 's/int run_tests = DO_STRUCT_MERGED_WITH_GAP_RESIZED;/int run_tests = 0x3f00003f;/' "$cache/source/test/datatype/to_self.c" >"$out/to_self_all.c" &&
        grep -q 0x3f00003f "$out/to_self_all.c" && "$cache/install/bin/mpicc" -O2 -w "${include[@]}" -o "$out/to_self_all" "$out/to_self_all.c" -lm &&
        make -C "$cache/build/test/datatype" -j "$jobs" check TESTS=
}

# Copies libddtc.so and libddtc_preload.so to $ours: those that cargo builds from this tree (for
# --cost and --times with optimization), or those in the folder that DDTC_OPENMPI_LIBRARIES names.
build_ours() {
    local built=${DDTC_OPENMPI_LIBRARIES:-} file profile=debug
    [ -z "$cost$times" ] || profile=release
    if [ -z "$built" ]; then
        step "libddtc.so and libddtc_preload.so of this tree"
        cargo build --profile "${profile/debug/dev}" --package ddtc-capi --package ddtc-preload
        built=$target/$profile
    fi
    mkdir -p "$ours"
    for file in libddtc.so libddtc_preload.so; do
        [ -e "$built/$file" ] || fail "$built has no $file: if DDTC_OPENMPI_LIBRARIES is set, it must name a folder with libddtc.so and libddtc_preload.so"
        # A process may have mapped the file that is there. Do not write into it; rename a new file
        # to its name instead.
        cp -L "$built/$file" "$ours/$file.part" && mv -f "$ours/$file.part" "$ours/$file"
    done
    # Programs that are linked with libddtc.so look for it under its soname at run time, so add a
    # link of that name.
    file=$(readelf -d "$ours/libddtc.so" | sed -nE 's/.*\(SONAME\).*\[(.*)\].*/\1/p')
    [ -z "$file" ] || [ "$file" = libddtc.so ] || ln -sf libddtc.so "$ours/$file"
}
