#!/usr/bin/env python3
"""Measures messages of many pieces in an MPICH with cma.patch, for tests/mpich-cma.sh --bench.

The variants are the patch switched off, the patch with its default, every non-contiguous buffer
packed, and CMA switched off. They run in turn, in a new job of two ranks for each round. With
--ours, all of that is also done with another libyaksa.so.0. The script writes a CSV file with a
line for each message: which side has pieces, their length in bytes (0: both sides are contiguous),
the bytes of the message, and the microseconds of half a round trip for each variant, which are
medians over the rounds.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/runtime"))
from machine import machine


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=Path, required=True, help="folder in which tests/mpich-cma.sh builds")
    parser.add_argument("--variable", required=True, help="name of the variable that the patch adds")
    parser.add_argument("--default", required=True, help="its default value")
    parser.add_argument("--rounds", type=int, default=5, help="jobs of each variant [%(default)s]")
    parser.add_argument("--ours", type=Path, help="folder of the other libyaksa.so.0")
    return parser.parse_args()


def digest(folder):
    return hashlib.sha256((folder / "libyaksa.so.0").read_bytes()).hexdigest()[:12]


def run(o, library, settings):
    """Runs one job, and returns its microseconds by side, length of pieces, and bytes."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LD_", "DDTC_", "MPIR_CVAR_"))}
    env |= {"LD_LIBRARY_PATH": str(library.resolve())} | settings
    command = [str(o.cache / "mpich/bin/mpiexec"), "-bind-to", "core", "-n", "2", str(o.cache / "pieces"), "time"]
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} with {settings} on {library}: exit {done.returncode}")
    rows = [line.split(",") for line in done.stdout.splitlines()]
    return {(side, int(piece), int(size)): float(us) for side, piece, size, us in rows}


def main():
    o = options()
    before = machine()
    settings = {"off": {o.variable: "0"}, "on": {o.variable: o.default}, "packed": {o.variable: "1000000000"},
                "no_cma": {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}}
    libraries = {"yaksa": o.cache / "stock/lib"} | ({"ddtc": o.ours} if o.ours else {})
    times = defaultdict(list)
    for _ in range(o.rounds):
        for library, folder in libraries.items():
            for variant, values in settings.items():
                for row, us in run(o, folder, values).items():
                    times[row, library, variant].append(us)
    columns = [(library, variant) for library in libraries for variant in settings]
    out = o.cache / "bench.csv"
    with out.open("w") as sink:
        print(f"# {before}", file=sink)
        print(f"# packaging/mpich/bench.py: half round trips, medians of {o.rounds} jobs of each variant, in turn; two ranks, "
              "each bound to a core", file=sink)
        print(f"# off: {o.variable}=0, on: ={o.default} (default), packed: =1000000000, no_cma: MPIR_CVAR_CH4_CMA_ENABLE=0", file=sink)
        digests = ", ".join(f"{library} {digest(folder)}.." for library, folder in libraries.items())
        print(f"# sha256 of each libyaksa.so.0: {digests}", file=sink)
        print("side,piece,bytes," + ",".join(f"{library}_{variant}_us" for library, variant in columns), file=sink)
        for row in dict.fromkeys(row for row, _, _ in times):
            figures = (f"{median(times[row, *column]):.2f}" for column in columns)
            print(",".join([*map(str, row), *figures]), file=sink)
    print(f"the figures are in {out}")


if __name__ == "__main__":
    main()
