#!/bin/sh
# Installs what packaging/files lists: the command, the preload library, the C library with headers,
# pkg-config file and Fortran modules, the guide, and the licences, those of linked packages too
# (THIRD-PARTY). With the command come its manual pages, completions and the shipped policy table. The
# drop-in replacement for yaksa is installed only if --only names it.
#
#   packaging/install.sh --prefix DIR [--only PART,..] [--destdir DIR]
#                        [--profile dist|release|dev] [--built DIR] [--portable]
#                        [--target MACHINE] [--no-debug] [--static]
#   packaging/install.sh uninstall --prefix DIR [--destdir DIR]
#
# --only: install only these of the parts cli, preload, capi and yaksa, instead of the first three.
#   Parts of an earlier installation in the same prefix that are not named are removed.
# --destdir: a folder that stands before the prefix while files are written, as packagers expect.
#   The files need not suit this system then, but all must be for one machine.
# --built: take programs and libraries from DIR (or from INSTALL_BUILT) instead of building them.
# --portable: build for every system with glibc 2.28 or newer, instead of this system's glibc or
#   newer (packaging/portable.sh), and check what was built (packaging/audit.py).
# --target: build for the machine x86_64 or aarch64, with a cross compiler if it is not this one.
#   For another machine, --portable is needed, too.
# --no-debug: leave out the debug data. By default the data of each program and library goes to a
#   folder .debug next to it, where gdb looks.
# --static: install libddtc.a, too. Every name in it that is not ddtc_* is local, so that it can be
#   linked together with other Rust code.
#
# No installed file contains the prefix, so the folder can be moved. PREFIX/share/ddtc/manifest
# lists the installed files, and PREFIX/share/ddtc/uninstall removes them. A file that exists
# already and was not installed by this script is never replaced.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "install.sh: $*" >&2; exit 2; }

action=install
if [ "${1-}" = uninstall ]; then action=uninstall; shift; fi
prefix=
destdir=${DESTDIR-}
profile=dist
built=${INSTALL_BUILT-}
debug=yes
static=
portable=
machine=
parts="cli preload capi"
while [ $# -gt 0 ]; do
    case $1 in
        --prefix | --only | --destdir | --profile | --built | --target)
            [ $# -gt 1 ] || fail "$1 needs a value: packaging/install.sh --help says which"
            case $1 in
                --prefix) prefix=$2 ;;
                --only) parts=$(printf %s "$2" | tr , ' ') ;;
                --destdir) destdir=$2 ;;
                --profile) profile=$2 ;;
                --built) built=$2 ;;
                --target) machine=$2 ;;
            esac
            shift 2 ;;
        --help | -h) sed -n '2,/^set -eu/{/^#/!q;s/^# \{0,1\}//p}' "$0"; exit ;;
        --no-debug) debug=; shift ;;
        --static) static=yes; shift ;;
        --portable) portable=yes; shift ;;
        uninstall) fail "uninstall comes first: packaging/install.sh uninstall --prefix DIR" ;;
        *) fail "unknown argument $1: packaging/install.sh --help lists all arguments" ;;
    esac
done
[ -n "$parts" ] || fail "--only has no part: give some of cli, preload, capi, yaksa, separated by commas"
for part in $parts; do
    case $part in
        cli | preload | capi | yaksa) ;;
        *) fail "--only: $part is no part: give some of cli, preload, capi, yaksa, separated by commas" ;;
    esac
done
[ -n "$prefix" ] || fail "--prefix DIR is needed: a folder to install into, such as \$HOME/.local or /opt/ddtc"
case $prefix in
    /*) ;;
    *)
        [ -z "$destdir" ] || fail "--prefix $prefix: must begin with / where there is a --destdir: give an absolute path, such as /usr"
        prefix=$PWD/$prefix ;;
esac
root=$destdir$prefix

if [ "$action" = uninstall ]; then
    [ -f "$root/share/ddtc/uninstall" ] || fail "$root/share/ddtc/uninstall is missing, so nothing is installed in $root: is --prefix right? Give the folder that was given when ddtc was installed"
    exec sh "$root/share/ddtc/uninstall"
fi

# Check everything that would make the installation fail before anything is built.
# shellcheck source=packaging/machine.sh
. "$here/packaging/machine.sh"
[ -z "$cross" ] || [ -n "$portable" ] || fail "--target $machine: this machine is $this, and files for another machine are built with --portable only: give this option, too"
for tool in "${cross}ld" "${cross}objcopy" "${cross}nm" "${cross}ar" readelf; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install $toolchain"
done
cargo=${CARGO:-cargo}
if [ -z "$built" ]; then
    command -v "$cargo" >/dev/null || fail "cargo is missing: install Rust 1.95 or newer from https://rustup.rs, or take the Python wheel, which needs none"
    host=$("${RUSTC:-rustc}" -vV | sed -n 's/^host: //p')
    case $host in
        x86_64-*-linux-gnu | aarch64-*-linux-gnu | riscv64*-linux-gnu) ;;
        *-linux-musl*) fail "this Rust builds for $host: the preload library needs glibc, as MPI libraries do; install a toolchain for linux-gnu" ;;
        i?86-* | arm*-* | *x32) fail "this Rust builds for $host: ddtc is for 64-bit Linux; install a 64-bit toolchain" ;;
        *) fail "this Rust builds for '$host': ddtc is for 64-bit Linux with glibc; build it on such a system" ;;
    esac
fi
# glibc: the version of glibc, such as 2.36. whose: words for messages, which say for whose machine
# the files must be. The version is empty if this system has no getconf to ask, or if the files are
# for another machine. With --destdir and without a cross compiler all is empty, since the files may
# be for another system: the first program or library then determines the machine of all the others.
glibc=
whose=
if [ -n "$cross" ]; then
    whose="that of --target, $machine"
elif [ -n "$destdir" ]; then
    elf=
else
    elsewhere="install ddtc on a suitable system, or put the files for one into a folder by --destdir"
    [ "$(getconf LONG_BIT 2>/dev/null || echo 64)" = 64 ] || fail "this system runs programs of 32 bits: ddtc is for 64-bit Linux; $elsewhere"
    musl="this system has no glibc (musl?): the preload library needs it, as MPI libraries do; $elsewhere"
    case $(ldd --version 2>&1 || true) in *musl*) fail "$musl" ;; esac
    if command -v getconf >/dev/null; then
        glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -n 's/^glibc //p') || true
        [ -n "$glibc" ] || fail "$musl"
        [ -z "$portable" ] || [ "$(printf '%s\n' 2.28 "$glibc" | sort -V | head -n 1)" = 2.28 ] ||
            fail "this system has glibc $glibc, and what --portable builds needs 2.28 or newer: leave out --portable to build for this system, or put the files for another one into a folder by --destdir"
    fi
    [ -n "$elf" ] || fail "this machine is $machine: ddtc is for x86-64, aarch64 and riscv64; $elsewhere"
    whose="this one, $machine"
fi
[ -z "$portable" ] || command -v python3 >/dev/null || fail "python3 is missing, which --portable needs: install python3 with venv"
old=$root/share/ddtc/manifest
wants() { case " $parts " in *" $1 "*) ;; *) return 1 ;; esac; }
# Refuses a symbolic link, or a file, in the place of the folder $1 below the root. Files would be
# written to the target of the link, which neither the manifest nor the uninstaller knows. Refuses a
# folder that cannot be written, too.
usable() {
    if [ -L "$root/$1" ] || { [ -e "$root/$1" ] && [ ! -d "$root/$1" ]; }; then
        fail "$root/$1 is a link or a file, and must be a folder: choose another --prefix"
    fi
    [ ! -d "$root/$1" ] || [ -w "$root/$1" ] || fail "no permission to write to $root/$1: run as its owner, or choose another --prefix"
}
# The first folder of each place, such as lib. Folders in these are checked before the files are
# written.
grep -v '^#' "$here/packaging/files" | while IFS='|' read -r part from to; do
    part=$(echo $part) to=$(echo $to)
    [ -z "$part" ] || wants "$part" || continue
    usable "${to%%/*}"
done
# The nearest existing folder at or above the root must be writable.
parent=$root
while [ ! -e "$parent" ] && [ "$parent" != / ]; do parent=$(dirname "$parent"); done
[ -d "$parent" ] || fail "--prefix $prefix: $parent is a file, not a folder: choose another --prefix"
probe=$(mktemp -d "$parent/.ddtc-XXXXXX" 2>/dev/null) && rmdir "$probe" || fail "--prefix $prefix: no permission to write to $parent: choose a folder of your own, such as \$HOME/.local, or run as its owner"

work=$(mktemp -d)
# The temporary folder below the prefix, and whether folders that were made are removed at the end.
area=
undo=yes
# Removes the temporary folders. If no file was moved into place, removes the folders that were
# made, too: first those below the prefix, then the prefix and the folders above it.
clean() {
    [ -z "$area" ] || rm -rf "$area"
    if [ -n "$undo" ]; then
        [ ! -f "$work/mkdir" ] || LC_ALL=C sort -r "$work/mkdir" | while IFS= read -r folder; do rmdir "$folder" 2>/dev/null || true; done
        [ ! -f "$work/new" ] || while IFS= read -r folder; do rmdir "$folder" 2>/dev/null || true; done < "$work/new"
    fi
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
stage=$work/stage

# Build each part separately. Cargo would unify the features of parts that are built together, and
# the libraries would contain what only the command needs.
target() { (cd "$here" && "$cargo" metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'); }
if [ -z "$built" ]; then
    if [ -n "$portable" ]; then
        linker=$("$here/packaging/portable.sh" --target "$machine" "$(target)") || exit
        eval "$linker"
    fi
    # The compiler in the command is optimized for size, since no message passes through the command.
    small=
    [ "$profile" != dist ] || small='--config profile.dist.package.ddtc.opt-level="s"'
    for part in $parts; do
        options=
        [ "$part" = cli ] && options="--bin ddtc-installed --no-default-features --features=$features $small"
        # shellcheck disable=SC2086
        (cd "$here" && "$cargo" build --locked --package "ddtc-$part" --profile "$profile" $options)
    done
    built=$(target)
    [ "$profile" = dev ] && profile=debug
    built=$built/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile
fi

# Fails with a one-line message if the program or library $1 was built for a different system.
suits() {
    again="build it again for the right system, or give another folder with --built"
    header=$(LC_ALL=C readelf -hldV -W "$1" 2>/dev/null) || fail "$1 is no program or library of Linux: $again"
    case $header in
        *Class:*ELF32*) fail "$1 is of 32 bits: ddtc is for 64-bit Linux; $again" ;;
        *ld-musl* | *libc.musl*) fail "$1 was built for musl: the preload library needs glibc, as MPI libraries do; $again" ;;
    esac
    found=$(printf %s "$header" | sed -n 's/^ *Machine: *//p')
    if [ -z "$elf" ]; then
        case $found in
            *X86-64 | *AArch64 | *RISC-V) elf=$found ;;
            *) fail "$1 is for $found: ddtc is for x86-64, aarch64 and riscv64; $again" ;;
        esac
    fi
    case $found in
        *"$elf") ;;
        *) [ -z "$whose" ] || fail "$1 is for another machine than $whose: $found; $again, or put the files into a folder for the other machine by --destdir"
           fail "$1 is for $found, and the files before it are for $elf, but all must be for one machine: $again" ;;
    esac
    [ -n "$glibc" ] || return 0
    # The newest version of glibc that the file cannot be loaded without. Versions that only weak
    # references need do not count. Relative relocations, which linkers mark with the name
    # GLIBC_ABI_DT_RELR, need 2.36.
    newest=$(printf %s "$header" | sed -n 's/GLIBC_ABI_DT_RELR/GLIBC_2.36/; s/.*Name: GLIBC_\([0-9][0-9.]*\)  Flags: none .*/\1/p' | sort -V | tail -n 1)
    [ "$(printf '%s\n' "$newest" "$glibc" | sort -V | tail -n 1)" = "$glibc" ] ||
        fail "$1 needs glibc $newest, and this system has $glibc: build it here, or on a system that is as old"
}

version=$(sed -n 's/^#define DDTC_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$here/capi/include/ddtc.h" | paste -sd.)
soversion=${version%%.*}
[ "$soversion" != 0 ] || soversion=${version%.*}
filled() { sed "s/@VERSION@/$version/g; s/@SOVERSION@/$soversion/g"; }

# Stage the rows of packaging/files that belong to the chosen parts, and those that belong to no
# part.
grep -v '^#' "$here/packaging/files" | filled | while IFS='|' read -r part from to; do
    part=$(echo $part) from=$(echo $from) to=$(echo $to)
    [ -z "$part" ] || wants "$part" || continue
    mkdir -p "$(dirname "$stage/$to")"
    case $from in
        '> '*) ln -s "${from#> }" "$stage/$to" ;;
        @*)
            [ -f "$built/${from#@}" ] || fail "$built/${from#@} is missing: build it, or leave out --built"
            suits "$built/${from#@}"
            [ -z "$portable" ] || "$here/packaging/audit.py" "$built/${from#@}" >&2 || fail "$built/${from#@} is not portable (see above): leave out --built, so that it is built anew, or leave out --portable"
            cp "$built/${from#@}" "$stage/$to" ;;
        *.in) filled < "$here/$from" > "$stage/$to" ;;
        *) cp "$here/$from" "$stage/$to" ;;
    esac
done
# The manual pages, the completions and the policy tables (cli/src/generate.rs).
if wants cli; then cp -R "$here/packaging/generated/." "$stage/"; fi
if wants capi && [ -n "$static" ]; then
    [ -f "$built/libddtc.a" ] || fail "$built/libddtc.a is missing: build it, or leave out --built"
    # Link everything that the exports reach into one relocatable object. Then make every name that
    # is not an export local.
    wanted=$("${cross}nm" -D --defined-only "$built/libddtc.so" | awk '$3 ~ /^ddtc_/ { print "-u " $3 }')
    # shellcheck disable=SC2086
    "${cross}ld" -r -o "$work/ddtc.o" $wanted "$built/libddtc.a"
    # Remove the LLVM bitcode that comes with the standard library: after the link, its section
    # holds the bitcode of several modules, and linker plugins would fail on it.
    "${cross}objcopy" --strip-debug --remove-section .comment --remove-section .llvmbc --remove-section .llvmcmd --wildcard --keep-global-symbol='ddtc_*' "$work/ddtc.o"
    "${cross}ar" rcs "$stage/lib/libddtc.a" "$work/ddtc.o"
fi

# Strip the programs and libraries, and put their debug data into separate files.
find "$stage" -type f \( -path "$stage/bin/*" -o -name '*.so*' \) | while IFS= read -r file; do
    name=$(basename "$file").debug
    folder=$(dirname "$file")/.debug
    if [ -n "$debug" ]; then
        mkdir -p "$folder"
        "${cross}objcopy" --only-keep-debug --compress-debug-sections "$file" "$folder/$name"
        chmod 644 "$folder/$name"
    fi
    "${cross}objcopy" --strip-all --remove-section .comment "$file"
    [ -z "$debug" ] || (cd "$folder" && "${cross}objcopy" --add-gnu-debuglink="$name" "$file")
done
chmod -R u=rwX,go=rX "$stage"
chmod 755 "$stage/share/ddtc/uninstall"

# Write the manifest. It lists the installed files, and the folders that did not exist before the
# installation. A folder has a slash at its end.
(cd "$stage" && find . ! -type d | sed 's,^\./,,' | LC_ALL=C sort) > "$work/files"
echo share/ddtc/manifest >> "$work/files"
(cd "$stage" && find . -type d ! -name . | sed 's,^\./,,' | LC_ALL=C sort) > "$work/folders"
while IFS= read -r file; do
    if [ -e "$root/$file" ] || [ -L "$root/$file" ]; then
        grep -qxF "$file" "$old" 2>/dev/null || fail "$root/$file is there already and not of this script: remove it, or choose another --prefix"
        [ -L "$root/$file" ] || [ ! -d "$root/$file" ] || fail "$root/$file is a folder, and must be a file: remove it, or choose another --prefix"
    fi
done < "$work/files"
while IFS= read -r folder; do usable "$folder"; done < "$work/folders"
# Record in `#made` lines the prefix and the folders above it, as far as they did not exist before
# the first installation. Later installations copy the lines from the old manifest. With --destdir
# nothing is recorded: the folders belong to the packager.
: > "$work/made"
if [ -f "$old" ]; then
    sed -n '/^#made /p' "$old" > "$work/made"
elif [ -z "$destdir" ]; then
    folder=$root
    while [ ! -d "$folder" ]; do
        printf '%s\n' "$folder" >> "$work/new"
        folder=$(dirname "$folder")
    done
fi
mkdir -p "$root" || fail "--prefix $prefix: cannot be made (see above): choose another --prefix"
if [ -f "$work/new" ]; then
    while IFS= read -r folder; do (cd "$folder" && printf '#made %s\n' "$(pwd -P)") >> "$work/made"; done < "$work/new"
    # The prefix is the first line. Record it as `.`, since the folder may be moved later.
    sed -i '1s/.*/#made ./' "$work/made"
fi
{
    cat "$work/made" "$work/files"
    while IFS= read -r folder; do
        if [ ! -d "$root/$folder" ] || grep -qxF "$folder/" "$old" 2>/dev/null; then echo "$folder/"; fi
    done < "$work/folders"
} > "$work/manifest"
# What an earlier installation has and this one does not: files, and folders with a slash at their
# end. A name outside of the prefix was not written by this script, and is dropped.
: > "$work/obsolete"
if [ -f "$old" ]; then
    grep -v '^#' "$old" | grep -vxF -f "$work/manifest" | grep -vE '^/|(^|/)\.\.(/|$)|^$' > "$work/obsolete" || true
fi

# Write everything to a temporary folder on the file system of the prefix, and make the folders that
# are missing. If the disk is full or a signal arrives until then, the EXIT trap removes only what
# was made here, and an earlier installation is unchanged.
unwritten="--prefix $prefix: not everything could be written (see above), and nothing was changed: make room on the disk, or choose another --prefix"
umask go-w
area=$(mktemp -d "$root/.ddtc-XXXXXX") || fail "$unwritten"
cp -R -P "$stage" "$area/stage" || fail "$unwritten"
cp "$work/manifest" "$area/manifest" || fail "$unwritten"
cat "$work/manifest" "$work/obsolete" > "$area/stage/share/ddtc/manifest" || fail "$unwritten"
while IFS= read -r folder; do
    [ -d "$root/$folder" ] || { echo "$root/$folder" >> "$work/mkdir" && mkdir "$root/$folder"; } || fail "$unwritten"
done < "$work/folders"

# Rename the files into place. A library must not change while a running program has it mapped, and
# a rename leaves the old file to that program. Signals are ignored from here on, since only renames
# and removals are left. The first file is a manifest of the old and the new files, and the
# second the uninstaller. So if a step fails or the machine stops, both the uninstaller and a new
# installation know every file that may be there.
trap '' HUP INT TERM
undo=
unmoved="--prefix $prefix: not every file could be moved into place: install once more, or run $prefix/share/ddtc/uninstall"
{ printf '%s\n' share/ddtc/manifest share/ddtc/uninstall; grep -vxF -e share/ddtc/manifest -e share/ddtc/uninstall "$work/files"; } > "$work/order"
while IFS= read -r file; do
    mv -f -T "$area/stage/$file" "$root/$file" || fail "$unmoved"
done < "$work/order"
while IFS= read -r file; do
    case $file in
        */) ;;
        *) rm -f "$root/$file" || [ -d "$root/$file" ] || fail "$unmoved" ;;
    esac
done < "$work/obsolete"
{ grep '/$' "$work/obsolete" || true; } | LC_ALL=C sort -r | while IFS= read -r folder; do
    rmdir "$root/$folder" 2>/dev/null || true
done
mv -f -T "$area/manifest" "$root/share/ddtc/manifest" || fail "$unmoved"

bytes=$(cd "$stage" && find . -type f ! -path '*/.debug/*' -exec cat {} + | wc -c)
echo "installed to $root: $((bytes / 1024)) KiB without debug data; $prefix/share/ddtc/uninstall removes it"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) [ -n "$destdir$cross" ] || ! wants cli || echo "add $prefix/bin to PATH, or call $prefix/bin/ddtc" ;;
esac
