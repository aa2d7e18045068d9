#!/bin/sh
# Puts libyaksa.so.0 where a program that is linked to yaksa can be told to look: LD_LIBRARY_PATH=DIR/lib, or in the place of the file that it has.
#
#   install.sh --prefix DIR [--profile dev|release|dist] [--libs DIR]
#
# --libs: take libyaksa.so from there instead of building it.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
prefix=
profile=dist
libs=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) prefix=$2; shift 2 ;;
        --profile) profile=$2; shift 2 ;;
        --libs) libs=$2; shift 2 ;;
        *) echo "install.sh: unknown argument $1" >&2; exit 2 ;;
    esac
done
[ -n "$prefix" ] || { echo "install.sh: --prefix DIR is needed" >&2; exit 2; }

if [ -z "$libs" ]; then
    cargo=${CARGO:-cargo}
    (cd "$here" && "$cargo" build -p ddtc-yaksa --profile "$profile")
    target=$(cd "$here" && "$cargo" metadata --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    [ "$profile" = dev ] && profile=debug
    libs=$target/$profile
fi

mkdir -p "$prefix/lib"
cp "$libs/libyaksa.so" "$prefix/lib/libyaksa.so.0.new"
# In one step: programs that run have the old one open.
mv -f "$prefix/lib/libyaksa.so.0.new" "$prefix/lib/libyaksa.so.0"
ln -sf libyaksa.so.0 "$prefix/lib/libyaksa.so"
