#!/usr/bin/env python3
"""Compares the results of tests/runtime.sh under yaksa's library ("stock") and ddtc's ("ours").

A case that passes on stock must pass on ours. If a case does not, the exit status is 1. The script
prints a table with a row for each folder of the test suites. A row also has the numbers of cases
that called functions of ours to pack or unpack, to list pieces, or to flatten. After the table, the
script lists the cases that did not pass on both libraries. A line of the results has the digest of
its library. For each library, only those lines count that have the same digest as its last line. A
case that ran more than once passes if one of the runs passed. If another of its runs did not pass,
the script lists the case.
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
    def passed(self):
        return "pass" in self.verdicts

    @property
    def steady(self):
        return len(set(self.verdicts)) == 1


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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="file that run.py has written")
    parser.add_argument("--mpich", required=True, help="version of MPICH, for the heading of the table")
    o = parser.parse_args()
    found, digests = read(o.results)
    for label in ("stock", "ours"):
        if label not in found:
            sys.exit(f"error: {o.results} has no runs with the label {label}: run run.py with --label {label} first")
    stock, ours = found["stock"], found["ours"]
    names = [name for name in stock if name in ours]
    alone = [name for name in list(stock) + list(ours) if name not in stock or name not in ours]

    print(f"mpich {o.mpich}; {machine()}; libyaksa.so.0 stock {digests['stock']}, ours {digests['ours']}\n")
    print("| Suite | cases | pass on both | only on stock | only on ours | on neither | reach pack or unpack | iov | flatten |")
    print("|---|---|---|---|---|---|---|---|---|")
    groups = defaultdict(list)
    for name in names:
        groups[part(name)].append(name)
    total = Counter()
    for group, members in groups.items():
        row = Counter(cases=len(members))
        for name in members:
            s, m = stock[name].passed, ours[name].passed
            row["both" if s and m else "stock" if s else "ours" if m else "neither"] += 1
            calls = ours[name].calls
            row["packs"] += calls["pack"] + calls["unpack"] > 0
            row["iovs"] += calls["iov"] > 0
            row["flat"] += calls["flatten"] + calls["unflatten"] > 0
        total += row
        print(line(group, row))
    print(line("**all**", total))

    only_stock = [(n, f"{words(ours[n].verdicts)}; {ours[n].note}") for n in names if stock[n].passed and not ours[n].passed]
    only_ours = [(n, f"stock: {words(stock[n].verdicts)}; {stock[n].note}") for n in names if ours[n].passed and not stock[n].passed]
    neither = [(n, f"stock: {words(stock[n].verdicts)}; ours: {words(ours[n].verdicts)}; {stock[n].note}")
               for n in names if not ours[n].passed and not stock[n].passed]
    unsteady = [(n, f"stock: {words(stock[n].verdicts)}; ours: {words(ours[n].verdicts)}") for n in names
                if (stock[n].passed and not stock[n].steady) or (ours[n].passed and not ours[n].steady)]
    for title, cases in (("Pass on stock, fail on ours", only_stock), ("Fail on stock, pass on ours", only_ours),
                         ("Fail on both", neither), ("Passed at a second run only", unsteady)):
        print("\n".join(listing(title, cases)))
    if alone:
        print(f"\nRun on one of the two only, and not compared: {len(alone)}")
    sys.exit(1 if only_stock else 0)


def line(name, row):
    keys = ("cases", "both", "stock", "ours", "neither", "packs", "iovs", "flat")
    return f"| {name} | " + " | ".join(str(row[key]) for key in keys) + " |"


if __name__ == "__main__":
    main()
