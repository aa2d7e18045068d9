#!/usr/bin/env bash
# Runs Open MPI's own datatype tests (test/datatype, in 6.0 also ompi/test/datatype, if they are
# built) in three ways: with the library as it is installed ("bare"), with the mover provider $2
# (unless it is empty), and with the preload library $3 (unless it is empty), whose hook in Open MPI's
# convertors packs and unpacks ("inside"). In 6.0, the provider takes every type that is not
# contiguous (DDTC_PROVIDER_ALL), since by its rule it would take few types of these tests. A test that passes with the installed library alone must
# pass in the other two ways, and must print the same number of lines with words such as "error" or
# "wrong". tests/openmpi.sh runs this script. $1 is the folder in which that script has built
# everything, and the table of results is written to $1/own.md.
set -euo pipefail
cache=$1 provider=$2 preload=$3
run=("$cache/install/bin/mpiexec" --allow-run-as-root -n 1)
out=$cache/own
rm -rf "$out" && mkdir "$out"
worse=0 total=0

# Runs the test $1, which is the file $program, and writes its output to the log that is named after
# the way $2 in which it runs: bare, provider or inside. Further arguments are environment variables
# for the test. The function stores the exit status in $status, and in $said the number of output
# lines that have words such as "error" or "wrong".
way() {
    local name=$1 log=$out/$1.$2
    shift 2
    status=0
    # Times, addresses and process numbers differ from run to run. Remove them before the lines are
    # counted, so that no line counts because of them.
    (cd "$out" && timeout 900 "${run[@]}" env "$@" "$program") >"$log" 2>&1 || status=$?
    said=$(grep -v '^ddtc provider' "$log" | sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/[0-9]+\.[0-9]+//g; s/[0-9]+ (ns|us|microsec)//g; s/\[[^]]*\]//g' |
        grep -ciE 'error|wrong|fail|differ|mismatch|cannot|incorrect|unexpected|bad' || true)
}

{
    echo '| Test | bare | provider: status, requests, MiB moved | inside: status, MiB moved |'
    echo '|---|---|---|---|'
} >"$cache/own.md"
for program in "$cache"/build/test/datatype/.libs/* "$cache"/build/ompi/test/datatype/.libs/* "$cache/programs/to_self_all"; do
    [ -x "$program" ] || continue
    name=$(basename "$program")
    way "$name" bare
    bare=$status bare_said=$said
    by_provider="not run"
    if [ -n "$provider" ]; then
        way "$name" provider "LD_PRELOAD=$provider" DDTC_PROVIDER_REPORT=1 DDTC_PROVIDER_ALL=1
        requests=$(sed -nE 's/^ddtc provider: .* sends ([0-9]+) receives ([0-9]+) packed ([0-9]+) unpacked ([0-9]+)$/\1 \2 \3 \4/p' "$out/$name.provider" |
            awk '{ r += $1 + $2; b += $3 + $4 } END { printf "%d, %.1f", r, b / 1048576 }')
        by_provider="$status, $requests"
        total=$((total + ${requests%%,*}))
        [ "$status $said" = "$bare $bare_said" ] || { [ "$bare" != 0 ] || worse=1; echo "differs with the provider: $name: see $out/$name.provider and $out/$name.bare" >&2; }
    fi
    if [ -z "$preload" ]; then
        echo "| \`$name\` | $bare | $by_provider | not run |" >>"$cache/own.md"
        continue
    fi
    way "$name" inside "LD_PRELOAD=$preload" DDTC_MODE=commit "DDTC_REPORT=$out/$name.json"
    # The preload library writes its report in MPI_Finalize. A test that never calls MPI_Init has no
    # report, and the preload library does nothing in it.
    moved="no MPI_Init"
    if [ -e "$out/$name.json" ]; then
        # The report has each total on a line of its own. Add up the bytes that the hook moved, in
        # MiB.
        moved=$(awk '$1 ~ /^"hook_bytes_/ { b += $2 } END { printf "%.1f", b / 1048576 }' "$out/$name.json")
        ! grep '"nothing is moved inside' "$out/$name.json" >&2 || worse=1
    fi
    [ "$status $said" = "$bare $bare_said" ] || { [ "$bare" != 0 ] || worse=1; echo "differs inside: $name: see $out/$name.inside and $out/$name.bare" >&2; }
    echo "| \`$name\` | $bare | $by_provider | $status, $moved |" >>"$cache/own.md"
done
cat "$cache/own.md"
[ -z "$provider" ] || [ "$total" -gt 0 ] || { echo "error: the provider moved no request in any test, so nothing was tested with it: see $out" >&2; worse=1; }
[ "$worse" = 0 ] || echo "error: a test of Open MPI passes with the unmodified library and differs with ddtc, or the hook is disabled: see the lines above the table" >&2
exit "$worse"
