#!/usr/bin/env python3
"""Compares two builds of the preload library in turn, to see what a change costs or gains.

    cargo build --release -p ddtc-preload
    benches/builds.py --library target/release/libddtc_preload.so --reference OLD.so

One list of jobs is run in rounds. In each round every job runs once with either build, one directly
after the other, and the build that comes first alternates. Under each MPI library, these jobs run:

  * DDTBench (preload/tests/c/ddtbench.c) on two pinned ranks, once with an empty profile cache and
    once with a profile cache that a run of the same build has filled,
  * ScaLAPACK's LU (tests/scalapack.sh) on two pinned ranks, unless --no-lu is given,
  * calls of which the library converts nothing (preload/benches/passed.c) in one process.

The ratio of a row is the median over the rounds of the time with the library under test over the
time with the reference. A row of DDTBench counts in a round only if packing by hand, which neither
build affects, took equally long in both jobs, within a sixth. If this is so in no round, all rounds
count. The script ends with an error if a run fails.
"""

import datetime
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from applications import MpiLibrary, checked, ddtbench_job, geometric_mean, get_testers, is_steady, lu_job, machine, present, two_builds

CALLS = ("send-receive-wait", "nonblocking-waitall", "sendrecv", "pack", "alltoall", "test-null", "persistent", "create-commit-free", "sendrecv-derived")
CALL_ROUNDS = 200000


class Job:
    """A job under one MPI library.

    `run` returns, by the name of each row, its time and the time of its control. The control is
    packing by hand, which the library does not affect. It is None if a row has none.
    """

    def __init__(self, mpi, name, folder):
        self.mpi, self.name, self.folder = mpi, name, folder

    def prepare(self, builds):
        """Called once before the first round."""

    def preload(self, build, cache):
        return [f"LD_PRELOAD={build}", f"XDG_CACHE_HOME={cache}"]


class DdtBench(Job):
    def __init__(self, mpi, folder, is_filled, o):
        super().__init__(mpi, f"ddtbench, {'filled' if is_filled else 'empty'} cache", folder)
        self.is_filled, self.program = is_filled, mpi.compiled(folder)
        self.arguments = ["time", str(o.outer), str(o.inner)]
        self.sample = "median" if mpi.is_openmpi else "least"

    def cache(self, build):
        if not self.is_filled:
            return tempfile.mkdtemp(dir=self.folder)
        kept = self.folder / f"cache-{self.mpi.name}-{'-'.join(Path(build).parts[1:])}"
        kept.mkdir(exist_ok=True)
        return kept

    def prepare(self, builds):
        if self.is_filled:
            for build in builds:
                self.run(build)

    def run(self, build):
        _, rows = ddtbench_job(self.mpi, self.program, self.arguments, self.preload(build, self.cache(build)), self.folder)
        return {f"{row['case']} {row['size']}": (float(row[f"derived_{self.sample}"]), float(row[f"hand_{self.sample}"])) for row in rows}


class Lu(Job):
    def __init__(self, mpi, folder):
        super().__init__(mpi, "ScaLAPACK LU", folder)

    def run(self, build):
        found = lu_job(self.mpi, self.preload(build, tempfile.mkdtemp(dir=self.folder)), self.folder)
        return {name: (time, None) for name, time in found.items()}


class Calls(Job):
    def __init__(self, mpi, folder):
        super().__init__(mpi, "calls that convert nothing", folder)
        self.program = mpi.compiled(folder, "preload/benches/passed.c")

    def run(self, build):
        found = {}
        for call in CALLS:
            cache = tempfile.mkdtemp(dir=self.folder)
            out = self.mpi.run(self.program, [call, str(CALL_ROUNDS)], self.preload(build, cache), self.folder, ranks=1)
            found[call] = (float(out.split()[0]), None)
        return found


def ratios(pairs):
    """Returns the rows of a job by name.

    A row has the ratio of the times of both builds, the median time of each, and the number of
    rounds in which the control took equally long with both.
    """
    rows = {}
    for name in pairs[0][0]:
        times = [(old[name], new[name]) for old, new in pairs if name in old and name in new]
        steady = [(old[0], new[0]) for old, new in times if old[1] is None or is_steady(old[1], new[1])]
        used = steady or [(old[0], new[0]) for old, new in times]
        rows[name] = (median(new / old for old, new in used), median(old for old, _ in used), median(new for _, new in used), len(steady))
    return rows


def main():
    parser = two_builds(__doc__, 7, "builds")
    parser.add_argument("--outer", type=int, default=10, help="datatypes made for each row of DDTBench in a job [%(default)s]")
    parser.add_argument("--inner", type=int, default=20, help="exchanges with each datatype; a quarter as many from 2 MiB up [%(default)s]")
    parser.add_argument("--no-lu", action="store_true", help="leave out ScaLAPACK's LU, whose testers are packages of Debian 12")
    o = parser.parse_args()
    names, builds = checked(o)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit(f"error: this process may use {len(cores)} core, and each of the two ranks needs one: allow more cores, for example with taskset")
    if not o.no_lu:
        get_testers(o.wheels)
    slug, line = machine()
    with tempfile.TemporaryDirectory() as temporary:
        folder, jobs = Path(temporary), []
        for name in names:
            mpi = MpiLibrary(o.wheels.resolve(), name, cores)
            jobs += [DdtBench(mpi, folder, False, o), DdtBench(mpi, folder, True, o), Calls(mpi, folder)]
            jobs += [] if o.no_lu else [Lu(mpi, folder)]
        for job in jobs:
            job.prepare(builds)
        found = {id(job): [] for job in jobs}
        for k in range(o.rounds):
            for job in jobs:
                order = (0, 1) if k % 2 == 0 else (1, 0)
                times = {which: job.run(builds[which]) for which in order}
                found[id(job)].append((times[0], times[1]))
        rows, summary = [], []
        for job in jobs:
            of_job = ratios(found[id(job)])
            mean = geometric_mean(row[0] for row in of_job.values())
            worst = max(of_job, key=lambda name: of_job[name][0])
            summary.append(f"{job.mpi.name}, {job.name}: geometric mean {mean:.3f} of {len(of_job)} rows, highest {of_job[worst][0]:.3f} ({worst})")
            for name, (ratio, old, new, steady) in of_job.items():
                rows.append(
                    {
                        "host": job.mpi.name,
                        "job": job.name,
                        "row": name,
                        "reference": f"{old:.2f}",
                        "library": f"{new:.2f}",
                        "ratio": f"{ratio:.3f}",
                        "steady_rounds": str(steady),
                    }
                )
    head = [
        f"benches/builds.py, {o.rounds} rounds; {o.outer} datatypes a row of DDTBench and job with {o.inner} exchanges each; microseconds, calls in nanoseconds",
        f"{line}, {os.getloadavg()[0]:.2f} after; ranks pinned; {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
        *summary,
    ]
    present(head, rows, ("host", "job", "row"), "builds" if o.record else None, slug)


if __name__ == "__main__":
    main()
