#!/usr/bin/env python3
"""Measures what decoding and compiling a datatype cost, with two builds of the preload library.

    cargo build --release -p ddtc-preload
    benches/decoding.py --library target/release/libddtc_preload.so --reference OLD.so

The script runs preload/benches/decoding.c in one process under each MPI library. The times are
those of MPI_Type_commit minus its time without ddtc: once with decoding only (DDTC_MODE=interpret),
and once with decoding and compiling (DDTC_MODE=commit). Any decoding must call the MPI library's
own MPI_Type_get_envelope and MPI_Type_get_contents. Their time has a column of its own and is not
part of the other times.

The times of a row are medians over the rounds, for each build. Its ratio is the median of the
rounds' ratios. A time that would be less than 1 ns counts as 1 ns.
"""

import datetime
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from applications import MpiLibrary, checked, machine, present, two_builds

ROWS = (("vector", 10), ("subarray", 10), ("struct", 3)) + tuple(
    (kind, n) for kind in ("indexed_block", "hindexed_block", "indexed", "hindexed") for n in (1000, 10000)
)
WAYS = {"decoded": "interpret", "decoded and compiled": "commit"}


def job(mpi, program, folder, build, row, way, cold):
    """Returns the nanoseconds of MPI_Type_commit and of the MPI library's own calls in one job.

    If `way` is None, the job runs without ddtc.
    """
    kind, n = row
    preload = [f"LD_PRELOAD={build}", "DDTC_PROFILE_CACHE=0", "DDTC_POLICY=all", f"DDTC_MODE={WAYS[way]}"] if way else []
    rounds = 40 if cold else 200 if n > 100 else 2000
    out = mpi.run(program, [kind, str(n), str(rounds), str(int(cold))], preload, folder, ranks=1)
    return tuple(map(float, out.split()))


def main():
    parser = two_builds(__doc__, 5, "decoding")
    o = parser.parse_args()
    names, builds = checked(o)
    slug, line = machine()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in names:
            mpi = MpiLibrary(o.wheels.resolve(), name, sorted(os.sched_getaffinity(0)))
            program = mpi.compiled(folder, "preload/benches/decoding.c")
            for row in ROWS:
                for cold in (False, True):
                    for way in WAYS:
                        pairs = []
                        for k in range(o.rounds):
                            order = (0, 1) if k % 2 == 0 else (1, 0)
                            found = {which: job(mpi, program, folder, builds[which], row, way, cold) for which in order}
                            plain, contents = job(mpi, program, folder, None, row, None, cold)
                            pairs.append([max(found[which][0] - plain - contents, 1.0) for which in (0, 1)] + [contents])
                        old, new, contents = (median(pair[k] for pair in pairs) for k in range(3))
                        rows.append(
                            {
                                "host": name,
                                "type": row[0],
                                "blocks": str(row[1]),
                                "caches": "cold" if cold else "warm",
                                "what": way,
                                "contents": f"{contents:.0f}",
                                "reference": f"{old:.0f}",
                                "library": f"{new:.0f}",
                                "library_per_block": f"{new / row[1]:.2f}",
                                "ratio": f"{median(pair[1] / pair[0] for pair in pairs):.2f}",
                            }
                        )
    head = [
        f"benches/decoding.py, {o.rounds} rounds; nanoseconds of MPI_Type_commit less its time without ddtc and less contents, the library's own MPI_Type_get_envelope and MPI_Type_get_contents",
        f"{line}, {os.getloadavg()[0]:.2f} after; {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
    ]
    present(head, rows, ("host", "type", "caches", "what"), "decoding" if o.record else None, slug)


if __name__ == "__main__":
    main()
