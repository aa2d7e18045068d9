#!/usr/bin/env python3
"""Finds out whether the fast tier of the tests notices the 44 faults of planted.txt.

Each fault is planted alone into a copy of the sources in the folder DIR. A fault of the preload
library must be noticed by the smoke tests under MPI libraries, and a fault of the C library by the
test that builds and runs programs in C.

    tests/mutants/planted.py DIR [--only WORDS]
        Tries the faults, and continues a run that was interrupted. Each fault takes a build of the
        library and a few seconds of tests.
    tests/mutants/planted.py --check
        Only checks whether each fault still fits its file.
    tests/mutants/planted.py DIR --part NAME
        Runs a part of e2e (tests/parts.txt) on the faults that the tests of an earlier run did not
        notice, and on the faults that were not tried yet.

The script adds a line for each fault to DIR/results.jsonl. The exit status is 0 if the fast tier
notices at least 30 faults, including those of earlier runs in DIR. It is 1 if the fast tier notices
fewer, or if something failed.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Number of faults that the fast tier must catch for this script to succeed.
MIN_CAUGHT = 30
# Seconds after which a run of tests counts as hanging, so that its fault counts as caught. Without
# a fault, all tests together take a small part of this time.
LIMIT = 900


def faults():
    """Yields each fault of planted.txt as a tuple.

    A tuple has the name of the fault, its file, a filter for the tests to run first, the original
    text, and the text that replaces it.
    """
    with open(os.path.join(ROOT, "tests/mutants/planted.txt")) as file:
        blocks = file.read().split("\n= ")[1:]
    for block in blocks:
        head, *lines = block.rstrip("\n").split("\n")
        name, path, first = head.split(" | ")
        side = {sign: "\n".join(line[2:] for line in lines if line[:1] == sign) for sign in "-+"}
        yield name, path, first, side["-"], side["+"]


def planted(root, path, old, new):
    """Returns the text of a file with `new` in place of `old`, and the unchanged text.

    If `old` does not occur exactly once in the file, the first result is None.
    """
    with open(os.path.join(root, path)) as file:
        text = file.read()
    if text.count(old) != 1:
        return None, text
    return text.replace(old, new), text


class Tree:
    """A copy of the sources, in which cargo builds into a target folder of its own."""

    def __init__(self, folder, limit):
        self.limit = limit
        self.root = os.path.join(folder, "tree")
        self.target = os.path.join(folder, "target")
        os.makedirs(self.root, exist_ok=True)
        os.makedirs(self.target, exist_ok=True)
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                               capture_output=True).stdout
        pack = subprocess.Popen(["tar", "-c", "--null", "-T", "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        unpack = subprocess.Popen(["tar", "-x", "-C", self.root], stdin=pack.stdout)
        pack.stdin.write(names)
        pack.stdin.close()
        pack.wait(), unpack.wait()
        # The tests in the copy use the MPI libraries that this checkout has installed from pinned
        # wheels: link their folder into the target folder of the copy.
        wheels, here = os.path.join(ROOT, "target/ddtc-hosts"), os.path.join(self.target, "ddtc-hosts")
        if os.path.isdir(wheels) and not os.path.exists(here):
            os.symlink(os.path.realpath(wheels), here)
        self.binaries = {}

    def cargo(self, *arguments):
        env = dict(os.environ, CARGO_TARGET_DIR=self.target)
        return subprocess.run(["cargo", *arguments], cwd=self.root, env=env, capture_output=True, text=True)

    def binary(self, package, test):
        """Returns the path of a test binary. The first call for a binary builds it."""
        if test not in self.binaries:
            out = self.cargo("test", "--locked", "-p", package, "--test", test, "--no-run", "--message-format=json")
            if out.returncode:
                sys.exit(f"error: {test} does not compile:\n{out.stderr[-4000:]}")
            for line in out.stdout.splitlines():
                message = json.loads(line)
                if message.get("executable") and message["target"]["name"] == test:
                    self.binaries[test] = message["executable"]
        return self.binaries[test]

    def run(self, package, test, *arguments):
        """Runs a test binary with these arguments, and returns None if the tests pass.

        If tests fail, returns the names of at most three of them. If the output names no failed
        test, the result is `hangs` if the time limit was exceeded, and `ends` otherwise.
        """
        command = [self.binary(package, test), *arguments]
        # Start the tests in the folder of their package, as cargo does.
        folder = os.path.join(self.root, {"ddtc-preload": "preload", "ddtc-capi": "capi"}.get(package, "e2e"))
        log = os.path.join(self.target, "planted.log")
        with open(log, "w") as file:
            process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(self.limit)
            except subprocess.TimeoutExpired:
                status = None
            end(process.pid)
        with open(log) as file:
            text = file.read()
        if status == 0:
            if re.search(r"^running 0 tests", text, re.M):
                sys.exit(f"error: no test matches {arguments}")
            return None
        failed = re.findall(r"^test (\S+) \.\.\. FAILED", text, re.M)
        return ", ".join(failed[:3]) or ("hangs" if status is None else "ends")


def end(session):
    """Kills all processes that are left of a session.

    It would not suffice to kill the process group of the test binary, since the launchers and ranks
    of MPI jobs have process groups of their own.
    """
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[3]) == session:
                    os.kill(int(pid), signal.SIGKILL)
        except OSError:
            pass


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", metavar="DIR", help="folder for the copy of the sources and the results")
    parser.add_argument("--only", default="", metavar="WORDS", help="try only the faults whose names contain WORDS")
    parser.add_argument("--check", action="store_true", help="check only whether each fault still fits its file")
    parser.add_argument("--part", metavar="NAME", help="run this part of e2e instead of the fast tier")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds after which tests count as hanging [%(default)s]")
    args = parser.parse_args()
    everything = list(faults())
    stale = [name for name, path, _, old, new in everything if planted(ROOT, path, old, new)[0] is None]
    if stale:
        sys.exit("error: the files of these faults do not have the original text exactly once; correct tests/mutants/planted.txt: " + "; ".join(stale))
    if args.check or not args.folder:
        print(f"all {len(everything)} faults of planted.txt fit their files")
        return
    folder = os.path.abspath(args.folder)
    tree = Tree(folder, args.limit)
    record = os.path.join(folder, "results.jsonl")
    known = {}
    if os.path.exists(record):
        with open(record) as file:
            known = {row["name"]: row for row in map(json.loads, file)}
    filters = None
    if args.part:
        with open(os.path.join(ROOT, "tests/parts.txt")) as file:
            command = next(line.rsplit(" | ", 1)[1] for line in file if line.startswith(args.part + " | "))
        test, filters = re.search(r"--test (\w+)", command).group(1), command.partition(" -- ")[2].split()
    # Plant one fault at a time: write the changed file, build the library, run the tests, and
    # restore the file. Skip a fault that has a result from an earlier run, except that --part runs
    # again on faults that no test noticed before ("survived").
    for name, path, first, old, new in everything:
        survived = known.get(name, {}).get("verdict") == "survived"
        if args.only not in name or (name in known and not (survived and args.part)):
            continue
        package, test_of = ("ddtc-preload", "smoke") if path.startswith("preload/") else ("ddtc-capi", "installed")
        text, was = planted(tree.root, path, old, new)
        if args.part:
            tree.binary("ddtc-e2e", test)
        else:
            tree.binary(package, test_of)
        start = time.monotonic()
        try:
            with open(os.path.join(tree.root, path), "w") as file:
                file.write(text)
            built = tree.cargo("build", "--locked", "-p", package)
            if built.returncode:
                sys.exit(f"error: {name} does not compile:\n{built.stderr[-2000:]}")
            if args.part:
                verdict, by = tree.run("ddtc-e2e", test, *filters), args.part
            else:
                verdict, by = tree.run(package, test_of, first) or tree.run(package, test_of), "fast"
        finally:
            with open(os.path.join(tree.root, path), "w") as file:
                file.write(was)
        row = {"name": name, "file": path, "verdict": by if verdict else "survived", "tests": verdict or "",
               "seconds": round(time.monotonic() - start)}
        known[name] = row
        with open(record, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{row['verdict']:10} {row['seconds']:4} s  {name}: {row['tests']}", flush=True)
    caught = [row for row in known.values() if row["verdict"] == "fast"]
    print(f"{len(caught)} of {len(everything)} by the fast tier; left: {[n for n, *_ in everything if known.get(n, {}).get('verdict') != 'fast']}")
    sys.exit(0 if len(caught) >= MIN_CAUGHT else 1)


if __name__ == "__main__":
    main()
