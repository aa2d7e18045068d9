"""Runs the Spack recipe package.py without Spack.

    python3 packaging/spack/run.py PREFIX [+VARIANT ..]

Neither PyPI nor Debian has Spack as a package. The recipe uses some classes and functions of Spack;
small classes in this file stand for these. The script prints the directives of the recipe and calls
its `install`. It does not check what only Spack can check, such as the concretization and the names
of other packages.
"""

import os
import subprocess
import sys
import types
from pathlib import Path

HERE = Path(__file__).resolve().parent
said: list[tuple[str, tuple[object, ...], dict[str, object]]] = []


class Package:
    prefix: "Prefix"


class Prefix(str):
    """A path whose attributes are folders in it."""

    def __getattr__(self, name: str) -> "Prefix":
        return Prefix(os.path.join(self, name))


class Executable:
    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, *arguments: str) -> None:
        subprocess.run([self.path, *arguments], check=True)


class Spec:
    """The variants that were chosen on the command line."""

    def __init__(self, variants: list[str]) -> None:
        self.variants = variants

    def satisfies(self, what: str) -> bool:
        return what in self.variants


class Environment:
    def prepend_path(self, name: str, folder: str) -> None:
        print("prepend_path", name, folder)


def directive(name: str):
    """Returns a function that records a call of the directive `name` with its arguments."""
    return lambda *arguments, **named: said.append((name, arguments, named))


package = types.ModuleType("spack.package")
directives = ["license", "version", "variant", "depends_on", "conflicts"]
package.__dict__.update(Package=Package, Executable=Executable, **{name: directive(name) for name in directives})
sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": package})

if __name__ == "__main__":
    prefix, variants = Prefix(os.path.abspath(sys.argv[1])), sys.argv[2:]
    recipe: dict[str, object] = {}
    exec(compile((HERE / "package.py").read_text(), "package.py", "exec"), recipe)
    for name, arguments, named in said:
        print(name, *arguments, *(f"{key}={value}" for key, value in named.items()))
    known = {arguments[0] for name, arguments, _ in said if name == "variant"}
    assert all(v[1:] in known for v in variants), f"{variants}: the recipe knows {known}"
    os.chdir(HERE.parent.parent)
    ddtc = recipe["Ddtc"]()
    ddtc.prefix = prefix
    ddtc.install(Spec(variants), prefix)
    ddtc.setup_run_environment(Environment())
