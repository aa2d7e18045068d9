#!/bin/sh
# Makes a linker for programs and libraries that load on systems with glibc 2.28 or newer, and
# prints shell commands that have cargo use it:
#
#   eval "$(packaging/portable.sh [--target MACHINE] FOLDER)"
#
# FOLDER is cargo's target folder. What is built goes to FOLDER/portable, so that it is never mixed
# with what was linked for this system alone. MACHINE is x86_64 or aarch64, and without the option
# this machine. For another machine, a cross compiler and Rust's standard library for that machine
# are needed, and cargo is told to build for it (CARGO_BUILD_TARGET).
#
# The linker is gcc, with two differences. First, in place of this system's glibc it finds
# stubs of glibc 2.28: shared libraries that have the names and versions of all functions, and no
# code. Second, it finds the start code and the static part of libc that belong to glibc 2.28. A
# program with the start code of glibc 2.34 or newer would run none of its constructors on a system
# with an older glibc, and Rust's library would then not get the arguments of the program. Stubs and
# start code come from the Zig compiler, whose wheel on PyPI has them for every version of glibc. The
# files themselves are not linked by Zig: it would replace libgcc_s.so.1 by an unwinder of its own,
# and C++ exceptions of a program could then not pass through the preload library.
# packaging/audit.py checks the result.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
fail() { echo "portable.sh: $*" >&2; exit 2; }
machine=
if [ "${1-}" = --target ] && [ $# -gt 1 ]; then machine=$2; shift 2; fi
[ $# = 1 ] && [ -n "$1" ] || fail "got $# arguments, and one is needed that is not empty, the target folder of cargo: packaging/portable.sh [--target MACHINE] FOLDER"
# shellcheck source=packaging/machine.sh
. "$here/machine.sh"
case $machine in
    x86_64 | aarch64) ;;
    *) fail "this machine is $machine: portable files are built for x86_64 and aarch64; leave out --portable, or build on such a machine" ;;
esac
if [ -n "$cross" ]; then
    [ -d "$("${RUSTC:-rustc}" --print target-libdir --target "$rust")" ] || fail "Rust's standard library for $machine is missing: rustup target add $rust"
fi
for tool in $compiler python3; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install $toolchain, and python3 with venv"
done
mkdir -p "$1/tools"
target=$(cd "$1" && pwd)
tools=$target/tools/glibc-2.28-$machine
stamp="$(cat "$here/zig.txt" "$here/machine.sh" "$0" | cksum)"

if [ "$(cat "$tools/.ready" 2>/dev/null)" != "$stamp" ]; then
    rm -rf "$tools"
    mkdir "$tools"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    python3 -m venv "$work/zig" || fail "python3 -m venv fails: install python3-venv"
    "$work/zig/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$here/zig.txt" >&2 ||
        fail "the package of packaging/zig.txt could not be installed (no network? PIP_INDEX_URL can name another index): pip says above why"
    # Zig writes the stubs into its cache when it links a program.
    echo 'int main(void) { return 0; }' >"$work/main.c"
    ZIG_GLOBAL_CACHE_DIR=$work/cache ZIG_LOCAL_CACHE_DIR=$work/cache "$work/zig/bin/python" -m ziglang \
        cc -target "$machine-linux-gnu.2.28" -pie -o "$work/main" "$work/main.c" >&2
    # The stub of the loader has the file name libld.so.2, and the loader's soname.
    for name in Scrt1.o libc_nonshared.a libc.so.6 libld.so.2 libm.so.6 libpthread.so.0 libdl.so.2 librt.so.1 libutil.so.1; do
        find "$work/cache" -name "$name" -exec cp {} "$tools/" \;
        [ -f "$tools/$name" ] || fail "Zig made no $name when it linked a program for glibc 2.28: if packaging/zig.txt names another version of Zig now, adapt the list of names in packaging/portable.sh"
    done
    for name in m.so.6 pthread.so.0 dl.so.2 rt.so.1 util.so.1; do ln -s "lib$name" "$tools/lib${name%.so.*}.so"; done
    echo 'GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )' >"$tools/libc.so"
    # `-B` makes gcc look in this folder first, for start code and for libraries. The last option is
    # for libgcc_s.so.1 of this system, which needs functions of its own glibc.
    cat >"$tools/cc" <<WRAPPER
#!/bin/sh
exec $compiler -B"\$(dirname "\$0")/" "\$@" -Wl,--allow-shlib-undefined
WRAPPER
    chmod 755 "$tools/cc"
    echo "$stamp" >"$tools/.ready"
fi
quoted() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }
name=$(echo "$machine" | tr a-z A-Z)
echo "export CARGO_TARGET_${name}_UNKNOWN_LINUX_GNU_LINKER=$(quoted "$tools/cc")"
echo "export CARGO_TARGET_DIR=$(quoted "$target/portable")"
[ -z "$cross" ] || echo "export CARGO_BUILD_TARGET=$rust"
