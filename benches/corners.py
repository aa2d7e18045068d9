#!/usr/bin/env python3
"""Measures calls that the other scripts leave out, with and without the preload library in turn.

    cargo build --release -p ddtc-preload
    benches/corners.py --library target/release/libddtc_preload.so
    benches/corners.py --library target/release/libddtc_preload.so --hosts openmpi --only halo

These are the first 100 messages of a process, with an empty profile cache; long vectors that all
ranks move at once, so that they share the memory bus; halo columns of 72 B; and contiguous writes to
files. The program is preload/benches/corners.c, which checks bytes. It runs under the pinned MPI
wheels of the tests, on two ranks that are each pinned to a core. The memory bus is shared by four
ranks if there are four cores.

A round is one job without and one job with the library, and the order alternates. Each job also
times a control that the library does not change: contiguous messages of the same bytes, packing by
hand, or the system call pwrite. A round counts for a row only if the control took equally long in
both jobs, within a sixth. If this is so in no round, all rounds count. A ratio is the median of the
ratios of these rounds.
"""

import datetime
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from applications import MpiLibrary, in_rounds, in_turn, is_steady, machine, mpi_names, noise, present

# For each kind of call: the arguments of the jobs of a round, and the maximum number of ranks.
KINDS = {
    "first": ([["first", str(case)] for case in range(7)], 2),
    "halo": ([["halo"]], 2),
    "bus": ([["bus"]], 4),
    "files": ([["files"]], 2),
}


def measured(mpi, program, kind, o, folder):
    """Returns the rows of one kind of call."""
    arguments, maximum = KINDS[kind]
    ranks = min(maximum, len(mpi.cores) // 2 * 2)

    def job(way):
        rows = []
        for words in arguments:
            # A process whose first messages are measured must not know times of earlier ones.
            cache = tempfile.mkdtemp(dir=folder) if kind == "first" else str(folder)
            library = [f"LD_PRELOAD={o.library.resolve()}"] if way else []
            out = mpi.run(program, words, [f"XDG_CACHE_HOME={cache}", *library], folder, ranks=ranks)
            rows += [line.split(",") for line in out.splitlines()]
        return [(name, size, float(time), float(control)) for name, size, time, control in rows]

    if kind != "first":
        job(1)
    unmodified, preloaded = in_turn(o.rounds, job)
    found = []
    for k, (name, size, *_) in enumerate(unmodified[0]):
        pairs = [(a[k], b[k]) for a, b in zip(unmodified, preloaded, strict=True)]
        steady = [(a, b) for a, b in pairs if is_steady(a[3], b[3])]
        used = steady or pairs
        found.append(
            {
                "kind": kind,
                "ranks": str(ranks),
                "row": name,
                "bytes": size,
                "bare_us": f"{median(a[2] for a, _ in used):.2f}",
                "preloaded_us": f"{median(b[2] for _, b in used):.2f}",
                "control_us": f"{median(a[3] for a, _ in used):.2f}",
                "preloaded_over_bare": f"{median(b[2] / a[2] for a, b in used):.3f}",
                "noise_percent": f"{max(noise([pair[way][2] for pair in used]) for way in (0, 1)):.1f}",
                "steady_rounds": str(len(steady)),
            }
        )
    return found


def main():
    parser = in_rounds(__doc__, 7, "corners-MPI")
    parser.add_argument("--library", type=Path, required=True, help="path of libddtc_preload.so")
    parser.add_argument("--only", default=",".join(KINDS), help="kinds of calls, separated by commas [%(default)s]")
    o = parser.parse_args()
    if not o.library.is_file():
        sys.exit(f"error: --library {o.library}: no such file: build it with cargo build --release -p ddtc-preload")
    kinds = o.only.split(",")
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        sys.exit(f"error: --only {unknown[0]}: no such kind: must be of {', '.join(KINDS)}")
    libraries = mpi_names(o)
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit(f"error: this process may use {len(cores)} core, and the ranks need at least two: allow more cores, for example with taskset")
    for name in libraries:
        slug, line = machine()
        with tempfile.TemporaryDirectory() as temporary:
            mpi, folder = MpiLibrary(o.wheels.resolve(), name, cores), Path(temporary)
            program = mpi.compiled(folder, "preload/benches/corners.c")
            rows = [row for kind in kinds for row in measured(mpi, program, kind, o, folder)]
        above = sum(float(r["preloaded_over_bare"]) > 1.02 for r in rows)
        head = [
            f"benches/corners.py, {o.rounds} rounds; policy as shipped; {(mpi.root / '.ready').read_text().split(' ')[0]}",
            f"{line}, {os.getloadavg()[0]:.2f} after; ranks pinned; {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
            f"{above} of {len(rows)} rows above 1.02 of bare",
        ]
        present(head, rows, ("kind", "row"), f"corners-{name}" if o.record else None, slug)


if __name__ == "__main__":
    main()
