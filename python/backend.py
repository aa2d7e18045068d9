"""The build backend of the source distribution, which packaging/sources.sh makes.

A wheel contains the command `ddtc` and the preload library. This backend builds both with cargo,
and maturin builds the Python module and the wheel.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

from maturin import build_wheel as module_wheel
from maturin import prepare_metadata_for_build_wheel

__all__ = ["build_sdist", "build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]
ROOT = Path(__file__).resolve().parent.parent


def build_sdist(sdist_directory, config_settings=None):
    """Refuses to build a source distribution. In a checkout, packaging/sources.sh makes it."""
    raise SystemExit("ddtc: a source distribution is made by packaging/sources.sh, from a checkout")


def target():
    """Returns Rust's name of the target for which cargo builds. Refuses what ddtc is not for."""
    if platform.system() != "Linux":
        raise SystemExit(f"ddtc: this system is {platform.system()}: ddtc is for 64-bit Linux with glibc")
    if sys.maxsize < 2**32:
        raise SystemExit("ddtc: this Python is of 32 bits: ddtc is for 64-bit Linux with glibc")
    if platform.libc_ver()[0] != "glibc":
        raise SystemExit("ddtc: this Python is not built for glibc (musl?): the preload library needs glibc, as MPI libraries do")
    for tool in os.environ.get("CARGO", "cargo"), os.environ.get("RUSTC", "rustc"):
        if shutil.which(tool) is None:
            raise SystemExit(f"ddtc: {tool} is missing: install Rust 1.95 or newer from https://rustup.rs, or take the wheel of a release, which needs none")
    said = subprocess.run([tool, "-vV"], check=True, stdout=subprocess.PIPE, text=True).stdout
    triple = os.environ.get("CARGO_BUILD_TARGET") or re.search("^host: (.*)$", said, re.MULTILINE)[1]
    if not re.fullmatch("(x86_64|aarch64|riscv64[a-z]*)-.*-linux-gnu", triple):
        raise SystemExit(f"ddtc: Rust builds for {triple}: ddtc is for 64-bit Linux with glibc; install a toolchain for it, such as x86_64-unknown-linux-gnu")
    return triple


def get_requires_for_build_wheel(config_settings=None):
    """Returns what a build needs besides what pyproject.toml says: nothing. pip calls this first."""
    target()
    return []


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel into a folder and returns its name."""
    triple = target()
    folder = Path(os.path.abspath(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")))
    # maturin calls cargo with these variables, too.
    os.environ.update(CARGO_TARGET_DIR=str(folder), CARGO_PROFILE_RELEASE_STRIP="symbols")
    cargo = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--release"]
    # ddtc has a code generator of its own only for x86-64. On other machines, Cranelift generates
    # the code.
    features = "" if triple.startswith("x86_64") else "cranelift"
    command = ["--package", "ddtc-cli", "--bin", "ddtc-installed", "--no-default-features", "--features", features]
    for package in command, ["--package", "ddtc-preload"]:
        subprocess.run(cargo + package, cwd=ROOT, check=True)
    built = folder / os.environ.get("CARGO_BUILD_TARGET", "") / "release"
    programs = ROOT / "python/ddtc/bin"
    programs.mkdir(exist_ok=True)
    shutil.copy(built / "ddtc-installed", programs / "ddtc")
    shutil.copy(built / "libddtc_preload.so", programs / "libddtc_preload.so")
    return module_wheel(wheel_directory, config_settings, metadata_directory)
