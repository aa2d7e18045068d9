#!/usr/bin/env bash
# Makes a folder with everything that a release consists of: the crate, an archive of an installed
# prefix, the Debian package, the wheel, checksums and the section of CHANGELOG.md. At the end it
# prints the commands with which a maintainer publishes the release, if the three variables below
# are set. It publishes nothing itself.
#
#   packaging/release.sh --out DIR
set -euo pipefail

# Address of the public repository. The printed `git push` command uses it.
REPOSITORY=${REPOSITORY-}
# Name and mail address of the maintainer, in the form `Name <mail>`. The Debian package and the
# printed instructions use it.
MAINTAINER=${MAINTAINER-}
# URL below which the other files of the folder are to be uploaded, without a slash at its end. The
# printed instructions use it.
ARCHIVE_URL=${ARCHIVE_URL-}

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "release.sh: $*" >&2; exit 2; }
out=
while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -gt 1 ] || fail "$1 needs a value"; out=$2; shift 2 ;;
        *) fail "unknown argument $1" ;;
    esac
done
[ -n "$out" ] || fail "--out DIR is needed: a new folder"
[ ! -e "$out" ] || fail "--out $out: is there already"
cd "$here"
[ -z "$(git status --porcelain)" ] || fail "the working tree has changes: commit them, so that the archives are what the commit says"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
notes=$(awk -v "version=$version" '/^## / { on = index($0, version) > 0; next } on' CHANGELOG.md)
[ -n "$notes" ] || fail "CHANGELOG.md has no section for $version"

mkdir -p "$out"
out=$(cd "$out" && pwd)
packaging/archive.sh --out "$out"
name=ddtc-$version-$(uname -m)-linux-gnu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
packaging/install.sh --prefix "$work/$name" --static --no-debug
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -czf "$out/$name.tar.gz" "$name"
MAINTAINER=$MAINTAINER packaging/deb.sh --out "$out"
packaging/wheel.sh --out "$out"
printf '%s\n' "$notes" >"$out/notes.md"
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\0' | LC_ALL=C sort -z | xargs -0 sha256sum >SHA256SUMS)

echo "$out has the release $version:"
ls -l "$out"
if [ -z "$REPOSITORY" ] || [ -z "$MAINTAINER" ] || [ -z "$ARCHIVE_URL" ]; then
    echo "no commands to publish it: REPOSITORY, MAINTAINER and ARCHIVE_URL must say where, and by whom"
    exit
fi
cat <<COMMANDS
To publish it as $MAINTAINER:
  git tag -a v$version -m "ddtc $version" && git push $REPOSITORY v$version
  cargo publish --package ddtc --locked
  twine upload $out/*.whl
Upload the other files to $ARCHIVE_URL/v$version/ .
COMMANDS
