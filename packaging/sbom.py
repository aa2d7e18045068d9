#!/usr/bin/env python3
"""Prints which packages are in the programs and libraries of a release, as CycloneDX 1.6 in JSON.

    packaging/sbom.py [MACHINE]
    packaging/sbom.py --notices >THIRD-PARTY

MACHINE is the machine for which the release was built, x86_64 or aarch64, and by default this one.
The list has the packages that cargo links into the command, the preload library, the C library, the
replacement for yaksa and the Python module. It leaves out packages that are needed only to build or
to test them. Licences come from the manifests of the packages, and hashes from Cargo.lock.

--notices: print the notices of the linked packages of other projects instead, for all machines
  together: their names and licences, and the texts of the licences. This is the file THIRD-PARTY,
  which is installed with the programs and libraries.
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
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
CARGO = os.environ.get("CARGO", "cargo")
MACHINES = ["x86_64", "aarch64"]
SHIPPED = ["ddtc-cli", "ddtc-preload", "ddtc-capi", "ddtc-yaksa", "ddtc-python"]
MIT = "Permission is hereby granted, free of charge"
TITLES = ["MIT License", "The MIT License (MIT)"]
LICENCE = re.compile(r"(licen[cs]e|copying|copyright|notice|unlicense)", re.IGNORECASE)


HEAD = """Packages of other projects in ddtc

The programs and libraries of ddtc contain the packages below, or some of them: those of Cranelift
and what they need are only in files for other machines than x86-64. After the list come the texts of
their licences, each with the packages that it belongs to. Of packages that are offered under MIT or
another licence, the text of MIT is printed.

Every program and library also contains the standard library of Rust, Copyright (c) The Rust Project
Developers: MIT OR Apache-2.0. https://github.com/rust-lang/rust has its notices and those of the
packages that it contains.

"""


def said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(package: str, machine: str) -> set[tuple[str, str]]:
    """Returns name and version of every package that is linked into a shipped one, itself among them."""
    features = "" if machine == "x86_64" else "cranelift"
    options = ["--no-default-features", "--features", features] if package == "ddtc-cli" else []
    lines = said(CARGO, "tree", "--locked", "--package", package, *options, "--target", f"{machine}-unknown-linux-gnu", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}")
    found = re.findall(r"^(\S+) v(\S+)", lines, re.MULTILINE)
    assert found, f"cargo tree names no package of {package}"
    return set(found)


def metadata() -> dict[str, Any]:
    return json.loads(said(CARGO, "metadata", "--locked", "--format-version", "1"))


def notices() -> str:
    """Returns the text of the file THIRD-PARTY."""
    wanted = set().union(*(linked(package, machine) for package in SHIPPED for machine in MACHINES))
    names, texts, without = [], {}, []
    for package in sorted(metadata()["packages"], key=lambda package: (package["name"], package["version"])):
        if (package["name"], package["version"]) not in wanted or not package["source"]:
            continue
        name, licence = f"{package['name']} {package['version']}", package["license"].replace("/", " OR ")
        names.append(f"{name}: {' '.join(licence.split())}")
        files = sorted(file for file in Path(package["manifest_path"]).parent.iterdir() if file.is_file() and LICENCE.match(file.name))
        # Of several licences to choose from, take MIT, which has the shortest text.
        files = [file for file in files if "MIT" in file.name.upper()] or files
        if not files:
            without.append((name, licence))
        for file in files:
            lines = [line.rstrip() for line in file.read_text().strip("\n").splitlines()]
            # Texts that differ only in their line breaks are printed once, and those of MIT also if
            # they differ in the lines above the permission: a title, and who has the copyright.
            start = next((i for i, line in enumerate(lines[:10]) if line.startswith(MIT)), 0)
            above = "".join(f"\n    {line}" for line in lines[:start] if line and line not in TITLES)
            texts.setdefault(" ".join(" ".join(lines[start:]).split()), (licence, lines[start:], []))[2].append(name + above)
    # Packages of Cranelift have no file, or the same one.
    for name, licence in without:
        next(users for known, _, users in texts.values() if known == licence).append(name)
    parts = [HEAD + "\n".join(names) + "\n"]
    parts += ["\n".join(sorted(set(users))) + "\n\n" + "\n".join(lines) + "\n" for _, lines, users in texts.values()]
    return f"\n{'-' * 80}\n\n".join(parts)


def bom(machine: str) -> dict[str, object]:
    wanted = set().union(*(linked(package, machine) for package in SHIPPED))
    sums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    resolved = metadata()
    known = {package["id"]: package for package in resolved["packages"]}
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
        node = next(node for node in resolved["resolve"]["nodes"] if node["id"] == id)
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
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_OID, f'{commit} {machine}')}",
        "version": 1,
        "metadata": {"timestamp": time, "component": release},
        "components": [*components, standard],
        "dependencies": edges,
    }


if __name__ == "__main__":
    argument = sys.argv[1] if len(sys.argv) > 1 else platform.machine()
    print(notices() if argument == "--notices" else json.dumps(bom(argument), indent=1))
