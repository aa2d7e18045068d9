#!/usr/bin/env bash
# Builds ddtc from the two archives of sources of a release, and runs what was installed.
# EasyBuild builds and installs the archive with all crates. pip builds and installs the source
# distribution, which twine checks first. Each is built in a temporary folder that has no other file
# of the checkout. The script also renders the recipe for conda-forge, and checks the list of linked
# packages against the schema of CycloneDX.
#
# Only the build by EasyBuild runs without a network. Everything else may use one: EasyBuild, twine,
# rattler-build and the schema come from PyPI in pinned versions, and pip gets from there what the
# build needs.
#
#   tests/sources.sh [DIR]
#
# DIR: the folder of a release, which packaging/release.sh made. Without it, packaging/sources.sh
#   makes the archives of the last commit
set -euo pipefail

fail() { echo "error: $*" >&2; exit 1; }
release=${1-}
[ -z "$release" ] || [ -f "$release/SHA256SUMS" ] || fail "$release: no folder of a release: give one that packaging/release.sh made, or none"
case $release in '' | /*) ;; *) release=$PWD/$release ;; esac
[ -z "$release" ] || (cd "$release" && sha256sum --check --quiet SHA256SUMS) || fail "$release: not as SHA256SUMS says (see above): copy the folder again, or make it anew"
cd "$(dirname "$0")/.."
lmod=/usr/share/lmod/lmod/libexec/lmod
[ -x $lmod ] || fail "Lmod is missing, which EasyBuild needs: apt-get install lmod"
target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target/tools"
target=$(cd "$target" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tools=$target/tools/sources
pins="easybuild-framework==5.4.1 easybuild-easyblocks==5.4.1 twine==7.0.0 cyclonedx-python-lib[json-validation]==11.12.0 py-rattler-build==0.73.0"
if [ "$(cat "$tools/.ready" 2>/dev/null)" != "$pins" ]; then
    rm -rf "$tools"
    python3 -m venv "$tools"
    # shellcheck disable=SC2086
    "$tools/bin/pip" install --quiet $pins
    echo "$pins" >"$tools/.ready"
fi

version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
vendored=ddtc-$version-vendored.tar.xz
sbom=ddtc-$version-$(uname -m)-linux-gnu.cdx.json
if [ -z "$release" ]; then
    release=$work/out
    packaging/sources.sh --out "$release"
    packaging/recipes/fill.sh "$release"
    packaging/sbom.py >"$release/$sbom"
fi
[ -f "$release/$vendored" ] || fail "$release has no $vendored: Cargo.toml says that this is version $version; give the folder of its release"
# rattler-build fills in the recipe for conda-forge, with compilers as conda-forge names them. It asks
# no channel for packages.
"$tools/bin/python" - "$release/recipe.yaml" "$version" <<'RECIPE'
import sys
from rattler_build import Stage0Recipe, VariantConfig

compilers = {"c_compiler": ["gcc"], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.28"], "rust_compiler": ["rust"]}
(rendered,) = Stage0Recipe.from_file(sys.argv[1]).render(VariantConfig(compilers))
recipe = rendered.recipe.to_dict()
assert recipe["package"] == {"name": "ddtc", "version": sys.argv[2]}, recipe
needed = recipe["requirements"]["build"]
assert any(name.startswith("rust_linux-") for name in needed) and any(name.startswith("gcc_linux-") for name in needed), needed
RECIPE
echo "the recipe for conda-forge: rendered"

"$tools/bin/python" - "$release/$sbom" <<'SBOM'
import json
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = open(sys.argv[1]).read()
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert error is None, error
names = {component["name"] for component in json.loads(text)["components"]}
# What is linked in, and not what only tests or the other builds need.
assert {"libc", "clap", "pyo3", "rust-std"} <= names, names
assert not names & {"proptest", "libtest-mimic"}, names
SBOM
echo "the list of linked packages is CycloneDX 1.6"

# A cargo home without a crate, and a namespace without a network. The profile is the one that
# compiles fastest.
cp "$release/ddtc-$version.eb" "$work/"
echo "installopts = '--profile dev'" >>"$work/ddtc-$version.eb"
toolchain=$(rustup show active-toolchain | cut -d ' ' -f 1)
rustup=${RUSTUP_HOME:-$HOME/.rustup}
mkdir -p "$work/home" "$work/temporary"
env -u CARGO_TARGET_DIR CARGO_HOME="$work/home" RUSTUP_HOME="$rustup" RUSTUP_TOOLCHAIN="$toolchain" PATH="$rustup/toolchains/$toolchain/bin:$PATH" \
    EB_PYTHON="$tools/bin/python" LMOD_CMD=$lmod XDG_CONFIG_HOME="$work" \
    unshare --net --map-root-user "$tools/bin/eb" --allow-use-as-root-and-accept-consequences --modules-tool Lmod \
    --prefix "$work/eb" --sourcepath "$release" --tmpdir "$work/temporary" "$work/ddtc-$version.eb" >"$work/eb.log" 2>&1 ||
    {
        tail -n 30 "$work/eb.log" >&2
        # The output of the command that failed is in a file of EasyBuild's own.
        find "$work/temporary" -name '*.log' -exec tail -n 30 {} + >&2
        fail "EasyBuild could not build $vendored: above are the ends of its output and of its logs"
    }
said=$("$work/eb/software/ddtc/$version/bin/ddtc" preload --dry-run -- true)
[[ $said = *"/eb/software/ddtc/$version/lib/libddtc_preload.so"* ]] || fail "the command in $work/eb/software/ddtc/$version must find the preload library next to it by \`ddtc preload --dry-run\`, and printed: $said"
grep -q 'ddtc' "$work/eb/modules/all/ddtc/$version.lua" || fail "EasyBuild made no module $work/eb/modules/all/ddtc/$version.lua that mentions ddtc: correct packaging/recipes/ddtc.eb.in"
echo "$vendored: $(wc -c <"$release/$vendored") bytes: built by EasyBuild without a network"

sdist=ddtc-$version.tar.gz
"$tools/bin/twine" check --strict "$release/$sdist"
python3 -m venv "$work/env"
said=$(cd "$work" && CARGO=/no/cargo "$work/env/bin/pip" install --quiet "$release/$sdist" 2>&1) && fail "pip installed $sdist although CARGO names no program"
[[ $said = *"ddtc: /no/cargo is missing: install Rust"* ]] || fail "without cargo, pip must print that it is missing, and printed: $said"
(cd "$work" && env -u CARGO_TARGET_DIR "$work/env/bin/pip" install --quiet "$release/$sdist")
said=$(cd "$work" && "$work/env/bin/ddtc" preload --dry-run -- true)
[[ $said = *site-packages/ddtc/bin/libddtc_preload.so* ]] || fail "the command that pip installed from $sdist must find libddtc_preload.so in site-packages/ddtc/bin by \`ddtc preload --dry-run\`, and printed: $said"
(cd "$work" && "$work/env/bin/python" -c 'import ddtc; assert ddtc.Datatype.vector(3, 1, 4, ddtc.DOUBLE).size == 24')
echo "$sdist: $(wc -c <"$release/$sdist") bytes: built and installed by pip"
