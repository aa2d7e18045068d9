"""Lists the cases of yaksa's and MPICH's tests, as the test lists in their sources give them.

The name of a case is its line in a list with a prefix: `yaksa test/pack/pack -datatype int ..`,
`mpi pt2pt/bottom 2`, or `nolocal rma/test1 2`. A case with the prefix `nolocal` is the same as the
case with `mpi`, but MPICH's shared memory is switched off, so that all messages take the path of
the network. If a list gives more than RANKS ranks for a case, the case runs on RANKS ranks and its
name has that number. MPICH's own runtests does the same if it has a limit.
"""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

YAKSA = ["simple/testlist.gen", "pack/testlist.gen", "pack/testlist.threads.gen", "pack/testlist.blocking.gen", "iov/testlist.gen",
         "iov/testlist.threads.gen", "flatten/testlist.gen", "flatten/testlist.threads.gen"]
MPI = ["datatype", "attr", "pt2pt", "coll", "rma", "comm", "topo", "io"]
# Folders of tests that are run a second time with the prefix `nolocal`, as if there were a network
# between the ranks. Through shared memory, these tests hardly use the datatype engine.
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
    # Gigabytes of memory that the case needs, according to the test list.
    memory: float = 0
    # The name of the known failure that the test list gives for this case, or an empty text.
    expected_failure: str = ""
    # True if the test list allows the program to print more than its verdict.
    warnings: bool = False


def lines(path):
    for line in path.read_text().splitlines():
        line = " ".join(line.split())
        if line and not line.startswith("#"):
            yield line


def yaksa_cases(source, programs):
    """Yields the cases of yaksa's own tests, from the test lists in `source`.

    `programs` is the folder in which build_yaksa_tests has built the programs.
    """
    for part in YAKSA:
        for line in lines(source / "test" / part):
            program, *arguments = line.split(" ")
            yield Case(f"yaksa {line}", "yaksa", programs, "./" + Path(program).name, arguments)


def mpi_case(suite, part, folder, line):
    """Returns the case that a line of a test list of MPICH describes.

    The line has the form `program ranks key=value ..`, as the README of MPICH's test/mpi says.
    """
    program, ranks, *words = line.split(" ")
    ranks = min(int(ranks), RANKS)
    case = Case(" ".join([suite, f"{part}/{program}", str(ranks), *words]), suite, folder / part, "./" + program, [], ranks)
    for key, value in (word.split("=", 1) for word in words if "=" in word):
        # The test lists use the following keys. If a list has another key, the run ends with an
        # error: without the meaning of the key, the case could be judged wrongly.
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
    """Yields the cases of MPICH's test/mpi in `source`, which was configured in `folder`.

    A part has up to two test lists: `testlist`, which was written by hand or by configure, and
    `testlist.dtp` with random datatypes, which configure has written.
    """
    for suite, parts in (("mpi", MPI), ("nolocal", NOLOCAL)):
        for part in parts:
            for name in ("testlist", "testlist.dtp"):
                path = next((p for p in (folder / part / name, source / part / name) if p.exists()), None)
                if path:
                    for line in lines(path):
                        yield mpi_case(suite, part, folder, line if re.match(r"\S+ \d", line) else line + " 2")


def all_cases(source, yaksa_programs, mpi_folder):
    """Returns all cases, each once, in the order of the test lists.

    `source` is the folder with the sources of MPICH.
    """
    found = {}
    # Later releases of MPICH have yaksa in another folder, without yaksa's tests.
    if (source / "modules/yaksa/test").is_dir():
        for case in yaksa_cases(source / "modules/yaksa", yaksa_programs):
            found.setdefault(case.name, case)
    for case in mpi_cases(source / "test/mpi", mpi_folder):
        found.setdefault(case.name, case)
    return list(found.values())
