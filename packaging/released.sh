#!/usr/bin/env bash
# Checks what users get from a release: makes the archives of prefixes, checks what the first of
# them unpacks to (its size, and the command), compares the libraries with those that are linked for
# this system alone, builds the Python wheel, whose size it checks, too, and has lintian examine the
# Debian package.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target}
fail() { echo "error: $*" >&2; exit 1; }

rm -rf target/archives target/installed target/wheel
packaging/audit.py --self-check
packaging/sbom.py --notices | cmp -s - THIRD-PARTY || fail "THIRD-PARTY does not have the notices of the packages that are linked in now: packaging/sbom.py --notices >THIRD-PARTY"
packaging/prefixes.sh --out target/archives
mkdir target/installed
tar -C target/installed --strip-components 1 -xf target/archives/ddtc-[0-9]*.tar.gz
if [ "$(uname -m)" = x86_64 ]; then
    bytes=$(find target/installed -type f -exec cat {} + | wc -c)
    [ "$bytes" -le 12000000 ] || fail "$bytes bytes are installed, and the limit is 12000000: find what has grown"
    echo "installed: $bytes bytes"
fi
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
    said=$($ddtc explain --clif int 2>&1) && fail "\`$ddtc explain --clif int\` shows code of Cranelift, which the installed command must not contain on x86-64: correct \`features\` in packaging/machine.sh"
    grep -q 'Cranelift is not compiled in' <<< "$said" || fail "\`$ddtc explain --clif int\` must say that Cranelift is not compiled in, and printed: $said"
fi
# The linker of old systems changes neither sonames nor exports.
for package in capi preload yaksa; do cargo build --locked --quiet --release --package "ddtc-$package"; done
for library in libddtc libddtc_preload libyaksa; do
    packaging/audit.py --same "$target/release/$library.so" "$target/portable/dist/$library.so"
done
packaging/wheel.sh --out target/wheel --portable
if [ "$(uname -m)" = x86_64 ]; then
    bytes=$(cat target/wheel/ddtc-*.whl | wc -c)
    [ "$bytes" -le 5000000 ] || fail "the wheel has $bytes bytes, and the limit is 5000000: find what has grown"
    echo "wheel: $bytes bytes"
fi
# The Debian package, with a maintainer's name as an example. lintian must report nothing.
rm -rf target/deb
MAINTAINER='A Maintainer <maintainer@debian.org>' packaging/deb.sh --out target/deb --portable
said=$(lintian target/deb/*.deb 2>&1 | grep -v '^running with root privileges' || true)
[ -z "$said" ] || fail "lintian must report nothing of the Debian package, and reported: $said: correct packaging/deb.sh"
