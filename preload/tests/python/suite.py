"""mpi4py's own tests, with the outcome of each in a file: suite.py LOG MAIN ARGUMENTS.. runs MAIN, mpi4py's test/main.py.

A line is written as a test begins and as it ends, so that a process which dies or hangs tells in which test. LOG gets the rank as its end.
The first line names the preload library if it is in the process, the last one, `end` with a number of tests, says that all came to their end;
then the process ends with success, whatever tests say, so that its exit status tells whether finalization went well.
"""

import os
import runpy
import sys
from unittest import TestResult

path, main = sys.argv[1:3]
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

sys.path.insert(0, os.path.dirname(os.path.abspath(main)))
sys.argv[:] = [main, *sys.argv[3:]]
try:
    runpy.run_path(main, run_name="__main__")
except SystemExit as end:
    # 0 and 1 are what main.py says of tests; anything else is no end of theirs.
    if end.code not in (None, 0, 1):
        raise
    print("end", ran, file=log)
