#!/bin/sh
# Makes a Debian package of all the files that install.sh can install. The script calls install.sh,
# so that there is only one list of files. Besides the programs that install.sh needs, it needs only
# dpkg, binutils and gzip. (The tool cargo-deb would need a second list of files, and takes minutes
# to compile.)
#
#   packaging/deb.sh --out DIR [--profile dist|release|dev] [--built DIR] [--portable]
#                    [--target MACHINE]
#
# --target: build for the machine x86_64 or aarch64. For another machine than this one, --portable
#   is needed, too.
#
# The environment variable MAINTAINER has the name and mail address of the package's maintainer, in
# the form `Name <mail>`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "deb.sh: $*" >&2; exit 2; }
usage="packaging/deb.sh --out DIR [--profile dist|release|dev] [--built DIR] [--portable] [--target MACHINE]"
out=
profile=
built=
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
[ -n "$out" ] || fail "--out DIR is needed, the folder for the package: $usage"
# shellcheck source=packaging/machine.sh
. "$here/machine.sh"
for tool in dpkg-deb "${cross}objdump" gzip; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install dpkg and $toolchain"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
sh "$here/install.sh" --only cli,preload,capi,yaksa --prefix /usr --destdir "$root" --no-debug --static \
    ${profile:+--profile "$profile"} ${built:+--built "$built"} ${portable:+--portable} ${cross:+--target "$machine"} >/dev/null
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$here/../Cargo.toml")
maintainer=${MAINTAINER:-the authors of ddtc <root@localhost>}
# Remove the manifest and the uninstaller that install.sh writes, since dpkg has a manifest of its
# own. Move the completions for zsh to the folder in which Debian's zsh looks for them.
rm "$root/usr/share/ddtc/manifest" "$root/usr/share/ddtc/uninstall"
mkdir -p "$root/usr/share/zsh/vendor-completions" "$root/usr/share/lintian/overrides" "$root/DEBIAN"
mv "$root/usr/share/zsh/site-functions/_ddtc" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
find "$root/usr/lib" -name '*.so*' -type f -exec chmod 644 {} +
doc=$root/usr/share/doc/ddtc
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: ddtc\n\nFiles: *\n'
    sed -n 's/^Copyright (c) /Copyright: /p' "$doc/LICENSE-MIT"
    printf 'License: MIT or Apache-2.0\n The texts are in LICENSE-MIT and LICENSE-APACHE in this folder, and those of the\n packages of other projects that are linked in are in THIRD-PARTY.\n'
} > "$doc/copyright"
# Debian's policy has two changelogs: that of the package, and that of ddtc, both with these names.
# The heading of a version in the latter has its date; a version without a heading is of today.
day=$(sed -n "s/^## $version (\(.*\))\$/\1/p" "$doc/CHANGELOG.md")
{
    printf 'ddtc (%s-1) unstable; urgency=medium\n\n  * ddtc %s: changelog.gz has the changes.\n\n' "$version" "$version"
    printf ' -- %s  %s\n' "$maintainer" "$(LC_ALL=C date -u -R ${day:+-d "$day"})"
} | gzip -9n > "$doc/changelog.Debian.gz"
gzip -9n "$doc/CHANGELOG.md"
mv "$doc/CHANGELOG.md.gz" "$doc/changelog.gz"
# What lintian reports although it is meant so.
cat > "$root/usr/share/lintian/overrides/ddtc" <<'OVERRIDES'
# Nothing is linked with the preload library: users give its path to the loader.
ddtc: sharedobject-in-library-directory-missing-soname [usr/lib/libddtc_preload.so]
# One package has the command, the library and what is needed to compile with it. It is no part of
# Debian, which would split it, and so its changelog closes no bug there.
ddtc: initial-upload-closes-no-bugs *
ddtc: package-name-doesnt-match-sonames *
ddtc: link-to-shared-library-in-wrong-package *
# The folder of the libraries is the same for all architectures, and so is that of pkg-config.
ddtc: pkg-config-unavailable-for-cross-compilation *
OVERRIDES
# The cache of the loader has the library, and packages of programs that are linked with it get a
# dependency on this package.
echo 'activate-noawait ldconfig' > "$root/DEBIAN/triggers"
soname=$("${cross}objdump" -p "$root/usr/lib/libddtc.so" | sed -n 's/^ *SONAME *//p')
echo "libddtc ${soname#libddtc.so.} ddtc (>= $version)" > "$root/DEBIAN/shlibs"
(cd "$root" && find usr -type f -exec md5sum {} + | LC_ALL=C sort -k 2) > "$root/DEBIAN/md5sums"

# The newest version of a symbol of the C library (GLIBC_..) that any of the installed files needs.
# The package depends on at least this version of libc6.
libc=$(find "$root/usr" -type f \( -name 'ddtc' -o -name '*.so*' \) -exec "${cross}objdump" -T {} + 2>/dev/null |
    sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
cat > "$root/DEBIAN/control" <<CONTROL
Package: ddtc
Version: $version-1
Architecture: $debian
Maintainer: $maintainer
Section: science
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f1)
Depends: libc6 (>= $libc), libgcc-s1
Suggests: mpich | openmpi-bin
Description: derived datatype compiler for MPI
 Compiles MPI derived datatypes to native pack and unpack code: a library that
 goes under MPI programs as they are, a C library for runtimes, and a command
 that explains, measures and draws datatypes.
CONTROL
mkdir -p "$out"
# Ubuntu compresses by zstd otherwise, which Debian 11 cannot read.
dpkg-deb -Zxz --root-owner-group --build "$root" "$out/ddtc_$version-1_$debian.deb"
