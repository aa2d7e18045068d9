"""Tests the rules by which run.py, cases.py and compare.py judge.

Each test has an example that breaks a rule. tests/runtime.sh runs these tests before it runs any
test of yaksa or MPICH.
"""

import io
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from types import SimpleNamespace

# The examples below state the ranks that a case has by default, whatever the user of the script has
# asked for.
os.environ.pop("DDTC_RUNTIME_RANKS", None)

import bench
import cases
import compare
import mixed
import run


class Rows(unittest.TestCase):
    def test_a_message_is_named_by_its_protocol(self):
        rows = {"message short": (8191, 0, 0), "message without CMA short": (8191, 0, 0), "message listed": (8192, 2, 1),
                "message cells": (8192, 0, 0), "message either": (8192, 0, 2), "message dense": (8192, -1, -1),
                "message without CMA cells": (8192, 0, 0)}
        bytes_of = {row: of for row, (of, _, _) in rows.items()}
        lists = {(row, label): counts[i] for row, counts in rows.items() for i, label in ((1, "stock"), (2, "ours"))}
        names = [bench.renamed(row, bytes_of, lists) for row in rows]
        self.assertEqual(names, ["short message short", None, "message by CMA listed", "message in cells cells",
                                 "message by different protocols either", "contiguous message dense", "message without CMA cells"])
        self.assertEqual(bench.renamed("pack short", {}, {}), "pack short")


class Lists(unittest.TestCase):
    def test_a_line_becomes_a_case(self):
        case = cases.mpi_case("nolocal", "rma", Path("/mpi"), "put 7 arg=-n arg=3 env=A=b=c mem=1.5 timeLimit=60 xfail=ticket1")
        self.assertEqual(case.name, "nolocal rma/put 4 arg=-n arg=3 env=A=b=c mem=1.5 timeLimit=60 xfail=ticket1")
        self.assertEqual((case.program, case.arguments, case.ranks), ("./put", ["-n", "3"], 4))
        self.assertEqual(case.environment, {"A": "b=c", "MPIR_CVAR_NOLOCAL": "1"})
        self.assertEqual((case.memory, case.expected_failure), (1.5, "ticket1"))

    def test_a_key_without_a_rule_is_refused(self):
        with self.assertRaises(ValueError):
            cases.mpi_case("mpi", "rma", Path("/mpi"), "put 2 resultTest=TestStatus")


class Verdicts(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.o = SimpleNamespace(library=Path(self.folder.name))
        (self.o.library / "libyaksa.so.0").write_text("")
        self.here = f"begin {self.o.library.resolve()}/libyaksa.so.0"
        self.mpi = cases.Case("mpi pt2pt/x 2", "mpi", Path("/"), "./x", [], 2)

    def tearDown(self):
        self.folder.cleanup()

    def says(self, code, text, seen, case=None):
        return run.verdict(self.o, case or self.mpi, code, text, seen)

    def test_what_passes(self):
        self.assertEqual(self.says(0, " No Errors\n", [self.here] * 2), "pass")
        yaksa = cases.Case("yaksa x", "yaksa", Path("/"), "./x", [])
        self.assertEqual(self.says(0, "anything", [self.here], yaksa), "pass")

    def test_what_does_not(self):
        for expected, code, text, seen in [
            ("other library /usr/lib/libyaksa.so.0", 0, "No Errors", [self.here, "begin /usr/lib/libyaksa.so.0"]),
            ("hangs", None, "No Errors", [self.here] * 2),
            ("not seen", 0, "No Errors", [self.here]),
            ("not seen", 0, "No Errors", []),
            ("exit 3", 3, "No Errors", [self.here] * 2),
            ("signal 11", -11, "No Errors", [self.here] * 2),
            ("no verdict", 0, "", [self.here] * 2),
            ("output", 0, "error: 4 is not 5\nNo Errors", [self.here] * 2),
        ]:
            self.assertEqual(self.says(code, text, seen), expected)

    def test_calls_add_up_over_processes(self):
        seen = [self.here, "end /x pack=1 ipack=2 iov=3", "end /x ipack=4 iunpack=5 flatten=6"]
        self.assertEqual(run.calls(seen), "pack=7 unpack=5 iov=3 iov_len=0 flatten=6 unflatten=0")


class Mixed(unittest.TestCase):
    def test_a_job_that_succeeds_in_silence_has_not_ended_with_an_error(self):
        for launcher, expected in [("false", "ends with status 1"), ("true", "succeeds without a word")]:
            self.assertEqual(mixed.outcome(launcher, "program", "send", ["a", "b"], 60)[0], expected)


class Comparison(unittest.TestCase):
    def compare(self, *rows, options=()):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.tsv"
            path.write_text("".join("\t".join([*row[:3], "1.0", "pack=1 unpack=0 iov=0 flatten=0 unflatten=0", row[3], ""]) + "\n" for row in rows))
            out, sys.argv = io.StringIO(), ["compare.py", str(path), "stock", "ours", *options]
            with redirect_stdout(out), self.assertRaises(SystemExit) as end:
                compare.main()
            return end.exception.code, out.getvalue()

    def test_what_stock_passes_and_ours_does_not_fails(self):
        code, text = self.compare(("stock", "s", "pass", "mpi coll/a 2"), ("ours", "m", "exit 1", "mpi coll/a 2"),
                                  ("stock", "s", "pass", "mpi coll/b 2"), ("ours", "m", "pass", "mpi coll/b 2"))
        self.assertEqual(code, 1)
        self.assertIn("Fail more often with ours: 1", text)

    def test_another_build_of_ours_does_not_count(self):
        code, _ = self.compare(("stock", "s", "pass", "mpi coll/a 2"), ("ours", "old", "exit 1", "mpi coll/a 2"),
                               ("ours", "new", "pass", "mpi coll/a 2"))
        self.assertEqual(code, 0)

    def test_five_more_runs_count_in_place_of_the_first(self):
        def runs(label, verdicts):
            return [(label, label, verdict, "mpi coll/a 2") for verdict in verdicts]

        fails, passes = ["exit 1"], ["pass"]
        for stock, ours, expected in [
            (passes + passes * 4 + fails, fails + passes * 4 + fails, 0),
            (passes + passes * 4 + fails, fails + passes * 3 + fails * 2, 1),
            (passes + fails * 2 + passes * 3, fails + passes * 5, 0),
        ]:
            code, text = self.compare(*runs("stock", stock), *runs("ours", ours), ("stock", "stock", "pass", "mpi coll/b 2"),
                                      ("ours", "ours", "pass", "mpi coll/b 2"))
            self.assertEqual(code, expected, text)

    def test_cases_whose_first_runs_differ_are_named(self):
        rows = [(label, label, verdict, f"mpi coll/{name} 2") for name, label, verdict in [
            ("a", "stock", "pass"), ("a", "ours", "hangs"), ("b", "stock", "exit 1"), ("b", "ours", "hangs"),
            ("c", "stock", "hangs"), ("c", "ours", "pass"), ("d", "stock", "pass"), ("d", "ours", "pass"), ("d", "ours", "hangs")]]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "differing"
            self.compare(*rows, options=("--differing", str(file)))
            self.assertEqual(file.read_text(), "mpi coll/a 2\nmpi coll/c 2\n")

    def test_a_comparison_of_nothing_fails(self):
        code, _ = self.compare(("stock", "s", "not built", "mpi coll/a 2"), ("ours", "m", "not built", "mpi coll/a 2"))
        self.assertEqual(code, 1)


if __name__ == "__main__":
    unittest.main()
