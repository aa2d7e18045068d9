#!/usr/bin/env python3
"""Measures shallow.c without and with ddtc's preload library, and prints median times.

    docs/examples/shallow/compare.py --mpicc mpicc \\
        --library target/release/libddtc_preload.so -- mpiexec -n 2

The script compiles shallow.c and runs the program without and with the library in turn. A run with
the library directly follows each run without it. The printed ratio is the median over these pairs
of the time with the library divided by the time without it. The script ends with an error if a run
fails, or if a run computes a different result than the first one.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

LINE = re.compile(r"^ranks (\d+) cells (\d+) steps (\d+) step ([\d.]+) us exchange ([\d.]+) us gather ([\d.]+) us sum ([0-9a-f]+)$")
PARTS = ("step", "exchange", "gather")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [m for line in done.stdout.splitlines() if (m := LINE.match(line.strip()))]
    if done.returncode != 0 or len(found) != 1:
        sys.exit(f"error: {' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    ranks, cells, steps, *times, result = found[0].groups()
    return (ranks, cells, steps, result), [float(t) for t in times]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpicc", default="mpicc", help="compiler of the MPI library [%(default)s]")
    parser.add_argument("--library", type=Path, required=True, help="path of libddtc_preload.so")
    parser.add_argument("--policy", choices=["table", "all", "none"], default="table", help="value of DDTC_POLICY in the runs with the library [%(default)s]")
    parser.add_argument("--rounds", type=int, default=11, help="runs without and runs with the library [%(default)s]")
    parser.add_argument("--cells", default="32,128", help="cells along one side of a rank's grid; separate several sizes by commas [%(default)s]")
    parser.add_argument("--steps", type=int, default=2000, help="time steps of a run [%(default)s]")
    parser.add_argument("--record", type=Path, help="file to which lines are added: host,ranks,cells,part,bare,with,ratio")
    parser.add_argument("--host", default="mpi", help="first field of these lines [%(default)s]")
    parser.add_argument("launch", nargs="+", help="command that launches the ranks, after --")
    o = parser.parse_args()
    if not o.library.is_file():
        sys.exit(f"error: --library {o.library}: no such file: build it with cargo build --release -p ddtc-preload")
    if o.rounds < 1:
        sys.exit(f"error: --rounds {o.rounds}: must be 1 or more")
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/shallow"
        source = Path(__file__).with_name("shallow.c")
        try:
            built = subprocess.run([o.mpicc, "-O2", "-o", program, str(source), "-lm"], capture_output=True, text=True, check=False)
        except OSError as error:
            sys.exit(f"error: --mpicc {o.mpicc}: {error.strerror}: name the compiler wrapper of the MPI library")
        if built.returncode != 0:
            sys.exit(f"error: {o.mpicc} does not compile {source}\n{built.stderr}")
        preload = ["env", f"LD_PRELOAD={o.library.resolve()}", f"DDTC_POLICY={o.policy}"]
        for cells in o.cells.split(","):
            arguments = [program, "--cells", cells, "--steps", str(o.steps)]
            bare, converted, first = [], [], None
            for _ in range(o.rounds):
                for into, before in ((bare, []), (converted, preload)):
                    result, times = run([*o.launch, *before, *arguments])
                    first = first or result
                    if result != first:
                        sys.exit(f"error: two runs of the same program computed different results: {first} and {result}")
                    into.append(times)
            for i, part in enumerate(PARTS):
                b, c = (median(times[i] for times in runs) for runs in (bare, converted))
                ratio = median(y[i] / x[i] for x, y in zip(bare, converted, strict=True))
                print(f"{first[0]} ranks, {cells:>4} cells a side: {part:8} {b:9.2f} us, with ddtc {c:9.2f} us, {ratio:.2f}")
                if o.record:
                    with o.record.open("a") as out:
                        out.write(f"{o.host},{first[0]},{cells},{part},{b:.2f},{c:.2f},{ratio:.3f}\n")


if __name__ == "__main__":
    main()
