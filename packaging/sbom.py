#!/usr/bin/env python3
"""Prints which packages are in the programs and libraries of a release, as CycloneDX 1.6 in JSON.

    packaging/sbom.py [MACHINE]

MACHINE is the machine for which the release was built, x86_64 or aarch64, and by default this one.
The list has the packages that cargo links into the command, the preload library, the C library, the
replacement for yaksa and the Python module. It leaves out packages that are needed only to build or
to test them. Licences come from the manifests of the packages, and hashes from Cargo.lock.
"""
import json
import os
import platform
import re
import subprocess
import sys
import tomllib
import uuid
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
MACHINE = sys.argv[1] if len(sys.argv) > 1 else platform.machine()
SHIPPED = ["ddtc-cli", "ddtc-preload", "ddtc-capi", "ddtc-yaksa", "ddtc-python"]


def said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(package: str) -> set[tuple[str, str]]:
    """Returns name and version of every package that is linked into a shipped one, itself among them."""
    features = "" if MACHINE == "x86_64" else "cranelift"
    options = ["--no-default-features", "--features", features] if package == "ddtc-cli" else []
    lines = said(CARGO, "tree", "--locked", "--package", package, *options, "--target", f"{MACHINE}-unknown-linux-gnu", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    found = re.findall(r"^(\S+) v(\S+)", lines, re.MULTILINE)
    assert found, f"cargo tree names no package of {package}"
    return set(found)


def bom() -> dict[str, object]:
    wanted = set().union(*map(linked, SHIPPED))
    metadata = json.loads(said(CARGO, "metadata", "--locked", "--format-version", "1"))
    sums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    known = {package["id"]: package for package in metadata["packages"]}
    ids = {id: (package["name"], package["version"]) for id, package in known.items()}
    reference = {id: f"pkg:cargo/{name}@{quote(version)}" for id, (name, version) in ids.items()}
    components, edges = [], []
    for id, package in sorted(known.items(), key=lambda entry: ids[entry[0]]):
        if ids[id] not in wanted:
            continue
        component = {
            "type": "library",
            "bom-ref": reference[id],
            "name": package["name"],
            "version": package["version"],
            "description": package["description"] or "",
            "licenses": [{"expression": package["license"].replace("/", " OR ")}],
        }
        # Our own packages are in no registry, where a reader could look them up.
        if package["source"]:
            component["purl"] = reference[id]
        if sums[ids[id]]:
            component["hashes"] = [{"alg": "SHA-256", "content": sums[ids[id]]}]
        components.append(component)
        node = next(node for node in metadata["resolve"]["nodes"] if node["id"] == id)
        normal = {dep["pkg"] for dep in node["deps"] if any(kind["kind"] is None for kind in dep["dep_kinds"])}
        edges.append({"ref": reference[id], "dependsOn": sorted(reference[dep] for dep in normal if ids[dep] in wanted)})
    compiler = said(os.environ.get("RUSTC", "rustc"), "--version").split()[1]
    standard = {"type": "library", "bom-ref": "rust-std", "name": "rust-std", "version": compiler, "licenses": [{"expression": "MIT OR Apache-2.0"}]}
    standard["description"] = "The standard library of Rust, which is linked into every program and library"
    version = next(package["version"] for package in known.values() if package["name"] == "ddtc")
    release = {"type": "application", "bom-ref": "release", "name": "ddtc", "version": version, "licenses": [{"expression": "MIT OR Apache-2.0"}]}
    shipped = sorted(reference[id] for id in known if ids[id][0] in SHIPPED)
    edges += [{"ref": "release", "dependsOn": [*shipped, "rust-std"]}, {"ref": "rust-std"}]
    commit, time = said("git", "log", "-1", "--format=%H %cI").split()
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The same commit and machine always give the same document.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'{commit} {MACHINE}')}",
        "version": 1,
        "metadata": {"timestamp": time, "component": release},
        "components": [*components, standard],
        "dependencies": edges,
    }


if __name__ == "__main__":
    print(json.dumps(bom(), indent=1))
