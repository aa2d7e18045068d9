#!/usr/bin/env python3
"""Runs the parts of the bench in processes on stock and on ours in turn, and takes medians over the processes.

CSV: row; nanoseconds on stock, on ours, and packed by hand (of both libraries' processes: messages of bytes pass neither); ours over stock, ours
over hand; median absolute deviation of ours in percent. Memory rows have bytes in place of nanoseconds.
"""

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

from machine import machine

PARTS = {"pack": 1, "messages": 2, "collectives": 2, "rma": 2, "create": 1,
         "memory-vector": 1, "memory-struct": 1, "memory-indexed": 1, "memory-used": 1}


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True)
    parser.add_argument("--mpiexec", type=Path, required=True)
    parser.add_argument("--stock", type=Path, required=True, help="folder of a libyaksa.so.0")
    parser.add_argument("--ours", type=Path, required=True, help="folder of the other")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--part", action="append", choices=PARTS, help="only these parts")
    parser.add_argument("--milliseconds", default="1", help="of one batch")
    parser.add_argument("--csv", type=Path, required=True)
    return parser.parse_args()


def run(o, part, library):
    """Values by row and variant of one process, or of the first of two."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "DDTC_", "MPIR_CVAR_"))}
    env["LD_LIBRARY_PATH"] = str(library.resolve())
    command = [str(o.mpiexec), "-bind-to", "core", "-n", str(PARTS[part]), str(o.program), part, o.milliseconds]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} on {library}: exit {done.returncode}")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {(row, variant): float(value) for row, variant, value in rows}


def deviation(values):
    middle = median(values)
    return 100 * median(abs(v - middle) for v in values) / middle if middle else 0.0


def main():
    o = options()
    libraries = {"stock": o.stock, "ours": o.ours}
    found = defaultdict(list)
    for part in o.part or PARTS:
        # Amounts of memory do not vary.
        rounds = 1 if part.startswith("memory") else o.rounds
        for turn in range(rounds):
            # The order changes, so that neither library always runs after the other one.
            for label in ("stock", "ours") if turn % 2 == 0 else ("ours", "stock"):
                for (row, variant), value in run(o, part, libraries[label]).items():
                    found[row, "hand" if variant == "hand" else label].append(value)
        print(f"{part}: {rounds} processes each", file=sys.stderr)
    lines = [f"# {machine()}", f"# {o.rounds} processes of each library, in turn; batches of {o.milliseconds} ms",
             "row,stock_ns,ours_ns,hand_ns,ours_over_stock,ours_over_hand,noise_percent"]
    rows = list(dict.fromkeys(row for row, _ in found))
    for row in rows:
        stock, ours, hand = (found.get((row, label)) for label in ("stock", "ours", "hand"))
        s, m, h = median(stock), median(ours), median(hand) if hand else None
        lines.append(",".join([row.replace(",", ";"), f"{s:.1f}", f"{m:.1f}", f"{h:.1f}" if h else "", f"{m / s:.3f}" if s else "",
                               f"{m / h:.3f}" if h else "", f"{deviation(ours):.1f}"]))
    o.csv.write_text("\n".join(lines) + "\n")
    slower = [line for line in lines[3:] if line.split(",")[4] and float(line.split(",")[4]) > 1.05]
    print(f"{len(rows)} rows, {len(slower)} slower than stock by more than 5 %: {o.csv}")
    print("\n".join(slower))


if __name__ == "__main__":
    main()
