#!/bin/sh
# Fills in the recipes for EasyBuild and conda-forge: version, Rust version and the checksum of the
# archive of all sources, which must lie in DIR. Writes the recipes into DIR, too.
#
#   packaging/recipes/fill.sh DIR
#
# If ARCHIVE_URL is set, which the head of packaging/release.sh explains, the recipes fetch the
# archive from there. Otherwise they expect it in their own folder. REPOSITORY is their home page if
# it begins with https://.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { echo "fill.sh: got $# arguments, and one is needed, the folder with the archive of sources: packaging/recipes/fill.sh DIR" >&2; exit 2; }
value() { sed -n "s/^$1 = \"\(.*\)\"\$/\1/p" "$here/../../Cargo.toml" | head -n 1; }
version=$(value version)
archive=$1/ddtc-$version-vendored.tar.xz
[ -f "$archive" ] || { echo "fill.sh: $archive is missing: \`packaging/sources.sh --out $1\` makes it" >&2; exit 2; }
sum=$(sha256sum <"$archive" | cut -d ' ' -f 1)
# Text that stands for itself in the replacement of a `s` command of sed with the delimiter `|`.
literal() { printf %s "$1" | sed 's/[\\&|]/\\&/g'; }
case ${REPOSITORY-} in
    https://*) homepage=$(literal "$REPOSITORY") ;;
    *) homepage= ;;
esac
# Either the lines with the address of the archive are left out, or those between the marks.
address=$(literal "${ARCHIVE_URL-}")
if [ -n "$address" ]; then where='/@LOCAL@/,/@END@/d'; else where='/@ADDRESS@/d; /@LOCAL@/d; /@END@/d'; fi
if [ -n "$homepage" ]; then home=; else home='/^  homepage: /d'; fi
fill() {
    sed -e "$where" -e "$home" -e "s|@ADDRESS@|$address/v@VERSION@|; s|@HOMEPAGE@|$homepage|" \
        -e "s/@VERSION@/$version/g" -e "s/@RUST@/$(value rust-version)/g" -e "s/@SHA256@/$sum/g" "$here/$1"
}
fill ddtc.eb.in >"$1/ddtc-$version.eb"
fill recipe.yaml.in >"$1/recipe.yaml"
