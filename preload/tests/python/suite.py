"""mpi4py's own tests, with the outcome of each in a file: suite.py LOG ONLY MAIN ARGUMENTS.. runs MAIN, mpi4py's test/main.py.

ONLY is a file of names of tests and classes, a line each: those run, all others are loaded and left out; - means that all run.

A line is written as a test begins and as it ends, so that a process which dies or hangs tells in which test. LOG gets the rank as its end.
The first line names the preload library if it is in the process, the last ones say how many tests were loaded, left out ones among them, and, `end`
with a number of tests, that all that should run came to their end; then the process ends with success, whatever tests say, so that its exit status tells
whether finalization went well.
"""

import os
import runpy
import sys
from unittest import TestCase, TestResult, TestSuite

path, only, main = sys.argv[1:4]
wanted = None if only == "-" else {line.strip() for line in open(only)}
rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
log = open(f"{path}.{rank}", "w", buffering=1)
with open("/proc/self/maps") as maps:
    if any("libddtc_preload.so" in line for line in maps):
        print("with libddtc_preload.so", file=log)
ran = 0


def told(name, verdict):
    before = getattr(TestResult, name)

    def method(self, test, *rest):
        global ran
        ran += name == "startTest"
        # A part of a test that did well is no news.
        if name != "addSubTest" or rest[1] is not None:
            case = getattr(test, "id", lambda: str(test))()
            print(verdict, case.replace("\n", " "), file=log)
        return before(self, test, *rest)

    setattr(TestResult, name, method)


for name, verdict in {
    "startTest": "begin",
    "addSuccess": "pass",
    "addFailure": "fail",
    "addError": "fail",
    "addSubTest": "fail",
    "addSkip": "skip",
    "addExpectedFailure": "pass",
    "addUnexpectedSuccess": "fail",
}.items():
    told(name, verdict)

loaded = 0
add = TestSuite.addTest


def chosen(self, test):
    global loaded
    if isinstance(test, TestCase):
        loaded += 1
        parts = test.id().split(".")
        if wanted is not None and not any(".".join(parts[:n]) in wanted for n in range(1, len(parts) + 1)):
            return
    add(self, test)


TestSuite.addTest = chosen
sys.path.insert(0, os.path.dirname(os.path.abspath(main)))
sys.argv[:] = [main, *sys.argv[4:]]
try:
    runpy.run_path(main, run_name="__main__")
except SystemExit as end:
    # 0 and 1 are what main.py says of tests; anything else is no end of theirs.
    if end.code not in (None, 0, 1):
        raise
    print("loaded", loaded, file=log)
    print("end", ran, file=log)
