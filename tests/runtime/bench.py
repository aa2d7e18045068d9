#!/usr/bin/env python3
"""Runs the benchmark of MPICH under yaksa's library ("stock") and under ddtc's ("ours") in turn.

The benchmark has parts, and each run of a part is a process of its own, or two processes. A value
is the median over the runs. The script writes a CSV file with these columns: the name of the row;
nanoseconds on stock, on ours, and with packing by hand, that is by a loop in C; the ratio of ours
to stock, and of ours to packing by hand; and the median absolute deviation of ours in percent. The
time with packing by hand is taken from the runs under both libraries, because it sends messages of
bytes, for which MPICH uses neither library. The rows about memory have bytes in place of
nanoseconds.

The name of the row of a message says how MPICH moved it: it is short (less than 8 KiB), or it is
moved by CMA (the receiver copies the pieces out of the sender's memory), or in cells (the sender
packs it, part by part). If the two libraries lead to different protocols, the name says so. All
messages of 8 KiB and more are measured once more without CMA.
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from machine import machine

PARTS = {"pack": 1, "first": 1, "messages": 2, "messages-without-cma": 2, "collectives": 2, "rma": 2, "create": 1,
         "memory-vector": 1, "memory-struct": 1, "memory-indexed": 1, "memory-used": 1}
WITHOUT_CMA = "-without-cma"
# MPICH moves no message by CMA that is shorter than this number of bytes, unless a variable asks it to.
SHORT = 8192


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="the compiled bench")
    parser.add_argument("--mpiexec", type=Path, required=True, help="mpiexec of the MPICH under test")
    parser.add_argument("--stock", type=Path, required=True, help="folder of yaksa's libyaksa.so.0")
    parser.add_argument("--ours", type=Path, required=True, help="folder of ddtc's libyaksa.so.0")
    parser.add_argument("--rounds", type=int, default=10, help="processes of each library per part [%(default)s]")
    parser.add_argument("--part", action="append", choices=PARTS, help="run only this part; may be repeated")
    parser.add_argument("--milliseconds", default="1", help="milliseconds of one batch [%(default)s]")
    parser.add_argument("--csv", type=Path, required=True, help="file for the table")
    return parser.parse_args()


def run(o, part, library):
    """Runs a part of the benchmark under one library, and returns the values that it prints.

    The part runs in one process or in two, as PARTS says. The result is a dictionary whose keys are
    pairs of row and variant.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "DDTC_", "MPIR_CVAR_"))}
    env["LD_LIBRARY_PATH"] = str(library.resolve())
    program = part.removesuffix(WITHOUT_CMA)
    if program != part:
        env["MPIR_CVAR_CH4_CMA_ENABLE"] = "0"
    command = [str(o.mpiexec), "-bind-to", "core", "-n", str(PARTS[part]), str(o.program), program, o.milliseconds]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} on {library}: exit {done.returncode}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    if program != part:
        rows = [[row.replace("message", "message without CMA"), variant, value] for row, variant, value in rows]
    return {(row, variant): float(value) for row, variant, value in rows}


def renamed(row, bytes_of, lists):
    """Returns the name of a row in the table: that of a message says how MPICH moved it.

    `bytes_of` has the bytes of each message. `lists` is a dictionary whose keys are pairs of row and
    library, and whose values say how often a receiver has listed pieces, or -1 for contiguous data.
    """
    if not row.startswith("message "):
        return row
    layout = row.removeprefix("message ").removeprefix("without CMA ")
    if bytes_of[row] < SHORT:
        return None if "without CMA" in row else f"short message {layout}"
    if "without CMA" in row:
        return row
    if lists[row, "ours"] < 0:
        return f"contiguous message {layout}"
    by_cma = [lists[row, label] > 0 for label in ("stock", "ours")]
    if by_cma[0] != by_cma[1]:
        return f"message by different protocols {layout}"
    return f"message {'by CMA' if by_cma[0] else 'in cells'} {layout}"


def deviation(values):
    middle = median(values)
    return 100 * median(abs(v - middle) for v in values) / middle if middle else 0.0


def main():
    o = options()
    libraries = {"stock": o.stock, "ours": o.ours}
    found, bytes_of, lists = defaultdict(list), {}, {}
    for part in o.part or PARTS:
        # The parts that measure memory give the same values in each run, so one run suffices.
        rounds = 1 if part.startswith("memory") else o.rounds
        for turn in range(rounds):
            # Change the order of the libraries from round to round, so that neither always runs
            # after the other.
            for label in ("stock", "ours") if turn % 2 == 0 else ("ours", "stock"):
                for (row, variant), value in run(o, part, libraries[label]).items():
                    if variant == "length":
                        bytes_of[row] = value
                    elif variant == "lists":
                        lists[row, label] = value
                    else:
                        found[row, "hand" if variant == "hand" else label].append(value)
        print(f"{part}: {rounds} processes each", file=sys.stderr)
    lines = [f"# {machine()}", f"# {o.rounds} processes of each library, in turn; batches of {o.milliseconds} ms",
             "row,stock_ns,ours_ns,hand_ns,ours_over_stock,ours_over_hand,noise_percent"]
    rows = list(dict.fromkeys(row for row, _ in found))
    for row in rows:
        stock, ours, hand = (found.get((row, label)) for label in ("stock", "ours", "hand"))
        row = renamed(row, bytes_of, lists)
        if row is None:
            continue
        s, m, h = median(stock), median(ours), median(hand) if hand else None
        lines.append(",".join([row.replace(",", ";"), f"{s:.1f}", f"{m:.1f}", f"{h:.1f}" if h else "", f"{m / s:.3f}" if s else "",
                               f"{m / h:.3f}" if h else "", f"{deviation(ours):.1f}"]))
    o.csv.write_text("\n".join(lines) + "\n")
    slower = [line for line in lines[3:] if line.split(",")[4] and float(line.split(",")[4]) > 1.05]
    print(f"{len(lines) - 3} rows, {len(slower)} slower than stock by more than 5 %: {o.csv}")
    print("\n".join(slower))


if __name__ == "__main__":
    main()
