"""The cases of yaksa's and MPICH's tests, from the lists that come with their sources.

A case is named by its line: `yaksa test/pack/pack -datatype int ..`, `mpi pt2pt/bottom 2`, or
`nolocal rma/test1 2`. The last form is the same as `mpi` with shared memory off, so that all
messages take the path of the network. A case of more than RANKS ranks runs on RANKS ranks, as
under MPICH's own runtests with a limit, and is named by that number.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

YAKSA = ["simple/testlist.gen", "pack/testlist.gen", "pack/testlist.threads.gen", "pack/testlist.blocking.gen", "iov/testlist.gen",
         "iov/testlist.threads.gen", "flatten/testlist.gen", "flatten/testlist.threads.gen"]
MPI = ["datatype", "attr", "pt2pt", "coll", "rma", "comm", "topo", "io"]
# Tests that hardly reach the datatype engine between ranks of one machine. They are repeated as if
# there were a network between the ranks.
NOLOCAL = ["rma", "pt2pt", "coll"]
RANKS = int(os.environ.get("DDTC_RUNTIME_RANKS", "4"))


@dataclass
class Case:
    name: str
    suite: str
    folder: Path
    program: str
    arguments: list
    ranks: int = 0
    environment: dict = field(default_factory=dict)
    # Memory that the case needs according to the list, in gigabytes.
    memory: float = 0
    # The known failure that the list names for the case; empty if it names none.
    expected_failure: str = ""
    # Whether the list allows other output than the verdict.
    warnings: bool = False


def lines(path):
    for line in path.read_text().splitlines():
        line = " ".join(line.split())
        if line and not line.startswith("#"):
            yield line


def yaksa_cases(source, programs):
    """Yields the command lines of yaksa's own tests. `programs` is the folder where the script has
    built them."""
    for part in YAKSA:
        for line in lines(source / "test" / part):
            program, *arguments = line.split(" ")
            yield Case(f"yaksa {line}", "yaksa", programs, "./" + Path(program).name, arguments)


def mpi_case(suite, part, folder, line):
    """Returns the case of a line `program ranks key=value ..`, as the README of MPICH's test/mpi
    describes it."""
    program, ranks, *words = line.split(" ")
    ranks = min(int(ranks), RANKS)
    case = Case(" ".join([suite, f"{part}/{program}", str(ranks), *words]), suite, folder / part, "./" + program, [], ranks)
    for key, value in (word.split("=", 1) for word in words if "=" in word):
        # Rules for the keys of the lists. A key without a rule ends the run: without its meaning,
        # the case could be judged wrongly.
        if key == "arg":
            case.arguments.append(value)
        elif key == "env":
            name, _, setting = value.partition("=")
            case.environment[name] = setting
        elif key == "mem":
            case.memory = float(value)
        elif key == "xfail":
            case.expected_failure = value
        elif key == "resultTest" and value == "TestAllowWarnings":
            case.warnings = True
        elif key not in ("strict", "timeLimit", "lock"):
            raise ValueError(f"{part}: no rule for {key}= in: {line}")
    if suite == "nolocal":
        case.environment["MPIR_CVAR_NOLOCAL"] = "1"
    return case


def mpi_cases(source, folder):
    """Yields the cases of MPICH's test/mpi in `source`, configured in `folder`: those of lists by
    hand, which configure may have written, and those of lists of random datatypes, which it has
    written."""
    for suite, parts in (("mpi", MPI), ("nolocal", NOLOCAL)):
        for part in parts:
            for name in ("testlist", "testlist.dtp"):
                path = next((p for p in (folder / part / name, source / part / name) if p.exists()), None)
                if path:
                    for line in lines(path):
                        yield mpi_case(suite, part, folder, line if re.match(r"\S+ \d", line) else line + " 2")


def all_cases(source, yaksa_programs, mpi_folder):
    """Returns each case once, in the order of the lists. `source` has the sources of MPICH."""
    found = {}
    # Later releases of MPICH have yaksa in another folder, and come without its tests.
    if (source / "modules/yaksa/test").is_dir():
        for case in yaksa_cases(source / "modules/yaksa", yaksa_programs):
            found.setdefault(case.name, case)
    for case in mpi_cases(source / "test/mpi", mpi_folder):
        found.setdefault(case.name, case)
    return list(found.values())
