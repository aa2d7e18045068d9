#!/usr/bin/env bash
# Runs the bench of MPICH with the original yaksa and with ours: bench.sh CACHE OURS. Called by
# `tests/runtime.sh --bench` when both are built. Writes CACHE/bench.csv, which
# docs/TESTING.md, "A runtime", describes. DDTC_RUNTIME_ROUNDS: number of processes with
# each library per part [10].
set -euo pipefail
cache=$1 ours=$2
here=$(cd "$(dirname "$0")" && pwd)
out=$cache/bench
mkdir -p "$out"

cargo build --quiet --release --package ddtc-cli
"${CARGO_TARGET_DIR:-target}/release/ddtc" bench --mpi-source "$out"
"$cache/mpich/bin/mpicc" -std=gnu11 -O3 -march=native -Wall -Wextra -Wno-unused-function -I "$out" -o "$out/bench" "$here"/bench/*.c
python3 "$here/bench.py" --program "$out/bench" --mpiexec "$cache/mpich/bin/mpiexec" --stock "$cache/stock/lib" --ours "$ours" \
    --rounds "${DDTC_RUNTIME_ROUNDS:-10}" --csv "$cache/bench.csv"
