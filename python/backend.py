"""The build backend of the source distribution, which packaging/sources.sh makes.

A wheel contains the command `ddtc` and the preload library. This backend builds both with cargo,
and maturin builds the Python module and the wheel.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

from maturin import build_wheel as module_wheel
from maturin import get_requires_for_build_wheel, prepare_metadata_for_build_wheel

__all__ = ["build_sdist", "build_wheel", "get_requires_for_build_wheel", "prepare_metadata_for_build_wheel"]
ROOT = Path(__file__).resolve().parent.parent


def build_sdist(sdist_directory, config_settings=None):
    """Refuses to build a source distribution. In a checkout, packaging/sources.sh makes it."""
    raise SystemExit("ddtc: a source distribution is made by packaging/sources.sh, from a checkout")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds a wheel for this machine into a folder and returns its name."""
    target = Path(os.environ.setdefault("CARGO_TARGET_DIR", str(ROOT / "target")))
    cargo = [os.environ.get("CARGO", "cargo"), "build", "--locked", "--release"]
    # ddtc has a code generator of its own only for x86-64. On other machines, Cranelift generates
    # the code.
    features = "" if platform.machine() == "x86_64" else "cranelift"
    command = ["--package", "ddtc-cli", "--bin", "ddtc-installed", "--no-default-features", "--features", features]
    for package in command, ["--package", "ddtc-preload"]:
        subprocess.run(cargo + package, cwd=ROOT, check=True)
    folder = ROOT / "python/ddtc/bin"
    folder.mkdir(exist_ok=True)
    for built, name in ("ddtc-installed", "ddtc"), ("libddtc_preload.so", "libddtc_preload.so"):
        shutil.copy(target / "release" / built, folder / name)
        subprocess.run(["strip", folder / name], check=True)
    return module_wheel(wheel_directory, config_settings, metadata_directory)
