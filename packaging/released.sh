#!/usr/bin/env bash
# What users get, as it is released: a prefix and its size, and a wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf target/installed target/wheel
packaging/install.sh --prefix target/installed
bytes=$(find target/installed -type f ! -path '*/.debug/*' -exec cat {} + | wc -c)
[ "$bytes" -le 15500000 ] || { echo "error: $bytes bytes are installed: at most 15500000 without debug data" >&2; exit 1; }
# It says that this is no MPI library, after it has tried itself.
doctor=$(target/installed/bin/ddtc doctor --mpi /dev/null || true)
grep -q '^self-test .* compiled in' <<< "$doctor" || { echo "error: the installed command: $doctor" >&2; exit 1; }
packaging/wheel.sh --out target/wheel
