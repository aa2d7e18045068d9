#!/usr/bin/env bash
# Makes a folder with everything that a release consists of: the crate, archives of installed
# prefixes, the Debian package, the wheel, the source distribution of the Python package, an archive
# of all sources, recipes for EasyBuild and conda-forge, a list of the packages that are linked in,
# checksums and the section of CHANGELOG.md. At the end it prints the commands with which a
# maintainer publishes the release, if none of the three variables below is blank. It publishes
# nothing itself. packaging/README.md is the page about making a release.
#
# Programs and libraries are built for every system with glibc 2.28 or newer.
#
#   packaging/release.sh --out DIR [--target MACHINE]
#
# --target: make the archives of prefixes, the Debian package, the wheel and the list of packages
#   for the machine x86_64 or aarch64 instead of this one
set -euo pipefail
# With DESTDIR, install.sh would install into another folder, and with INSTALL_BUILT it would take
# files that somebody built before. The others change how cargo compiles, for example for the
# processor of this machine alone.
unset DESTDIR INSTALL_BUILT RUSTFLAGS CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_RUSTFLAGS CARGO_BUILD_TARGET

# Address of the public repository. The printed `git push` command uses it, and the recipes have it
# as home page if it is an address for browsers.
REPOSITORY=${REPOSITORY-}
# Name and mail address of the maintainer, in the form `Name <mail>`. The Debian package and the
# printed instructions use it.
MAINTAINER=${MAINTAINER-}
# URL below which the other files of the folder are to be uploaded, without a slash at its end. The
# printed instructions use it, and the recipes, which fetch the archive of all sources from there.
ARCHIVE_URL=${ARCHIVE_URL-}
# A variable that consists of blanks counts as missing.
for name in REPOSITORY MAINTAINER ARCHIVE_URL; do
    [[ ${!name} =~ [^[:space:]] ]] || printf -v "$name" ''
done

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "release.sh: $*" >&2; exit 2; }
out=
machine=
while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -gt 1 ] || fail "$1 needs a value, the name of a new folder: packaging/release.sh --out DIR"; out=$2; shift 2 ;;
        --target) [ $# -gt 1 ] || fail "$1 needs a value, a machine such as aarch64: packaging/release.sh --out DIR --target MACHINE"; machine=$2; shift 2 ;;
        *) fail "unknown argument $1: packaging/release.sh --out DIR [--target MACHINE]" ;;
    esac
done
[ -n "$out" ] || fail "--out DIR is needed: a new folder"
# shellcheck source=packaging/machine.sh
. "$here/packaging/machine.sh"
case $out in /*) ;; *) out=$PWD/$out ;; esac
[ ! -e "$out" ] || fail "--out $out: is there already, and the script makes a new folder: give another name, or remove it"
cd "$here"
changes=$(git status --porcelain --untracked-files=all) || fail "git status fails (see above), so nobody knows whether the working tree has changes: run this in a clone of the repository"
[ -z "$changes" ] || fail "the working tree has changes: commit them, so that the archives are what the commit says"
commit=$(git rev-parse HEAD)
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ "$(awk '/^[^#]/ { print $1 }' packaging/released)" != "$version" ] ||
    fail "$version is released already, says packaging/released: give Cargo.toml a new version"
! git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null ||
    fail "the tag v$version exists already: give Cargo.toml a new version"
packaging/sbom.py --notices | cmp -s - THIRD-PARTY || fail "THIRD-PARTY does not have the notices of the packages that are linked in now: packaging/sbom.py --notices >THIRD-PARTY, and commit it"
# The section whose heading has the version as one of its words, as in `## 0.3.0 (2026-12-01)`.
notes=$(awk -v "version=$version" '
    /^## / { on = 0; n = split($0, words, /[ ()]+/); for (i = 1; i <= n; i++) if (words[i] "" == version "") on = 1; next }
    on' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section for $version, which becomes the notes of the release: write one, under the heading \`## $version (DATE)\`"

# Everything is made in a temporary folder next to the wanted one, which gets its name at the end. So
# there is no folder of that name with half a release.
mkdir -p "$(dirname "$out")"
wanted=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
out=$(mktemp -d "$(dirname "$wanted")/.ddtc-release-XXXXXX")
trap 'rm -rf "$out"' EXIT
chmod 755 "$out"
packaging/archive.sh --out "$out"
packaging/prefixes.sh --out "$out" --target "$machine"
MAINTAINER=$MAINTAINER packaging/deb.sh --out "$out" --portable --target "$machine"
packaging/wheel.sh --out "$out" --portable --target "$machine"
packaging/sources.sh --out "$out"
REPOSITORY=$REPOSITORY ARCHIVE_URL=$ARCHIVE_URL packaging/recipes/fill.sh "$out"
packaging/sbom.py "$machine" >"$out/ddtc-$version-$machine-linux-gnu.cdx.json"
printf '%s\n' "$notes" >"$out/notes.md"
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)

mv -T "$out" "$wanted"
trap - EXIT
out=$wanted

echo "$out has the release $version:"
ls -l "$out"
if [ -z "$REPOSITORY" ] || [ -z "$MAINTAINER" ] || [ -z "$ARCHIVE_URL" ]; then
    echo "no commands to publish it are printed: set REPOSITORY, MAINTAINER and ARCHIVE_URL before the next run; they must say where, and by whom"
    exit
fi
# The commands can be pasted into a shell as they are printed: %q quotes what a shell would change.
echo "To publish it as $MAINTAINER:"
printf '  git tag -a %q -m %q %q && git push %q %q\n' "v$version" "ddtc $version" "$commit" "$REPOSITORY" "v$version"
echo "  cargo publish --package ddtc --locked"
printf '  twine upload %q/*.whl %q\n' "$out" "$out/ddtc-$version.tar.gz"
echo "Upload the other files to $ARCHIVE_URL/v$version/ ."
