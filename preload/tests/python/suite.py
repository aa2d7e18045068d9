"""Runs the tests of mpi4py and writes the outcome of each test into a file.

    suite.py LOG ONLY MAIN ARGUMENTS..

MAIN is mpi4py's test/main.py, which gets ARGUMENTS. ONLY is a file with the names of tests and
classes, one on each line. These tests run; all others are loaded and left out. With - for ONLY, all
tests run.

A line is written when a test begins and another when it ends, so that the log of a process that
dies or hangs names the test. The name of the log is LOG with the rank as its suffix. The first line
names the preload library if it is in the process. The line `loaded` at the end has the number of
tests that were loaded, including those that were left out. The last line, `end` with a number of
tests, says that all tests that should run came to their end. The process then ends with success
whatever the outcomes of the tests are, so that its exit status says whether finalization succeeded.
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


def logged(name, verdict):
    """Wraps a method of TestResult, so that each call writes a line with the verdict and the test.

    The first argument is the method's name.
    """
    before = getattr(TestResult, name)

    def method(self, test, *rest):
        global ran
        ran += name == "startTest"
        # If a subtest has succeeded, write no line for it.
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
    logged(name, verdict)

loaded = 0
add = TestSuite.addTest


def chosen(self, test):
    """Replaces TestSuite.addTest: counts each test and adds only those that are wanted."""
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
    # The codes 0 and 1 of main.py are the result of the tests. With any other code, the tests did
    # not come to their end.
    if end.code not in (None, 0, 1):
        raise
    print("loaded", loaded, file=log)
    print("end", ran, file=log)
