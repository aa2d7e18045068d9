#!/usr/bin/env bash
# Counts with callgrind the instructions of the functions that each request calls, for several
# datatypes, and prints a table. It has three columns: unmodified libopen-pal, libopen-pal with the
# patch for mover providers but without a provider, and libopen-pal with the patch and with ddtc as
# the provider. `tests/openmpi.sh --cost` and `tests/openmpi.sh --movers ARCHIVE --cost` run this
# script. $1 is the folder in which that script has built everything, and $2 a pattern for the
# function that sets a position.
set -euo pipefail
cache=$1
position=${2:-opal_convertor_set_position_nocheck}
command -v valgrind >/dev/null || { echo "error: valgrind is missing: apt-get install valgrind" >&2; exit 1; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# Prints the instructions of one call of function $4, including the functions that it calls: the
# average over 1000 calls. $1 is the folder of libopen-pal and $2 the program. $3 and $5 are the
# arguments that the program gets: what it calls, and for which kind of type.
count() {
    LD_LIBRARY_PATH=$1:$cache/install/lib:$cache/ours valgrind -q --tool=callgrind --toggle-collect="$4" --callgrind-out-file="$out/calls" \
        "$2" "$3" "$5" >/dev/null 2>"$out/errors" || { echo "error: valgrind failed on $2 $3 $5:" >&2; cat "$out/errors" >&2; exit 1; }
    awk -v what="$3" '/^(summary|totals):/ { print ($2 - 0) / 1000; exit }' "$out/calls"
}

printf '| | unmodified | with the patch | with ddtc |\n|---|---|---|---|\n'
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
row "position" position "$position" vector
row "position" position "$position" structure
for kind in structure indexed vector; do
    row "pack of 64 KiB" pack opal_convertor_pack "$kind"
    row "unpack of 64 KiB" unpack opal_convertor_unpack "$kind"
done
