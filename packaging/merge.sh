#!/bin/sh
# Adds the files that `packaging/release.sh --target MACHINE` made for another machine to the folder
# of a release, and writes the checksums of all files there anew.
#
#   packaging/merge.sh DIR OTHER
#
# DIR: the folder of the release. OTHER: the folder for the other machine. Both must be as their
# checksums say, and files that both have must be equal, since both are made of one commit.
set -eu
fail() { echo "merge.sh: $*" >&2; exit 2; }
[ $# = 2 ] || fail "got $# arguments, and two are needed, the folders of a release for two machines: packaging/merge.sh DIR OTHER"
for folder; do
    [ -f "$folder/SHA256SUMS" ] || fail "$folder: no folder of a release: give one that packaging/release.sh made"
    (cd "$folder" && sha256sum --check --quiet SHA256SUMS) || fail "$folder: not as SHA256SUMS says (see above): make it anew"
done
added=$(cut -c 67- "$2/SHA256SUMS" | while IFS= read -r name; do
    if [ ! -e "$1/$name" ]; then
        echo "$name"
    else
        cmp "$1/$name" "$2/$name" >&2 || fail "$name differs in the two folders: make both of the same commit, by the same versions of the tools"
    fi
done)
[ -n "$added" ] || fail "$1 has all files of $2: give the folder of another machine"
echo "$added" | while IFS= read -r name; do cp "$2/$name" "$1/"; done
(cd "$1" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort | tr '\n' '\0' | xargs -0 sha256sum >SHA256SUMS)
echo "$added"
