#!/usr/bin/env bash
# Counts with callgrind the instructions that requests and types cost: in libopen-pal as Debian has
# it, with the patch and no provider, and with ddtc. A part of tests/openmpi.sh --cost; $1 is its
# cache.
set -euo pipefail
cache=$1
command -v valgrind >/dev/null || { echo "error: valgrind is missing: apt-get install valgrind" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Prints the instructions per call of function $4, with the functions that it calls, over 1000
# calls. $2 is the program, $1 the folder of the library, $3 and $5 are the program's arguments WHAT
# and KIND.
count() {
    LD_LIBRARY_PATH=$1:$cache/install/lib:$cache/ours valgrind -q --tool=callgrind --toggle-collect="$4" --callgrind-out-file="$out/calls" \
        "$2" "$3" "$5" >/dev/null 2>"$out/errors" || { echo "error: valgrind failed on $2 $3 $5:" >&2; cat "$out/errors" >&2; exit 1; }
    awk -v what="$3" '/^(summary|totals):/ { print ($2 - 0) / 1000; exit }' "$out/calls"
}

printf '| | as Debian has it | with the patch | with ddtc |\n|---|---|---|---|\n'
row() {
    local label=$1 what=$2 function=$3 kind=$4
    printf '| %s, %s | %.0f | %.0f | %.0f |\n' "$label" "$kind" "$(count "$cache/stock" "$cache/programs/cost" "$what" "$function" "$kind")" \
        "$(count "$cache/install/lib" "$cache/programs/cost" "$what" "$function" "$kind")" \
        "$(count "$cache/install/lib" "$cache/programs/cost-provider" "$what" "$function" "$kind")"
}
for kind in contiguous vector structure; do
    row "prepare for send" send opal_convertor_prepare_for_send "$kind"
    row "prepare for receive" recv opal_convertor_prepare_for_recv "$kind"
done
row "position" position opal_convertor_set_position_nocheck vector
for kind in structure indexed vector; do
    row "pack of 64 KiB" pack opal_convertor_pack "$kind"
    row "unpack of 64 KiB" unpack opal_convertor_unpack "$kind"
done
