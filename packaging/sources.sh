#!/usr/bin/env bash
# Makes the two archives of sources of a release from the last commit:
#
#   ddtc-VERSION-vendored.tar.xz    everything, with all crates in the folder vendor, so that
#                                   packaging/install.sh needs no network
#   ddtc-VERSION.tar.gz             the source distribution of the Python package. `pip install`
#                                   builds from it what the wheel has, and fetches crates
#
#   packaging/sources.sh --out DIR
#
# tests/sources.sh builds both.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
fail() { echo "sources.sh: $*" >&2; exit 2; }
out=
while [ $# -gt 0 ]; do
    case $1 in
        --out) [ $# -gt 1 ] || fail "$1 needs a value, the folder for the archives: packaging/sources.sh --out DIR"; out=$2; shift 2 ;;
        *) fail "unknown argument $1: the only one is --out DIR" ;;
    esac
done
[ -n "$out" ] || fail "--out DIR is needed, the folder for the archives"
for tool in git python3 tar xz; do
    command -v $tool >/dev/null || fail "$tool is missing: install git, python3, tar and xz-utils"
done
cargo=${CARGO:-cargo}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here"
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Packs a folder. The same tools make the same bytes of one commit: names are sorted, modes do not
# depend on the user, and every file has the time of the commit.
packed() { tar -C "$work/$1" --sort=name --mode=u=rwX,go=rX --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" -cf - "ddtc-$version"; }

mkdir "$work/vendored" "$work/python"
git archive --prefix="ddtc-$version/" HEAD | tar -C "$work/vendored" -xf -
cp -a "$work/vendored/ddtc-$version" "$work/python/"

# Cargo needs every package that Cargo.lock names, for other systems too. Of the packages for
# Windows the import libraries are left out, which are most of the bytes of all crates. The
# configuration is written here, because `cargo vendor --quiet` does not print it.
(
    cd "$work/vendored/ddtc-$version"
    "$cargo" vendor --quiet --locked --versioned-dirs vendor >"$work/vendor.log"
    mkdir .cargo
    cat >.cargo/config.toml <<'CONFIG'
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
CONFIG
    python3 - <<'PYTHON'
import json
from pathlib import Path

for folder in Path("vendor").glob("windows*"):
    sums = folder / ".cargo-checksum.json"
    known = json.loads(sums.read_text())
    for name in [name for name in known["files"] if name.endswith((".a", ".lib"))]:
        (folder / name).unlink()
        del known["files"][name]
    sums.write_text(json.dumps(known))
PYTHON
    # Cargo resolves all packages from the folder alone: this cargo home has none, and no network is
    # used.
    mkdir "$work/home"
    CARGO_HOME=$work/home "$cargo" metadata --quiet --format-version 1 --offline --locked >/dev/null ||
        fail "cargo does not find all crates of Cargo.lock in the folder vendor (see above): correct in packaging/sources.sh which of them, or which of their files, are left out"
)
packed vendored | xz -6 -T2 >"$out/ddtc-$version-vendored.tar.xz"

# In a source distribution the description of the package lies in the first folder, and so do the
# licences, to which a checkout has links in the folder python.
(
    cd "$work/python/ddtc-$version"
    find python -type l -delete
    sed -e 's|^readme = "|&python/|' -e 's|^build-backend = .*|build-backend = "backend"\nbackend-path = ["python"]|' \
        -e 's|^python-source = .*|manifest-path = "python/Cargo.toml"\npython-source = "python"|' \
        -e 's|path = "ddtc/bin/\*"|path = "python/ddtc/bin/*"|' python/pyproject.toml >pyproject.toml
    {
        printf 'Metadata-Version: 2.4\nName: ddtc\nVersion: %s\n' "$version"
        sed -n 's/^description = "\(.*\)"$/Summary: \1/p; s/^requires-python = "\(.*\)"$/Requires-Python: \1/p; s/^license = "\(.*\)"$/License-Expression: \1/p' python/pyproject.toml
        printf 'License-File: LICENSE-MIT\nLicense-File: LICENSE-APACHE\nLicense-File: THIRD-PARTY\nDescription-Content-Type: text/markdown\n\n'
        cat python/README.md
    } >PKG-INFO
)
packed python | gzip -9n >"$out/ddtc-$version.tar.gz"
