#!/bin/sh
# Searches an MPI library for bugs with `ddtc check --mpi` and stores the findings in docs/findings.
# The report becomes the document docs/findings/NAME.md. The C programs that show the bugs go to the
# folder docs/findings/NAME.
#
#     tests/findings.sh NAME LIBRARY [arguments of ddtc check --mpi]
#     tests/findings.sh mpich-5.0.2 PATH/lib/libmpi.so.12 --seconds 300
#
# Each program that `ddtc check --mpi` writes is complete in one file. In docs/findings, the
# programs include the common header finding.h instead. This command prints a program in that
# shorter form:
#
#     tests/findings.sh --short < PROGRAM.c
#
# The environment variable DDTC names the command `ddtc` to search with. If it is not set, the
# command is built first. After this script, run the following command. It writes into the document
# with which MPI libraries each program gives the right result.
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
# `ddtc check` ends with status 1 if it found bugs. That is a success here; a higher status is a
# failure.
[ "$status" -le 1 ] || exit "$status"
folder=$root/docs/findings/$name
rm -rf "$folder"
mkdir -p "$folder"
for program in "$out"/*.c; do
    short < "$program" > "$folder/${program##*/}"
done
sed "s|](\([^()]*\.c\))|]($name/\1)|" "$out/findings.md" > "$folder.md"
