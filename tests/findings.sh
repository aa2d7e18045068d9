#!/bin/sh
# Hunts in an MPI library and puts what is found into docs/findings: the document NAME.md, and its programs into the folder NAME.
#
#     tests/findings.sh NAME LIBRARY [arguments of ddtc check --mpi]
#     tests/findings.sh mpich-5.0.2 PATH/lib/libmpi.so.12 --seconds 300
#
# Programs of a hunt stand alone; these share docs/findings/finding.h. What is put there is printed by
#
#     tests/findings.sh --short < PROGRAM.c
#
# DDTC is the command to hunt with; without it, it is built. Afterwards the lines that say on which host each program is right are made by
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
# 1 says that there are bugs.
[ "$status" -le 1 ] || exit "$status"
folder=$root/docs/findings/$name
rm -rf "$folder"
mkdir -p "$folder"
for program in "$out"/*.c; do
    short < "$program" > "$folder/${program##*/}"
done
sed "s|](\([^()]*\.c\))|]($name/\1)|" "$out/findings.md" > "$folder.md"
