#!/usr/bin/env bash
# The bench of MPICH on stock yaksa and on ours, called by `tests/runtime.sh --bench` when both are built: bench.sh CACHE OURS. Writes
# CACHE/bench.csv; docs/records/testing.md, "A runtime", says what is in it. DDTC_RUNTIME_ROUNDS: processes of each library a part [10].
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
