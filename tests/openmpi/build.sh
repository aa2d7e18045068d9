# shellcheck shell=bash
# What tests/openmpi.sh builds in $cache, each step once. Sourced by that script. Needs $cache,
# $here (this folder), $packaging, $header, $ours, $jobs, $target, fail, step and the functions of
# tests/debian.sh.

version=4.1.4-3
orig_sha256=ddaee7dbdb01eb4fab1fda5b5e03e8bbff026711806c095c1f39bb410f99f263
# Open MPI's own PMIx, hwloc and libevent, shared memory and TCP, C only, and components inside the
# library. The build takes three minutes on two idle cores.
openmpi_options=(--disable-dlopen --disable-static --enable-shared --disable-mpi-fortran --disable-mpi-cxx --disable-oshmem --disable-io-romio
    --with-pmix=internal --with-libevent=internal --with-hwloc=internal --disable-hwloc-pci --disable-libxml2 --without-verbs --without-ucx
    --without-ofi --without-psm --without-psm2 --without-slurm --without-memory-manager)

# Debian's patches change the input of autotools but not the generated files. One date for all files
# keeps make from generating them again.
fetch() {
    source_package openmpi "$version" "$orig_sha256" "${DDTC_OPENMPI_MIRROR:-}" &&
        find "$cache/source" -type f -exec touch -d 2022-06-01 {} +
}

configure_openmpi() {
    rm -rf "$cache/build" && mkdir "$cache/build" &&
        (cd "$cache/build" && "$cache/source/configure" --prefix="$cache/install" "${openmpi_options[@]}")
}

# Keeps libopen-pal as it is without the patch, to measure what the patch costs.
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

# Prints a hash of what a patch changes, without the text at its top.
digest() {
    sed '/^--- /,$!d' "$packaging/$1.patch" | sha256sum | cut -c 1-16
}

# Builds Open MPI in steps and applies each patch once. If a patch has changed since, the files that
# the patches change are restored first.
build_openmpi() {
    local movers truncation
    movers=$(digest mover-provider)
    truncation=$(digest truncation)
    # The sources have another version of a patch: restore the files in the patches, and keep the
    # rest of the build.
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

# Restores the files that the patches change from the archive.
restore() {
    local files
    mapfile -t files < <(sed -n 's,^+++ b/,,p' "$packaging"/*.patch)
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
    # The provider that is linked into judge and cost does not register itself: these programs do
    # it.
    cc "${flags[@]}" -DDDTC_PROVIDER_LINKED -c "${include[@]}" -I "$header" -o "$out/provider.o" "$packaging/provider.c" || return 1
    local with=("$out/provider.o" -L "$cache/install/lib" -Wl,-rpath-link,"$cache/install/lib" -lopen-pal -L "$ours" -lddtc)
    cc "${flags[@]}" "${include[@]}" -o "$out/judge" "$here/judge.c" "${with[@]}" -lmpi || return 1
    cc "${flags[@]}" "${include[@]}" -o "$out/cost" "$here/cost.c" -L "$cache/install/lib" -lopen-pal || return 1
    cc "${flags[@]}" "${include[@]}" -o "$out/cost-provider" "$here/cost.c" "${with[@]}" || return 1
    for name in "$here/messages.c" "$packaging/truncated.c"; do
        "$cache/install/bin/mpicc" "${flags[@]}" -o "$out/$(basename "$name" .c)" "$name" || return 1
    done
    # to_self is the only one of these tests that sends messages. As it is, it runs one of its six
    # types and only packs. So build a program that runs all of it.
    sed 's/int run_tests = DO_STRUCT_MERGED_WITH_GAP_RESIZED;/int run_tests = 0x3f00003f;/' "$cache/source/test/datatype/to_self.c" >"$out/to_self_all.c" &&
        grep -q 0x3f00003f "$out/to_self_all.c" && "$cache/install/bin/mpicc" -O2 -w "${include[@]}" -o "$out/to_self_all" "$out/to_self_all.c" -lm &&
        make -C "$cache/build/test/datatype" -j "$jobs" check TESTS=
}

# Copies the libraries of this tree, or those that the caller names, to $ours.
build_ours() {
    local built=${DDTC_OPENMPI_LIBRARIES:-} file
    if [ -z "$built" ]; then
        step "libddtc.so and libddtc_preload.so of this tree"
        cargo build --package ddtc-capi --package ddtc-preload
        built=$target/debug
    fi
    mkdir -p "$ours"
    for file in libddtc.so libddtc_preload.so; do
        [ -e "$built/$file" ] || fail "$built has no $file: if DDTC_OPENMPI_LIBRARIES is set, it must name a folder with libddtc.so and libddtc_preload.so"
        # Do not write into a file that a process may have mapped: replace it.
        cp -L "$built/$file" "$ours/$file.part" && mv -f "$ours/$file.part" "$ours/$file"
    done
    # Programs that were linked with the library look it up by its soname.
    file=$(readelf -d "$ours/libddtc.so" | sed -nE 's/.*\(SONAME\).*\[(.*)\].*/\1/p')
    [ -z "$file" ] || [ "$file" = libddtc.so ] || ln -sf libddtc.so "$ours/$file"
}
