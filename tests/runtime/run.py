#!/usr/bin/env python3
"""Runs cases of the test suites under one libyaksa.so.0 and writes a line for each case.

A line has the label of the library, the library's digest, the verdict, the seconds, the numbers of
calls, the name of the case, and the first words of a failure. A case that already has a line with
the same label and digest is not run again. With --times N, it is run until it has N such lines.
--library is the folder with the libyaksa.so.0. The library of witness.c is preloaded into each
process, and records which libyaksa.so.0 the process has loaded. A case passes only if all its
processes have loaded the one of that folder.
"""

import argparse
import hashlib
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path

import cases as lists

PASSED = re.compile(r"^\s*No [Ee]rrors\s*$")
HARMLESS = re.compile(r"^\s*(Test Passed\s*)?$|^FORTRAN STOP")
KINDS = {"pack": "pack", "ipack": "pack", "pack_stream": "pack", "unpack": "unpack", "iunpack": "unpack", "unpack_stream": "unpack"}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="folder in which tests/runtime.sh builds")
    parser.add_argument("--mpich", required=True, metavar="NAME",
                        help="name of the MPICH in the cache: its prefix is CACHE/NAME, its build CACHE/NAME-build")
    parser.add_argument("--label", help="name of the library in the results")
    parser.add_argument("--library", type=Path, help="folder of the libyaksa.so.0 to be tested")
    parser.add_argument("--results", type=Path, help="file to which the lines are added")
    parser.add_argument("--programs", action="store_true", help="print only FOLDER/PROGRAM of all cases of MPICH's tests")
    parser.add_argument("--only", metavar="REGEX", help="run only cases whose names match")
    parser.add_argument("--list", type=Path, help="file with names of cases: run only these, and fail if one does not exist")
    parser.add_argument("--must-pass", action="store_true", help="fail if a case does not pass")
    parser.add_argument("--memory", type=float, default=4, help="leave out cases that need more gigabytes [%(default)s]")
    parser.add_argument("--limit", type=float, default=900, help="seconds after which a case counts as hanging [%(default)s]")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="set an environment variable of each case; may be repeated")
    parser.add_argument("--times", type=int, default=1, help="number of runs that each case should have in the results [%(default)s]")
    o = parser.parse_args()
    if not o.programs and None in (o.label, o.library, o.results):
        parser.error("--label, --library or --results is missing: give all three, or --programs")
    return o


def chosen(o):
    """Returns two lists: the cases to run, and the cases that are left out.

    If the file of --list names a case that does not exist, the script ends with an error.
    """
    every = lists.all_cases(o.cache / "source", o.cache / "yaksa-tests", o.cache / f"{o.mpich}-build/test/mpi")
    if o.list:
        names = [line for line in lists.lines(o.list)]
        known = {case.name: case for case in every}
        missing = [name for name in names if name not in known]
        if missing:
            sys.exit(f"error: --list {o.list} names cases that the suites do not have; correct or delete these lines:\n  " + "\n  ".join(missing))
        every = [known[name] for name in names]
    if o.only:
        every = [case for case in every if re.search(o.only, case.name)]
    # The test lists mark cases that are known to fail. Leave these out, as MPICH's own runtests
    # does by default.
    out = [case for case in every if case.memory > o.memory or case.expected_failure]
    if len(out) == len(every):
        sys.exit("error: no case is chosen: give another --only or --list")
    return [case for case in every if case not in out], out


def environment(o, case, witness):
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DDTC_", "MPIR_CVAR_", "LD_"))}
    env.update(setting.split("=", 1) for setting in o.set)
    env.update(case.environment)
    env["LD_LIBRARY_PATH"] = str(o.library.resolve())
    env["RUNTIME_WITNESS"] = str(witness)
    return env


def command(o, case):
    shim = str(o.cache / "witness.so")
    if case.suite == "yaksa":
        return ["env", f"LD_PRELOAD={shim}", case.program, *case.arguments]
    launcher = str(o.cache / o.mpich / "bin/mpiexec")
    # Bind each rank to a core. While a rank waits for a message, it keeps its core busy. If the
    # scheduler puts two ranks on one core, each waits for the end of the other one's time slice.
    return [launcher, "-bind-to", "core", "-genv", "LD_PRELOAD", shim, "-n", str(case.ranks), case.program, *case.arguments]


def end_all(process, witness):
    """Ends a case that hangs, and all its ranks.

    The launcher may have put ranks into sessions of their own. So the ranks are found by the value
    of their environment variable RUNTIME_WITNESS, which no other process has.
    """
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
    mark = f"RUNTIME_WITNESS={witness}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    os.kill(int(entry.name), signal.SIGKILL)
            except OSError:
                pass    # The process has ended meanwhile, or belongs to another user.


def run(o, case, scratch):
    """Runs a case.

    Returns its verdict, its seconds, its output, and the lines that the library of witness.c wrote.
    """
    witness = scratch / f"witness-{os.getpid()}"
    witness.unlink(missing_ok=True)
    if not (case.folder / case.program).exists():
        return "not built", 0.0, "", []
    start = time.monotonic()
    output = scratch / f"output-{os.getpid()}"
    with output.open("wb") as sink:
        process = subprocess.Popen(command(o, case), cwd=case.folder, env=environment(o, case, witness), stdin=subprocess.DEVNULL,
                                   stdout=sink, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(o.limit)
        except subprocess.TimeoutExpired:
            end_all(process, witness)
            code = None
        except BaseException:   # This script is being ended, for example by SIGTERM.
            end_all(process, witness)
            raise
    seconds = time.monotonic() - start
    text = output.read_bytes().decode(errors="replace")
    seen = witness.read_text().splitlines() if witness.exists() else []
    return verdict(o, case, code, text, seen), seconds, text, seen


def verdict(o, case, code, text, seen):
    expected = (o.library / "libyaksa.so.0").resolve()
    begun = [line.split(" ")[1] for line in seen if line.startswith("begin ")]
    wrong = [path for path in begun if Path(path).resolve() != expected]
    if wrong:
        return f"other library {wrong[0]}"
    if code is None:
        return "hangs"
    if len(begun) < max(case.ranks, 1):
        return "not seen"
    if code != 0:
        return f"signal {-code}" if code < 0 else f"exit {code}"
    if case.suite == "yaksa":
        return "pass"
    said = text.splitlines()
    if not any(PASSED.match(line) for line in said):
        return "no verdict"
    if case.warnings:
        return "pass"
    return "pass" if all(PASSED.match(line) or HARMLESS.match(line) for line in said) else "output"


def calls(seen):
    """Returns the numbers of calls of yaksa's functions, summed over the processes of a case.

    The calls of a process that was killed are missing, because a process writes them when it ends.
    """
    total = Counter()
    for line in seen:
        if line.startswith("end "):
            for word in line.split(" ")[2:]:
                name, number = word.split("=")
                total[KINDS.get(name, name)] += int(number)
    return " ".join(f"{name}={total[name]}" for name in ("pack", "unpack", "iov", "iov_len", "flatten", "unflatten"))


def first_words(case, text):
    for line in text.splitlines():
        if line.strip() and not (PASSED.match(line) or HARMLESS.match(line)):
            return " ".join(line.split())[:160]
    return ""


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    o = options()
    if o.programs:
        # A reader that needs no list, since the programs are built already, closes the pipe.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for name in sorted({f"{c.folder.name}/{c.program[2:]}" for c in chosen(o)[0] if c.suite != "yaksa"}):
            print(name)
        return
    digest = hashlib.sha256((o.library / "libyaksa.so.0").read_bytes()).hexdigest()[:12]
    todo, left = chosen(o)
    done = defaultdict(list)
    if o.results.exists():
        for line in o.results.read_text().splitlines():
            label, of, said, *_, name, _note = line.split("\t")
            if label == o.label and of == digest:
                done[name].append(said)
    failed = []
    for number, case in enumerate(todo, 1):
        while len(done[case.name]) < o.times:
            said, seconds, text, seen = run(o, case, o.cache)
            note = "" if said == "pass" else first_words(case, text)
            with o.results.open("a") as sink:
                sink.write("\t".join([o.label, digest, said, f"{seconds:.2f}", calls(seen), case.name, note]) + "\n")
            print(f"{number}/{len(todo)} {o.label} {said:10} {seconds:7.2f} s  {case.name}", flush=True)
            done[case.name].append(said)
        said = done[case.name][o.times - 1]
        if said != "pass":
            failed.append((case, said))
    print(f"{o.label} {digest}: {len(todo)} cases, {len(todo) - len(failed)} pass, {len(left)} left out: known to fail by their list, or in need of memory")
    for case, said in failed:
        print(f"  {said}: {case.name}")
    sys.exit(1 if failed and o.must_pass else 0)


if __name__ == "__main__":
    main()
