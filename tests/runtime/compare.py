#!/usr/bin/env python3
"""Compares the results of the same cases under two labels, such as "stock" and "ours".

A case whose first runs differ, since it passes under one label only, is run five more times under
both. These further runs then count in place of the first. With --differing, the script only writes
the names of such cases to a file. Otherwise it prints a table with a row for each folder of the test
suites, and lists the cases that did not always pass. If a case fails more often under the second
label, or no case passes, the exit status is 1.

Lines of results have the form that run.py writes. A row of the table also has the numbers of cases
that called functions of the second library to pack or unpack, to list pieces, or to flatten. For
each label, only those lines count that have the same digest as its last line.
"""

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

from machine import machine


class Outcome:
    """The results of all runs of a case under one library."""

    def __init__(self):
        self.verdicts, self.calls, self.note, self.seconds = [], Counter(), "", 0.0

    def add(self, verdict, seconds, calls, note):
        self.verdicts.append(verdict)
        self.seconds = float(seconds)
        self.note = note or self.note
        # A case that ran several times has several counts of its calls. Take the maximum of each
        # count and not the sum.
        for word in calls.split(" "):
            name, number = word.split("=")
            self.calls[name] = max(self.calls[name], int(number))

    @property
    def counting(self):
        """The verdicts of the runs that count: the runs after the first, or the only run."""
        return self.verdicts[1:] or self.verdicts

    @property
    def fails(self):
        return sum(verdict != "pass" for verdict in self.counting)

    @property
    def passes_at_first(self):
        return self.verdicts[0] == "pass"


def read(path):
    """Returns the outcomes of the file `path` and the digests of the libraries.

    Both results are dictionaries by the label of the library. The outcomes of a label are a
    dictionary by the name of the case, and have only the runs with the last digest of the library.
    """
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    digests = {row[0]: row[1] for row in rows}
    found = {label: defaultdict(Outcome) for label in digests}
    for label, digest, verdict, seconds, calls, name, note in rows:
        if digest == digests[label]:
            found[label][name].add(verdict, seconds, calls, note)
    return found, digests


def part(name):
    """Returns the name of the table row that counts a case, such as `yaksa pack` or `nolocal coll`.
    """
    suite, line = name.split(" ", 1)
    folders = line.split(" ")[0].split("/")
    return f"{suite} {folders[1] if suite == 'yaksa' else folders[0]}"


def words(verdicts):
    return ", ".join(f"{n} x {v}" if n > 1 else v for v, n in Counter(verdicts).items())


def listing(title, cases):
    out = [f"\n{title}: {len(cases) or 'none'}\n"]
    out += [f"* `{name}`: {text}" for name, text in cases]
    return out


def kind(first, second):
    """Returns the column of the table in which a case with these two outcomes is counted."""
    if first.fails != second.fails:
        return "worse" if second.fails > first.fails else "better"
    return "both" if first.fails < len(first.counting) else "neither"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="file with the results")
    parser.add_argument("labels", nargs=2, help="the two labels; the second must not be worse")
    parser.add_argument("--differing", type=Path, help="write the names of the cases whose first runs differ to this file, and end")
    parser.add_argument("--title", default="", help="text for the heading of the table")
    o = parser.parse_args()
    found, digests = read(o.results)
    for label in o.labels:
        if label not in found:
            sys.exit(f"error: {o.results} has no runs with the label {label}: run the cases with --label {label} first")
    first, second = (found[label] for label in o.labels)
    names = [name for name in first if name in second]
    if o.differing:
        o.differing.write_text("".join(f"{n}\n" for n in names if first[n].passes_at_first != second[n].passes_at_first))
        sys.exit(0)
    alone = len(first) + len(second) - 2 * len(names)

    one, other = o.labels
    print(f"{o.title}; {machine()}; {', '.join(f'{label} {digests[label]}' for label in o.labels)}\n")
    keys = ("cases", "both", "worse", "better", "neither", "packs", "iovs", "flat")
    heads = ["Suite", "cases", "pass on both", f"fail more often with {other}", f"fail more often with {one}", "fail on both",
             "reach pack or unpack", "iov", "flatten"]
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    groups = defaultdict(list)
    for name in names:
        groups[part(name)].append(name)
    total = Counter()
    for group, members in groups.items():
        row = Counter(cases=len(members))
        for name in members:
            calls = second[name].calls
            row[kind(first[name], second[name])] += 1
            row["packs"] += calls["pack"] + calls["unpack"] > 0
            row["iovs"] += calls["iov"] > 0
            row["flat"] += calls["flatten"] + calls["unflatten"] > 0
        total += row
        print(line(group, [row[key] for key in keys]))
    print(line("**all**", [total[key] for key in keys]))

    def told(wanted):
        """Returns the cases for which `wanted` is true, each with its verdicts."""
        cases = [name for name in names if wanted(name)]
        return [(name, f"{one}: {words(first[name].verdicts)}; {other}: {words(second[name].verdicts)}; {second[name].note or first[name].note}")
                for name in cases]

    for title, key in ((f"Fail more often with {other}", "worse"), (f"Fail more often with {one}", "better"), ("Fail on both", "neither")):
        print("\n".join(listing(title, told(lambda name: kind(first[name], second[name]) == key))))
    print("\n".join(listing("Pass on both, but not in every run",
                            told(lambda name: kind(first[name], second[name]) == "both"
                                 and {"pass"} != set(first[name].verdicts + second[name].verdicts)))))
    if alone:
        print(f"\nRun on one of the two only, and not compared: {alone}")
    if not total["both"]:
        print("error: no case passes on both, so nothing was compared", file=sys.stderr)
    sys.exit(1 if total["worse"] or not total["both"] else 0)


def line(name, cells):
    return f"| {name} | " + " | ".join(map(str, cells)) + " |"


if __name__ == "__main__":
    main()
