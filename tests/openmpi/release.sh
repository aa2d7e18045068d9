# shellcheck shell=bash
# Judges a release of Open MPI 5.0 or 6.0 that is built from an archive. Sourced by
# tests/openmpi.sh. Needs $cache, $archive, $here (this folder), $packaging, $jobs, $target, fail,
# step, judge and the functions of tests/debian.sh.

# The archive has the scanners that flex generates. But configure of 6.0 looks for one that 6.0 no
# longer has, and then stops if flex is missing.
release_packages=(gcc g++ make perl python3 flex libhwloc-dev libevent-dev zlib1g-dev)
# C only, with the MPI library's own PMIx and launcher, and with components inside the library.
release_options=(--disable-static --enable-shared --enable-mpi-fortran=no --disable-oshmem --disable-sphinx --disable-io-romio
    --with-libevent=external --with-hwloc=external --with-pmix=internal --with-prrte=internal --without-ucx --without-ofi --without-slurm)

configure_release() {
    rm -rf "$cache/build" && mkdir "$cache/build" &&
        (cd "$cache/build" && "$cache/source/configure" --prefix="$cache/install" "${release_options[@]}")
}

build_release() {
    make -C "$cache/build" -j "$jobs" && make -C "$cache/build" install &&
        make -C "$cache/build/test/support" check && make -C "$cache/build/test/datatype" -j "$jobs" check TESTS=
}

# Builds the library that contains the patched file, and copies it to $cache/patched. That library is
# libmpi in 5.0, and libopen_mpi, which libmpi needs, in 6.0. The installed one stays unmodified.
patch_release() {
    local file=$cache/source/ompi/mca/pml/ob1/pml_ob1_recvreq.c
    [ -e "$file.unmodified" ] || cp "$file" "$file.unmodified" || return 1
    cp "$file.unmodified" "$file" && patch -p1 --forward --fuzz=0 -d "$cache/source" <"$packaging/truncation-5.patch" &&
        make -C "$cache/build/ompi" -j "$jobs" || return 1
    local name=libmpi
    [ ! -e "$cache/install/lib/libopen_mpi.so" ] || name=libopen_mpi
    rm -rf "$cache/patched" && mkdir "$cache/patched" && cp "$cache/build/ompi/.libs/$name.so" "$cache/patched"
}

judge_release() {
    need_packages "${release_packages[@]}"
    once source "$(sha256sum <"$archive" | cut -c 1-16)" unpack "$archive" ompi/mca/pml/ob1/pml_ob1_recvreq.c
    once configured "${release_options[*]}" configure_release
    once install "of the unmodified release" build_release
    once patched "$(sha256sum <"$packaging/truncation-5.patch" | cut -c 1-16)" patch_release
    once truncated-program "$(sha256sum <"$packaging/truncated.c" | cut -c 1-16)" \
        "$cache/install/bin/mpicc" -O2 -Wall -Wextra -o "$cache/truncated" "$packaging/truncated.c"

    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    export LD_LIBRARY_PATH=$cache/install/lib OMPI_MCA_btl=self,sm
    # A job's folder has the name of a process, so a job that was killed could be in the way.
    export TMPDIR=$cache/sessions
    rm -rf "$TMPDIR" && mkdir "$TMPDIR"
    local run=("$cache/install/bin/mpiexec" -n 2) status=0 name
    step "truncated messages, with truncation-5.patch and without"
    judge truncated 'error class' "${run[@]}" -x "LD_PRELOAD=$(echo "$cache"/patched/*)" "$cache/truncated"
    timeout 600 "${run[@]}" "$cache/truncated" >"$cache/truncated-unpatched.log" 2>&1 || status=$?
    grep 'error class' "$cache/truncated-unpatched.log" || true
    # The fault is in the protocol by which a receiver reads the memory of the sender. If the kernel
    # does not let one process read another (ptrace is forbidden), Open MPI uses other protocols, and
    # the fault cannot appear.
    if ! grep -q ', [1-9][0-9]* ints written after' "$cache/truncated-unpatched.log"; then
        [ $status = 0 ] || fail "truncated.c failed under the unmodified library, and printed no line with ints that were written after a receive: see why in $cache/truncated-unpatched.log"
        echo "note: not seen here without the patch, perhaps since the kernel does not let processes read each other"
    fi

    step "Open MPI's own datatype tests, on the unmodified library and with the preload library inside"
    cargo build --package ddtc-preload
    "$here/own.sh" "$cache" "inside=$target/debug/libddtc_preload.so"

    step "the matrix of docs/LIBRARIES.md on this release"
    env -u LD_LIBRARY_PATH -u TMPDIR -u OMPI_MCA_btl DDTC_MATRIX="openmpi=$cache/install" \
        cargo test --package ddtc-e2e --test hosts -- matrix:: --nocapture
}
