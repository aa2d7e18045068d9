#!/usr/bin/env bash
# Checks what users get from a release: installs ddtc into a new prefix, checks the size of the
# prefix and the installed command, compares its libraries with those that are linked for this system
# alone, and builds the Python wheel.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf target/installed target/wheel
packaging/audit.py --self-check
packaging/install.sh --prefix target/installed --portable
bytes=$(find target/installed -type f ! -path '*/.debug/*' -exec cat {} + | wc -c)
[ "$bytes" -le 14300000 ] || { echo "error: $bytes bytes are installed: at most 14300000 without debug data" >&2; exit 1; }
# `ddtc doctor` must run its self-test without an error. Afterwards it reports that /dev/null is no
# MPI library, and so its exit status does not count here.
doctor=$(target/installed/bin/ddtc doctor --mpi /dev/null || true)
grep -q '^self-test .* compiled in' <<< "$doctor" || { echo "error: the installed command: $doctor" >&2; exit 1; }
# On x86-64 the installed command is built without Cranelift. It must say so if a user asks for the
# code that Cranelift would generate. It must show the code for a layout, and find the installed
# preload library.
ddtc=target/installed/bin/ddtc
grep -q '^code for pack: ' <<< "$($ddtc explain 'struct([1, 1], [0, 9], [int, double])')" || { echo "error: no code is shown" >&2; exit 1; }
grep -q 'target/installed/lib/libddtc_preload.so' <<< "$($ddtc preload --dry-run -- true)" || { echo "error: no preload library" >&2; exit 1; }
if [ "$(uname -m)" = x86_64 ]; then
    said=$($ddtc explain --clif int 2>&1) && { echo "error: what is installed has Cranelift" >&2; exit 1; }
    grep -q 'Cranelift is not compiled in' <<< "$said" || { echo "error: explain --clif: $said" >&2; exit 1; }
fi
# The linker of old systems changes neither sonames nor exports.
for package in capi preload yaksa; do cargo build --locked --quiet --release --package "ddtc-$package"; done
target=${CARGO_TARGET_DIR:-target}
for library in libddtc libddtc_preload libyaksa; do
    packaging/audit.py --same "$target/release/$library.so" "$target/portable/dist/$library.so"
done
packaging/wheel.sh --out target/wheel --portable
