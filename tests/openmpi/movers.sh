# shellcheck shell=bash
# Builds Open MPI 6.0 from an archive with packaging/openmpi/mover-provider-6.patch and the two small
# patches raw-6.patch and position-6.patch, and compares its own datatype engine with ddtc as a mover
# provider. Sourced by tests/openmpi.sh. Needs $cache,
# $archive, $here (this folder), $packaging, $header, $ours, $jobs, fail, step, judge, build_ours, the
# functions of tests/debian.sh, and $release_packages and $release_options of release.sh.

configure_movers() {
    rm -rf "$cache/build" && mkdir "$cache/build" &&
        (cd "$cache/build" && "$cache/source/configure" --prefix="$cache/install" "${release_options[@]}")
}

# Builds libopen-pal without the patches and keeps it in $cache/stock, to measure what the patches
# cost, and to show what is wrong without them.
build_stock_pal() {
    local folder
    for folder in config contrib 3rd-party opal; do make -C "$cache/build/$folder" -j "$jobs" || return 1; done
    rm -rf "$cache/stock" && mkdir "$cache/stock" && cp -d "$cache"/build/opal/.libs/libopen-pal.so* "$cache/stock"
}

# Prints the patches in the order in which they are applied, without the text that precedes each of
# them, so that the library is not built again if only the text has changed.
patches() {
    local name
    for name in raw-6 position-6 mover-provider-6; do sed '/^--- /,$!d' "$packaging/$name.patch"; done
}

# Applies the patches, and takes back different ones that an earlier run applied.
apply_movers() {
    local applied=$cache/source/applied.patch
    patches | cmp -s - "$applied" && return
    if [ -e "$applied" ]; then patch -p1 -R -d "$cache/source" <"$applied" && rm "$applied" || return 1; fi
    patches >"$cache/new.patch" && patch -p1 --forward --fuzz=0 -d "$cache/source" <"$cache/new.patch" && mv "$cache/new.patch" "$applied"
}

# Installs Open MPI with the patches, and builds its datatype tests.
install_movers() {
    apply_movers && make -C "$cache/build" -j "$jobs" && make -C "$cache/build" install &&
        make -C "$cache/build/test/support" check && make -C "$cache/build/test/datatype" -j "$jobs" check TESTS= &&
        make -C "$cache/build/ompi/test/datatype" -j "$jobs" check TESTS=
}

build_mover_programs() {
    local out=$cache/programs name
    rm -rf "$out" && mkdir "$out" || return 1
    local include=(-I "$cache/source" -I "$cache/build" -I "$cache/source/opal/include" -I "$cache/build/opal/include"
        -I "$cache/source/ompi/include" -I "$cache/build/ompi/include" -I "$cache/source/3rd-party/openpmix/include"
        -I "$cache/build/3rd-party/openpmix/include")
    local flags=(-std=gnu11 -O2 -g -Wall -Wextra -Wno-sign-compare -Wno-unused-parameter)
    # A Python process loads Open MPI when it runs already, so the provider itself needs libopen-pal.
    cc "${flags[@]}" -fvisibility=hidden -shared -fPIC "${include[@]}" -I "$header" -o "$out/libddtc_provider.so" "$packaging/provider.c" \
        -L "$ours" -lddtc -L "$cache/install/lib" -Wl,-rpath-link,"$cache/install/lib" -lopen-pal || return 1
    # judge6 and cost-provider register the provider themselves, when they have made their first types.
    cc "${flags[@]}" -DDDTC_PROVIDER_LINKED -c "${include[@]}" -I "$header" -o "$out/provider.o" "$packaging/provider.c" || return 1
    local with=("$out/provider.o" -L "$cache/install/lib" -Wl,-rpath-link,"$cache/install/lib" -lopen-pal -L "$ours" -lddtc)
    cc "${flags[@]}" "${include[@]}" -o "$out/judge6" "$here/judge6.c" "${with[@]}" || return 1
    for name in cost position; do
        cc "${flags[@]}" "${include[@]}" -o "$out/$name" "$here/$name.c" -L "$cache/install/lib" -Wl,-rpath-link,"$cache/install/lib" -lopen-pal || return 1
    done
    cc "${flags[@]}" "${include[@]}" -o "$out/cost-provider" "$here/cost.c" "${with[@]}" || return 1
    for name in messages consolidated; do
        "$cache/install/bin/mpicc" "${flags[@]}" -o "$out/$name" "$here/$name.c" || return 1
    done
}

# Writes the layouts of ddtc's benchmark as C, and builds the program `times` with them.
build_times() {
    cargo build --release --package ddtc-cli && "$target/release/ddtc" bench --mpi-source "$cache/programs" &&
        "$cache/install/bin/mpicc" -std=gnu11 -O1 -Wall -Wextra -Wno-unused-function -I "$cache/programs" -I "$here/../runtime/bench" \
            -o "$cache/programs/times" "$here/times.c" "$cache/programs/provider.o" -L "$ours" -lddtc -lopen-pal -lm
}

# Runs mpi4py's tests without the provider or with it, as the label $1 says. Further arguments are
# passed on to tests/runtime/python.py.
run_cases() {
    local label=$1 library=$cache/install/lib/libopen-pal.so launch=$cache/install/bin/mpiexec settings=("LD_LIBRARY_PATH=$cache/wheel:$LD_LIBRARY_PATH")
    shift
    # Some tests start further processes, which can be reached only over the network.
    settings+=(OMPI_MCA_btl=self,sm,tcp OMPI_MCA_btl_tcp_if_include=lo)
    if [ "$label" = provider ]; then
        library=$ours/libddtc.so
        # Only ranks may preload the provider: mpiexec has no datatypes.
        launch+=" -x LD_PRELOAD=$cache/programs/libddtc_provider.so -x DDTC_PROVIDER_REPORT=1"
    fi
    python3 "$here/../runtime/python.py" --hosts "$target/ddtc-hosts" --family openmpi --mpi "$cache/install/lib/libmpi.so" --library "$library" \
        --label "$label" --launch "$launch" --ranks 1 --ranks 2 "${settings[@]/#/--set=}" \
        --expect "$([ "$label" = bare ] || echo '^ddtc provider:')" "$@"
}

judge_movers() {
    # shellcheck source=tests/runtime/both.sh
    . "$here/../runtime/both.sh"
    need_packages "${release_packages[@]}"
    [ -n "$cost$times" ] || need_mpi4py openmpi
    build_ours
    once source "$(sha256sum <"$archive" | cut -c 1-16)" unpack "$archive" ompi/datatype/ompi_datatype_create_contiguous.c
    once configured "${release_options[*]}" configure_movers
    once stock "libopen-pal of the release" build_stock_pal
    once install "$(patches | sha256sum | cut -c 1-16)" install_movers
    once programs "$({ patches; cat "$packaging/provider.c" "$here"/*.c "$here"/*.h "$header/ddtc.h"; } | sha256sum | cut -c 1-16)" \
        build_mover_programs
    if [ -n "$cost" ]; then
        "$here/cost.sh" "$cache" 'opal_convertor_position_*'
        return
    fi

    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
    export LD_LIBRARY_PATH=$cache/install/lib:$ours OMPI_MCA_btl=self,sm
    # A job's folder has the name of a process, so a job that was killed could be in the way.
    export TMPDIR=$cache/sessions
    rm -rf "$TMPDIR" && mkdir "$TMPDIR"
    local bin=$cache/programs provider=$cache/programs/libddtc_provider.so seed
    local run=("$cache/install/bin/mpiexec") with=(-x "LD_PRELOAD=$provider" -x DDTC_PROVIDER_REPORT=1)
    if [ -n "$times" ]; then
        build_times || fail "the program \`times\` could not be built: above is why"
        judge times-pack '' "${run[@]}" -n 1 "$bin/times" pack
        judge times-messages '' "${run[@]}" -n 2 "$bin/times" messages
        return
    fi
    step "random types, by Open MPI's engine and by ddtc"
    for seed in 1 2 3; do
        judge "judge6-$seed" 'types compared' "$bin/judge6" 1500 "$seed"
        judge "judge6-all-$seed" 'types compared' env DDTC_PROVIDER_ALL=1 "$bin/judge6" 1500 "$seed"
    done

    step "convertors whose position is set forward, with position-6.patch and without"
    judge position 'positions:' "$bin/position"
    LD_LIBRARY_PATH=$cache/stock:$LD_LIBRARY_PATH timeout 600 "$bin/position" >"$cache/position-unpatched.log" 2>&1 || true
    grep 'positions:' "$cache/position-unpatched.log" || fail "the program \`position\` did not end without position-6.patch: see $cache/position-unpatched.log"

    step "messages with the provider on both ranks, and on one"
    judge messages 'messages:|ddtc provider' "${run[@]}" -n 2 "${with[@]}" "$bin/messages"
    [ "$(grep -c 'ddtc provider: .* sends [1-9].* receives [1-9].* packed [1-9].* unpacked [1-9]' "$cache/messages.log")" = 2 ] ||
        fail "the provider must have packed and unpacked on both ranks, and its reports say otherwise: see $cache/messages.log"
    judge one-side 'messages:|ddtc provider' "${run[@]}" -n 1 "${with[@]}" "$bin/messages" : -n 1 "$bin/messages"
    judge other-side 'messages:|ddtc provider' "${run[@]}" -n 1 "$bin/messages" : -n 1 "${with[@]}" "$bin/messages"

    step "types that live for one call of MPI_Pack"
    judge consolidated 'consolidated:' "${run[@]}" -n 1 "${with[@]}" "$bin/consolidated"

    step "Open MPI's own datatype tests, without the provider and with it"
    "$here/own.sh" "$cache" "provider=$provider" "every=$provider"

    # mpi4py's package looks for the library of Open MPI 4 and 5, whose number is 40.
    mkdir -p "$cache/wheel"
    ln -sf "$(readlink -f "$cache/install/lib/libmpi.so")" "$cache/wheel/libmpi.so.40"
    judge_both "$cache/results.tsv" bare provider "mpi4py under the patched Open MPI"
}
