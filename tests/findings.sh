#!/bin/sh
# Searches an MPI library for faults and puts the findings into the folder NAME of docs/findings:
# the records findings.jsonl and run.json, and the programs. Then renders the documents of all
# folders from their records, by `ddtc report --findings docs/findings`.
#
#     tests/findings.sh NAME LIBRARY [arguments of ddtc check --mpi]
#     tests/findings.sh mpich-5.0.2 PATH/lib/libmpi.so.12 --seconds 300
#
# The old folder NAME is removed, if there is one. So findings that somebody added to it by hand are
# lost, and must be added again. In findings.jsonl they are the lines without "seed".
#
# The programs that the search writes stand alone; those in docs/findings share finding.h. The short
# form of a program is printed by
#
#     tests/findings.sh --short < PROGRAM.c
#
# The variable DDTC names the command to search with; without it, the command is built.
#
# This script does not run the programs with other MPI libraries. Type the following command
# afterwards. It runs each program of docs/findings with the other libraries, records what the
# program did there, and renders the documents again:
#
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
    echo "findings.sh: got $# arguments, and at least two are needed, NAME and LIBRARY:" >&2
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
# The trap for EXIT removes temporary folders. Without this line, some shells would not run it when
# a signal ends them.
trap 'exit 1' HUP INT TERM
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0
"$DDTC" check --mpi "$library" --out "$out" "$@" || status=$?
# Status 1 means that bugs were found.
[ "$status" -le 1 ] || exit "$status"
# The new folder is made completely before the old one is removed.
new=$(mktemp -d "$root/docs/findings/.new-XXXXXX")
trap 'rm -rf "$out" "$new"' EXIT
chmod 755 "$new"
for program in "$out"/*.c; do
    [ -e "$program" ] || continue
    short < "$program" > "$new/${program##*/}"
done
# The path of the library on this machine and the times are left out.
sed 's|"path":"[^"]*",||; s|,"seconds":[0-9.e-]*||' "$out/findings.jsonl" > "$new/findings.jsonl"
sed '/^ *"path": "[^"]*",$/d' "$out/run.json" > "$new/run.json"
folder=$root/docs/findings/$name
# No signal may end the script while neither folder is in its place.
trap '' HUP INT TERM
rm -rf "$folder"
mv "$new" "$folder"
trap 'exit 1' HUP INT TERM
"$DDTC" report --findings "$root/docs/findings"
