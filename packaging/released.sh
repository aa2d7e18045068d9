#!/usr/bin/env bash
# Checks what users get from a release: installs ddtc into a new prefix, checks the size of the
# prefix and the installed command, compares its libraries with those that are linked for this system
# alone, and builds the Python wheel, whose size it checks, too.
set -euo pipefail
cd "$(dirname "$0")/.."
fail() { echo "error: $*" >&2; exit 1; }

rm -rf target/installed target/wheel
packaging/audit.py --self-check
packaging/install.sh --prefix target/installed --portable
bytes=$(find target/installed -type f ! -path '*/.debug/*' -exec cat {} + | wc -c)
[ "$bytes" -le 14300000 ] || fail "$bytes bytes are installed without debug data, and the limit is 14300000: find what has grown, or raise the limit in packaging/released.sh"
# `ddtc doctor` must run its self-test without an error. Afterwards it reports that /dev/null is no
# MPI library, and so its exit status does not count here.
doctor=$(target/installed/bin/ddtc doctor --mpi /dev/null || true)
grep -q '^self-test .* compiled in' <<< "$doctor" || fail "\`target/installed/bin/ddtc doctor --mpi /dev/null\` must print that its self-test compiled something, and printed: $doctor"
# On x86-64 the installed command is built without Cranelift. It must say so if a user asks for the
# code that Cranelift would generate. It must show the code for a layout, and find the installed
# preload library.
ddtc=target/installed/bin/ddtc
said=$($ddtc explain 'struct([1, 1], [0, 9], [int, double])' || true)
grep -q '^code for pack: ' <<< "$said" || fail "\`$ddtc explain\` must show the code for a structure, in a line that begins with 'code for pack: ', and printed: $said"
said=$($ddtc preload --dry-run -- true || true)
grep -q 'target/installed/lib/libddtc_preload.so' <<< "$said" || fail "\`$ddtc preload --dry-run -- true\` must find target/installed/lib/libddtc_preload.so, and printed: $said"
if [ "$(uname -m)" = x86_64 ]; then
    said=$($ddtc explain --clif int 2>&1) && fail "\`$ddtc explain --clif int\` shows code of Cranelift, which the installed command must not contain on x86-64: correct \`features\` in packaging/install.sh"
    grep -q 'Cranelift is not compiled in' <<< "$said" || fail "\`$ddtc explain --clif int\` must say that Cranelift is not compiled in, and printed: $said"
fi
# The linker of old systems changes neither sonames nor exports.
for package in capi preload yaksa; do cargo build --locked --quiet --release --package "ddtc-$package"; done
target=${CARGO_TARGET_DIR:-target}
for library in libddtc libddtc_preload libyaksa; do
    packaging/audit.py --same "$target/release/$library.so" "$target/portable/dist/$library.so"
done
packaging/wheel.sh --out target/wheel --portable
if [ "$(uname -m)" = x86_64 ]; then
    bytes=$(cat target/wheel/ddtc-*.whl | wc -c)
    [ "$bytes" -le 5000000 ] || fail "the wheel has $bytes bytes, and the limit is 5000000: find what has grown, or raise the limit in packaging/released.sh"
    echo "wheel: $bytes bytes"
fi
