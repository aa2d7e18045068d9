#!/bin/sh
# Fills in the recipes for EasyBuild and conda-forge: version, Rust version and the checksum of the
# archive of all sources, which must lie in DIR. Writes the recipes into DIR, too.
#
#   packaging/recipes/fill.sh DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { echo "fill.sh: got $# arguments, and one is needed, the folder with the archive of sources: packaging/recipes/fill.sh DIR" >&2; exit 2; }
value() { sed -n "s/^$1 = \"\(.*\)\"\$/\1/p" "$here/../../Cargo.toml" | head -n 1; }
version=$(value version)
archive=$1/ddtc-$version-vendored.tar.xz
[ -f "$archive" ] || { echo "fill.sh: $archive is missing: \`packaging/sources.sh --out $1\` makes it" >&2; exit 2; }
sum=$(sha256sum <"$archive" | cut -d ' ' -f 1)
fill() { sed -e "s/@VERSION@/$version/g" -e "s/@RUST@/$(value rust-version)/g" -e "s/@SHA256@/$sum/g" "$here/$1"; }
fill ddtc.eb.in >"$1/ddtc-$version.eb"
fill recipe.yaml.in >"$1/recipe.yaml"
