#!/usr/bin/env bash
# Builds the benchmark of MPICH, and runs it with the original yaksa and with ddtc's libyaksa.so.0:
# bench.sh CACHE OURS. `tests/runtime.sh --bench` calls this script when it has built MPICH and both
# libraries. CACHE is the folder of all builds, and OURS the folder with ddtc's library. The script
# writes CACHE/bench.csv, which docs/TESTING.md, "A runtime", describes. The environment variable
# DDTC_RUNTIME_ROUNDS is the number of processes with each library per part of the benchmark [10].
set -euo pipefail
cache=$1 ours=$2
here=$(cd "$(dirname "$0")" && pwd)
out=$cache/bench
mkdir -p "$out"

cargo build --quiet --release --package ddtc-cli
"${CARGO_TARGET_DIR:-target}/release/ddtc" bench --mpi-source "$out"
"$cache/mpich/bin/mpicc" -std=gnu11 -O3 -march=native -Wall -Wextra -Wno-unused-function -rdynamic -I "$out" -o "$out/bench" "$here"/bench/*.c
python3 "$here/bench.py" --program "$out/bench" --mpiexec "$cache/mpich/bin/mpiexec" --stock "$cache/stock/lib" --ours "$ours" \
    --rounds "${DDTC_RUNTIME_ROUNDS:-10}" --csv "$cache/bench.csv"
