#!/usr/bin/env python3
"""Runs mpi4py's own tests under an MPI library and writes a line for each test.

Lines have the form of run.py: the label, the digest of --library, the verdict, the seconds (of the
whole job), numbers of calls (always 0), the name of the test, and a note. A name has the number of
ranks, as in `mpi4py 2/test_pack.TestPackExternal.testPackExternal`. A test passes if it passes on each
rank that runs it; a test that all ranks skip gets no line. The job as a whole counts as a test too,
`mpi4py 2/job`, which passes if all ranks come to their end and succeed, and if the output of the job
has at least as many lines that match --expect as there are ranks.

A job is not run again if it already has lines with the same label and digest. With --list and
--times N, only the tests that the list names are run, until each has N lines. The Python interpreter,
the package mpi4py and its tests are those in target/ddtc-hosts, where `./test.sh mpi4py` installs
them.
"""

import argparse
import hashlib
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2] / "preload/tests/python/suite.py"


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=Path, required=True, help="target/ddtc-hosts")
    parser.add_argument("--family", choices=("mpich", "openmpi"), required=True, help="the MPI library's family")
    parser.add_argument("--mpi", type=Path, required=True, help="file of the MPI library")
    parser.add_argument("--library", type=Path, required=True, help="the file that differs between the labels; each rank must load it")
    parser.add_argument("--launch", type=shlex.split, required=True, help="launcher and its arguments; the number of ranks is added")
    parser.add_argument("--label", required=True, help="label in the results")
    parser.add_argument("--results", type=Path, required=True, help="file to which the lines are added")
    parser.add_argument("--ranks", type=int, action="append", required=True, help="number of ranks; may be repeated")
    parser.add_argument("--expect", metavar="REGEX", help="pattern of a line that each rank must print")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="set an environment variable")
    parser.add_argument("--list", type=Path, help="file with names of tests: run only these")
    parser.add_argument("--times", type=int, default=1, help="number of lines that each test of the list should have")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a job counts as hanging [%(default)s]")
    return parser.parse_args()


def verdicts(logs):
    """Returns the verdict of each test, from the logs that suite.py has written for the ranks."""
    found, ended = defaultdict(set), True
    for log in logs:
        text = log.read_text() if log.exists() else ""
        ended &= bool(re.search(r"^end \d+$", text, re.MULTILINE))
        said = {}
        for line in text.splitlines():
            word, _, rest = line.partition(" ")
            if word in ("begin", "pass", "fail", "skip"):
                # The line of a part of a test, or of the preparation of a class, has further words.
                name = rest if rest.startswith(("setUp", "tearDown")) else rest.split(" ")[0]
                said[name] = "fail" if "fail" in (word, said.get(name)) else word
        for name, word in said.items():
            found[name].add("ends here" if word == "begin" else word)
    found = {name: words - {"skip"} for name, words in found.items() if words != {"skip"}}
    return {name: "pass" if words == {"pass"} else ", ".join(sorted(words - {"pass"})) for name, words in found.items()}, ended


def launched(o, ranks, *command):
    """Returns the command line that starts Python with the arguments `command` on some ranks."""
    return [*o.launch, "-n", str(ranks), o.hosts / o.family / "bin/python", *command]


def environment(o):
    """Returns the environment of the launcher. Processes that tests start with MPI_Comm_spawn get it too."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DDTC_", "MPIR_CVAR_", "LD_"))}
    settings = dict(setting.split("=", 1) for setting in o.set)
    return {**env, "MPI4PY_LIBMPI": str(o.mpi), "PYTHONDONTWRITEBYTECODE": "1", **settings}


def check_library(o):
    """Ends the script if a process in which mpi4py has loaded the MPI library has not loaded --library."""
    program = "from mpi4py import MPI; print(open('/proc/self/maps').read())"
    job = subprocess.run(launched(o, 1, "-c", program), env=environment(o), stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if str(o.library.resolve()) not in job.stdout:
        sys.exit(f"error: a process with mpi4py does not load {o.library}: correct --mpi, --library or --set\n{job.stderr[-2000:]}")


def job(o, ranks, only):
    """Runs the tests on some ranks. Returns the verdicts of the tests and of the job, and a note."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        names = folder / "only"
        names.write_text("".join(f"{name}\n" for name in only))
        command = launched(o, ranks, SUITE, folder / "log", names if only else "-", next(o.hosts.glob("mpi4py-*/test/main.py")), "--no-builddir")
        output = folder / "output"
        with output.open("wb") as sink:
            process = subprocess.Popen(command, cwd=folder, env=environment(o), stdin=subprocess.DEVNULL, stdout=sink, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            try:
                code = process.wait(o.limit)
            except BaseException as end:    # The job hangs, or this script is being ended.
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                if not isinstance(end, subprocess.TimeoutExpired):
                    raise
                code = None
        text = output.read_text(errors="replace")
        tests, ended = verdicts([folder / f"log.{rank}" for rank in range(ranks)])
        seen = len(re.findall(o.expect, text, re.MULTILINE)) if o.expect else ranks
        said = "hangs" if code is None else f"exit {code}" if code else "ends early" if not ended else "not seen" if seen < ranks else "pass"
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if o.expect:
            print("\n".join(line for line in lines if re.search(o.expect, line)))
        return {**tests, "job": said}, " / ".join(lines[-3:])[:300].replace("\t", " ")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    o = options()
    o.hosts, o.mpi = o.hosts.resolve(), o.mpi.resolve()
    digest = hashlib.sha256(o.library.read_bytes()).hexdigest()[:12]
    runs = defaultdict(int)
    if o.results.exists():
        for line in o.results.read_text().splitlines():
            label, of, *_, name, _note = line.split("\t")
            runs[name] += (label, of) == (o.label, digest)
    wanted = o.list.read_text().splitlines() if o.list else None
    for ranks in o.ranks:
        prefix = f"mpi4py {ranks}/"
        if wanted is None:
            todo = [] if runs[f"{prefix}job"] else ["job"]
        else:
            todo = [name.removeprefix(prefix) for name in wanted if name.startswith(prefix) and runs[name] < o.times]
        if not todo:
            continue
        check_library(o)
        start = time.monotonic()
        tests, note = job(o, ranks, [] if "job" in todo else todo)
        seconds = time.monotonic() - start
        passed = sum(said == "pass" for said in tests.values())
        print(f"{o.label} {prefix[:-1]}: {passed} of {len(tests)} pass, the job: {tests['job']}, {seconds:.0f} s", flush=True)
        for name in wanted and todo or []:
            tests.setdefault(name, "not reached")
        with o.results.open("a") as sink:
            for name, said in tests.items():
                if wanted is None or name in todo:
                    zero = "pack=0 unpack=0 iov=0 iov_len=0 flatten=0 unflatten=0"
                    sink.write("\t".join([o.label, digest, said, f"{seconds:.2f}", zero, prefix + name, "" if said == "pass" else note]) + "\n")


if __name__ == "__main__":
    main()
