#!/bin/sh
# Makes a Debian package of the files that install.sh installs. The script calls install.sh, so that
# there is only one list of files. Besides the programs that install.sh needs, it needs only dpkg,
# binutils and gzip. (The tool cargo-deb would need a second list of files, and takes minutes to
# compile.)
#
#   packaging/deb.sh --out DIR [--profile dist|release|dev] [--built DIR] [--portable]
#
# The environment variable MAINTAINER has the name and mail address of the package's maintainer, in
# the form `Name <mail>`.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "deb.sh: $*" >&2; exit 2; }
out=
profile=
built=
portable=
while [ $# -gt 0 ]; do
    if [ "$1" = --portable ]; then portable=yes; shift; continue; fi
    [ $# -gt 1 ] || fail "$1 needs a value"
    case $1 in
        --out) out=$2 ;;
        --profile) profile=$2 ;;
        --built) built=$2 ;;
        *) fail "unknown argument $1" ;;
    esac
    shift 2
done
[ -n "$out" ] || fail "--out DIR is needed"
for tool in dpkg-deb dpkg objdump gzip; do
    command -v $tool >/dev/null || fail "$tool is missing: install dpkg and binutils"
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
sh "$here/install.sh" --prefix /usr --destdir "$root" --no-debug --static \
    ${profile:+--profile "$profile"} ${built:+--built "$built"} ${portable:+--portable} >/dev/null
# Remove the manifest and the uninstaller that install.sh writes, since dpkg has a manifest of its
# own. Move the completions for zsh to the folder in which Debian's zsh looks for them.
rm "$root/usr/share/ddtc/manifest" "$root/usr/share/ddtc/uninstall"
mkdir -p "$root/usr/share/zsh/vendor-completions" "$root/DEBIAN"
mv "$root/usr/share/zsh/site-functions/_ddtc" "$root/usr/share/zsh/vendor-completions/"
rmdir "$root/usr/share/zsh/site-functions"
find "$root/usr/share/man" -name '*.1' -exec gzip -9n {} +
{
    printf 'Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: ddtc\n\nFiles: *\nCopyright: the authors of ddtc\n'
    printf 'License: MIT or Apache-2.0\n The texts are in LICENSE-MIT and LICENSE-APACHE in this folder.\n'
} > "$root/usr/share/doc/ddtc/copyright"

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$here/../Cargo.toml")
# The newest version of a symbol of the C library (GLIBC_..) that any of the installed files needs.
# The package depends on at least this version of libc6.
libc=$(find "$root/usr" -type f \( -name 'ddtc' -o -name '*.so*' \) -exec objdump -T {} + 2>/dev/null |
    sed -n 's/.*GLIBC_\([0-9.]*\).*/\1/p' | sort -V | tail -n 1)
cat > "$root/DEBIAN/control" <<CONTROL
Package: ddtc
Version: $version-1
Architecture: $(dpkg --print-architecture)
Maintainer: ${MAINTAINER:-the authors of ddtc <root@localhost>}
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
dpkg-deb --root-owner-group --build "$root" "$out/ddtc_$version-1_$(dpkg --print-architecture).deb"
