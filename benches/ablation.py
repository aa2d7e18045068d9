#!/usr/bin/env python3
"""Compares several builds of the preload library in turn, to see what a heuristic gains.

    git apply without-it.patch
    cargo build --release -p ddtc-preload
    cp target/release/libddtc_preload.so /elsewhere/without-it.so
    benches/ablation.py all=target/release/libddtc_preload.so without-it=/elsewhere/without-it.so

The first build is the reference. One list of jobs is run in rounds. In each round every build runs
every job once, in an order that changes from round to round. The jobs run under each MPI library,
on two pinned ranks. One of them is DDTBench (preload/tests/c/ddtbench.c), which makes each type ten
times. The other one uses types that are made for one step each (preload/benches/steps.c). Both have
an empty profile cache, or with --filled one that an earlier run of the same build has filled.

The script prints how long a row takes for each build, as a multiple of packing by hand in the same
job: the median over the rounds. For each build and job it also prints the geometric mean of the
ratios to the reference, with the rows that have the highest and the lowest ratios. It ends with an
error if a run fails.
"""

import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from applications import MpiLibrary, geometric_mean, in_rounds, machine, mpi_names, present
from builds import DdtBench, Job

# Each row describes the types of one measurement: their kind, the number of their blocks of 4
# bytes, and the number of messages in each direction before a type is freed.
STEPS = (
    *(("list", 5000, uses) for uses in (1, 3, 20)),
    *(("list", 250, uses) for uses in (1, 20)),
    *(("vector", 5000, uses) for uses in (1, 20)),
    ("vector", 250, 20),
    ("subarray", 5000, 3),
)


class Steps(Job):
    """A job that makes and commits a type in each step, sends messages of it, and frees it."""

    def __init__(self, mpi, folder, is_filled):
        super().__init__(mpi, "types of one step", folder)
        self.is_filled = is_filled
        self.program = mpi.compiled(folder, "preload/benches/steps.c")

    def prepare(self, builds):
        for build in builds if self.is_filled else ():
            self.run(build)

    def run(self, build):
        found = {}
        for kind, blocks, uses in STEPS:
            row = f"{kind} of {blocks}, {uses} uses"
            if self.is_filled:
                cache = self.folder / f"{self.mpi.name}-{row.replace(' ', '-')}-{'-'.join(Path(build).parts[1:])}"
                cache.mkdir(exist_ok=True)
            else:
                cache = tempfile.mkdtemp(dir=self.folder)
            steps = 300 if uses < 20 else 100
            out = self.mpi.run(self.program, [kind, str(blocks), str(uses), str(steps)], self.preload(build, cache), self.folder)
            derived, hand = map(float, out.split())
            found[row] = (derived, hand)
        return found


def main():
    parser = in_rounds(__doc__, 3, "ablation")
    parser.add_argument("builds", nargs="+", metavar="NAME=FILE", help="a name and a libddtc_preload.so; the first one is the reference")
    parser.add_argument("--filled", action="store_true", help="use a profile cache that an earlier run of the same build has filled")
    o = parser.parse_args()
    # The class DdtBench takes these two numbers from the options of builds.py. This script has no
    # such options, so it sets the numbers.
    o.outer, o.inner = 10, 20
    builds = {}
    for word in o.builds:
        name, equals, file = word.partition("=")
        if not equals or not Path(file).is_file() or name in builds:
            sys.exit(f"error: {word}: must be NAME=FILE, where FILE exists and no other build has the name NAME")
        builds[name] = str(Path(file).resolve())
    libraries = mpi_names(o)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit(f"error: this process may use {len(cores)} core, and each of the two ranks needs one: allow more cores, for example with taskset")
    slug, line = machine()
    names, reference = list(builds), next(iter(builds))
    rows, summary = [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder, jobs = Path(temporary), []
        for name in libraries:
            mpi = MpiLibrary(o.wheels.resolve(), name, cores)
            jobs += [DdtBench(mpi, folder, o.filled, o), Steps(mpi, folder, o.filled)]
        for job in jobs:
            job.prepare(builds.values())
        found = {id(job): {name: [] for name in names} for job in jobs}
        for k in range(o.rounds):
            for job in jobs:
                first = k % len(names)
                for name in names[first:] + names[:first]:
                    found[id(job)][name].append(job.run(builds[name]))
    for job in jobs:
        runs = found[id(job)]
        of_hand = {name: {row: median(run[row][0] / run[row][1] for run in runs[name]) for row in runs[name][0]} for name in names}
        for name in names[1:]:
            over = {row: of_hand[name][row] / of_hand[reference][row] for row in of_hand[reference]}
            order = sorted(over, key=over.get)
            said = [", ".join(f"{row} {over[row]:.2f}" for row in some) for some in (order[:-6:-1], order[:3])]
            summary.append(f"{job.mpi.name}, {job.name}, {name}: geometric mean {geometric_mean(over.values()):.3f}; highest {said[0]}; lowest {said[1]}")
        for row in of_hand[reference]:
            rows.append({"host": job.mpi.name, "job": job.name, "row": row, **{name: f"{of_hand[name][row]:.3f}" for name in names}})
    cache = "a filled" if o.filled else "an empty"
    head = [
        f"benches/ablation.py, {o.rounds} rounds, {cache} profile cache; multiples of packing by hand; reference: {reference}",
        f"{line}, {os.getloadavg()[0]:.2f} after; ranks pinned",
        *summary,
    ]
    present(head, rows, ("host", "job", "row"), "ablation" if o.record else None, slug)


if __name__ == "__main__":
    main()
