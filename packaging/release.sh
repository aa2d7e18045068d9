#!/usr/bin/env bash
# Makes a folder with what a release consists of: the crate, a prefix, the Debian package, the wheel, checksums and the section of
# CHANGELOG.md. At the end it prints the commands that a maintainer types to publish, if the three variables below say where. It publishes
# nothing itself.
#
#   packaging/release.sh --out DIR
set -euo pipefail

# Address of the public repository, such as a URL of its web page: for the manifest of the crate.
REPOSITORY=${REPOSITORY-}
# Name and mail address of the maintainer, in the form `Name <mail>`: for the Debian package.
MAINTAINER=${MAINTAINER-}
# URL from which the folder's files can be fetched, without a slash at its end: for the notes.
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
