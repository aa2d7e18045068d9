"""mpi4py's own tests, with the outcome of each in a file: suite.py LOG MAIN ARGUMENTS.. runs MAIN, mpi4py's test/main.py.

A line is written as a test begins and as it ends, so that a process which dies or hangs tells in which test. LOG gets the rank as its end.
"""

import os
import runpy
import sys
from unittest import TestResult

path, main = sys.argv[1:3]
rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or "0"
log = open(f"{path}.{rank}", "w", buffering=1)


def told(name, verdict):
    before = getattr(TestResult, name)

    def method(self, test, *rest):
        # A part of a test that did well is no news.
        if name != "addSubTest" or rest[1] is not None:
            case = getattr(test, "id", lambda: str(test))()
            print(verdict, case, file=log)
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

sys.path.insert(0, os.path.dirname(os.path.abspath(main)))
sys.argv[:] = [main, *sys.argv[3:]]
runpy.run_path(main, run_name="__main__")
