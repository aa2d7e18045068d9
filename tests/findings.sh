#!/bin/sh
# Searches an MPI library for faults and puts the findings into docs/findings: the document NAME.md,
# and its programs into the folder NAME.
#
#     tests/findings.sh NAME LIBRARY [arguments of ddtc check --mpi]
#     tests/findings.sh mpich-5.0.2 PATH/lib/libmpi.so.12 --seconds 300
#
# The programs that the search writes stand alone; those in docs/findings share finding.h. The short
# form of a program is printed by
#
#     tests/findings.sh --short < PROGRAM.c
#
# DDTC names the command to search with; without it, the command is built. Afterwards, the lines
# that say with which MPI library each program is right are made by
#     DDTC_BLESS=1 cargo test -p ddtc-e2e --test hosts published
set -eu
short() {
    sed '/^\/\* From finding\.h: \*\/$/,/^\/\* End of what is from finding\.h\. \*\/$/c\
#include "../finding.h"'
}
if [ "${1:-}" = --short ]; then
    short
    exit
fi
if [ $# -lt 2 ]; then
    echo "error: the arguments NAME and LIBRARY are needed:" >&2
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
root=$(cd "$(dirname "$0")/.." && pwd)
name=$1
library=$2
shift 2
if [ -z "${DDTC:-}" ]; then
    cargo build --manifest-path "$root/Cargo.toml" --release --package ddtc-cli
    DDTC=$root/target/release/ddtc
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0
"$DDTC" check --mpi "$library" --out "$out" "$@" || status=$?
# Status 1 means that bugs were found.
[ "$status" -le 1 ] || exit "$status"
folder=$root/docs/findings/$name
rm -rf "$folder"
mkdir -p "$folder"
for program in "$out"/*.c; do
    short < "$program" > "$folder/${program##*/}"
done
sed "s|](\([^()]*\.c\))|]($name/\1)|" "$out/findings.md" > "$folder.md"
