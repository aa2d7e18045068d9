#!/bin/sh
# Installs the C library the way cargo-c would: headers, versioned shared library, static library, pkg-config file, Fortran
# module source. Beyond cargo-c it hides Rust's symbols in the static library: one object whose only global names are ddtc_*.
#
#   install.sh --prefix DIR [--destdir DIR] [--profile dev|release|dist] [--libs DIR]
#
# --destdir: a folder that stands before the prefix while files are written, as packagers expect.
# --libs: take libddtc.so and libddtc.a from there instead of building them.
# Nothing of what is installed knows the prefix: the folder can be moved.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
prefix=
destdir=
profile=dist
libs=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --destdir | --profile | --libs)
            [ $# -gt 1 ] || { echo "install.sh: $1 needs a value" >&2; exit 2; }
            case $1 in
                --prefix) prefix=$2 ;;
                --destdir) destdir=$2 ;;
                --profile) profile=$2 ;;
                --libs) libs=$2 ;;
            esac
            shift 2 ;;
        *) echo "install.sh: unknown argument $1" >&2; exit 2 ;;
    esac
done
[ -n "$prefix" ] || { echo "install.sh: --prefix DIR is needed" >&2; exit 2; }
for tool in ld objcopy nm ar; do
    command -v $tool >/dev/null || { echo "install.sh: $tool is needed (package binutils)" >&2; exit 2; }
done

if [ -z "$libs" ]; then
    cargo=${CARGO:-cargo}
    (cd "$here" && "$cargo" build -p ddtc-capi --profile "$profile")
    target=$(cd "$here" && "$cargo" metadata --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    [ "$profile" = dev ] && profile=debug
    libs=$target/$profile
fi

version=$(sed -n 's/^#define DDTC_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$here/include/ddtc.h" | paste -sd.)
major=${version%%.*}
if [ "$major" = 0 ]; then soversion=${version%.*}; else soversion=$major; fi

prefix=$destdir$prefix
mkdir -p "$prefix/include/ddtc" "$prefix/lib/pkgconfig" "$prefix/share/ddtc"
cp "$here"/include/*.h "$prefix/include/"
cp "$here"/include/ddtc/mpi.h "$prefix/include/ddtc/"
cp "$here"/fortran/*.f90 "$prefix/share/ddtc/"

cp "$libs/libddtc.so" "$prefix/lib/libddtc.so.$version"
ln -sf "libddtc.so.$version" "$prefix/lib/libddtc.so.$soversion"
ln -sf "libddtc.so.$version" "$prefix/lib/libddtc.so"

# One relocatable object with everything that the exports reach, then every other name made local.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wanted=$(nm -D --defined-only "$libs/libddtc.so" | awk '$3 ~ /^ddtc_/ { print "-u " $3 }')
# shellcheck disable=SC2086
ld -r -o "$work/ddtc.o" $wanted "$libs/libddtc.a"
# Bitcode that the standard library carries is no longer one module: linker plugins would choke on it.
objcopy --strip-debug --remove-section .llvmbc --remove-section .llvmcmd --wildcard --keep-global-symbol='ddtc_*' "$work/ddtc.o"
rm -f "$prefix/lib/libddtc.a"
ar rcs "$prefix/lib/libddtc.a" "$work/ddtc.o"

cat > "$prefix/lib/pkgconfig/ddtc.pc" <<PC
prefix=\${pcfiledir}/../..
exec_prefix=\${prefix}
libdir=\${exec_prefix}/lib
includedir=\${prefix}/include

Name: ddtc
Description: The derived datatype compiler: MPI datatypes compiled to native pack and unpack code
Version: $version
Libs: -L\${libdir} -lddtc
Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
Cflags: -I\${includedir}
PC
