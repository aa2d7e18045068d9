#!/usr/bin/env bash
# Runs Open MPI's own datatype tests (test/datatype, in 6.0 also ompi/test/datatype, if they are
# built) with the library as it is installed ("bare") and in the ways that the arguments name: own.sh
# CACHE WAY=LIBRARY.. LIBRARY is preloaded. WAY is one of these:
#
#   provider   LIBRARY is a mover provider. In 6.0, it takes types by its rule.
#   every      LIBRARY is a mover provider for 6.0, which takes every type that is not contiguous
#              (DDTC_PROVIDER_ALL). By its rule, it takes few types of these tests.
#   inside     LIBRARY is the preload library, whose hook in Open MPI's convertors packs and unpacks.
#
# A test that passes with the installed library alone must pass in the other ways, and must print the
# same number of lines with words such as "error" or "wrong". tests/openmpi.sh runs this script. CACHE
# is the folder in which that script has built everything, and the table of results is written to
# CACHE/own.md.
set -euo pipefail
cache=$1
shift
run=("$cache/install/bin/mpiexec" --allow-run-as-root -n 1)
out=$cache/own
rm -rf "$out" && mkdir "$out"
worse=0
declare -A heads=([provider]="provider: status, requests (6.0: calls), MiB moved" [every]="provider, every type: status, calls, MiB moved" [inside]="inside: status, MiB moved")
declare -A total=([provider]=0 [every]=0)
head='| Test | bare |' rule='|---|---|'
for way in "$@"; do head+=" ${heads[${way%%=*}]} |" rule+='---|'; done
printf '%s\n' "$head" "$rule" >"$cache/own.md"

# Runs the test $1, which is the file $program, and writes its output to the log that is named after
# the way $2 in which it runs. Further arguments are environment variables for the test. The function
# stores the exit status in $status, and in $said the number of output lines that have words such as
# "error" or "wrong".
try() {
    local name=$1 log=$out/$1.$2
    shift 2
    status=0
    # Times, addresses and process numbers differ from run to run. Remove them before the lines are
    # counted, so that no line counts because of them.
    (cd "$out" && timeout 900 "${run[@]}" env "$@" "$program") >"$log" 2>&1 || status=$?
    said=$(grep -v '^ddtc provider' "$log" | sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/[0-9]+\.[0-9]+//g; s/[0-9]+ (ns|us|microsec)//g; s/\[[^]]*\]//g' |
        grep -ciE 'error|wrong|fail|differ|mismatch|cannot|incorrect|unexpected|bad' || true)
}

for program in "$cache"/build/test/datatype/.libs/* "$cache"/build/ompi/test/datatype/.libs/* "$cache/programs/to_self_all"; do
    [ -x "$program" ] || continue
    name=$(basename "$program")
    try "$name" bare
    bare=$status bare_said=$said
    row="| \`$name\` | $bare |"
    for way in "$@"; do
        library=${way#*=} way=${way%%=*}
        case $way in
            provider | every)
                settings=(DDTC_PROVIDER_REPORT=1)
                [ "$way" = provider ] || settings+=(DDTC_PROVIDER_ALL=1)
                try "$name" "$way" "LD_PRELOAD=$library" "${settings[@]}"
                moved=$(sed -nE 's/^ddtc provider: .* sends ([0-9]+) receives ([0-9]+) packed ([0-9]+) unpacked ([0-9]+)$/\1 \2 \3 \4/p' "$out/$name.$way" |
                    awk '{ r += $1 + $2; b += $3 + $4 } END { printf "%d, %.1f", r, b / 1048576 }')
                total[$way]=$((total[$way] + ${moved%%,*}))
                ;;
            inside)
                try "$name" inside "LD_PRELOAD=$library" DDTC_MODE=commit "DDTC_REPORT=$out/$name.json"
                # The preload library writes its report in MPI_Finalize. A test that never calls
                # MPI_Init has no report, and the preload library does nothing in it.
                moved="no MPI_Init"
                if [ -e "$out/$name.json" ]; then
                    # The report has each total on a line of its own. Add up the bytes that the hook
                    # moved, in MiB.
                    moved=$(awk '$1 ~ /^"hook_bytes_/ { b += $2 } END { printf "%.1f", b / 1048576 }' "$out/$name.json")
                    ! grep '"nothing is moved inside' "$out/$name.json" >&2 || worse=1
                fi
                ;;
        esac
        row+=" $status, $moved |"
        [ "$status $said" = "$bare $bare_said" ] || { [ "$bare" != 0 ] || worse=1; echo "differs ($way): $name: see $out/$name.$way and $out/$name.bare" >&2; }
    done
    echo "$row" >>"$cache/own.md"
done
cat "$cache/own.md"
for way in "$@"; do
    [ "${total[${way%%=*}]-1}" -gt 0 ] || { echo "error: the provider moved nothing in any test (${way%%=*}), so nothing was tested with it: see $out" >&2; worse=1; }
done
[ "$worse" = 0 ] || echo "error: a test of Open MPI passes with the unmodified library and differs with ddtc, or the hook is disabled: see the lines above the table" >&2
exit "$worse"
