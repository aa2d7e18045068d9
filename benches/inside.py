#!/usr/bin/env python3
"""Measures messages and collective calls under Open MPI in each way that this project has.

    cargo build --release -p ddtc-preload
    benches/inside.py --library target/release/libddtc_preload.so
    benches/inside.py --library target/release/libddtc_preload.so --ranks 4 --hosts openmpi4

The ways are: by the unmodified MPI library (bare), by a staging buffer (staged), by compiled code
inside of Open MPI's convertor (inside), by the shipped policy (shipped), and packed by hand.

The script runs the programs of `ddtc tune` (cli/src/tune) under the pinned wheels of the tests. A
round has three jobs. In the first one all calls are staged, and the hook in Open MPI's convertor is
disabled. In the second one compiled code moves everything that is not staged, inside of Open MPI.
The third one uses the shipped policy. In each job the measured calls take turns with calls packed
by hand, which the library does not affect, and the time of each way is taken relative to theirs.

Between two jobs, the distance between the cores of a virtual machine may double. So a round counts
only if short calls packed by hand took equally long in all of its jobs, within a sixth. If this is
so in no round, all rounds count. Times are medians of the rounds. `shipped_over_better` is relative
to the faster of bare and packed by hand. If there are more ranks than cores, the ranks yield while
they wait. Messages are measured only with two ranks.
"""

import argparse
import datetime
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from applications import OPENMPI4, ROOT, MpiLibrary, machine, noise, present

MPI_LIBRARIES = ("openmpi", OPENMPI4)
PROGRAMS = ("pingpong", "collectives")
# For each job: the settings of the library, the way that is measured by calls through the library,
# and the way that is measured by calls past it. None means that these times are not used.
JOBS = (
    (["DDTC_POLICY=all", "DDTC_MODE=commit", "DDTC_HOOK=off"], "staged", "bare"),
    (["DDTC_POLICY=all", "DDTC_MODE=commit"], None, "inside"),
    ([], "shipped", None),
)
WAYS = ("bare", "staged", "inside", "shipped")
# Calls with at most this number of bytes show the distance between the cores. Longer messages are
# copied by the operating system's kernel.
SHORT = 1024


def rows_of(text):
    """Returns the times of a job by call, class and bytes.

    A row has three times: of the call through the preload library, of the call past it, and of the
    call with data packed by hand.
    """
    rows = {}
    for line in text.splitlines():
        words = line.split(",")
        if len(words) in (6, 7) and not line.startswith("library"):
            call = words.pop(0) if len(words) == 7 else "message"
            rows[call, words[0], int(words[1])] = [float(word) for word in words[2:5]]
    return rows


def control(rows):
    """Returns the median time of those calls of a job that are short and packed by hand.

    This time depends on the distance between the cores, but not on the preload library.
    """
    return median(hand for (_, _, size), (_, _, hand) in rows.items() if size <= SHORT)


def measured(mpi, o, folder):
    """Measures all programs, and returns their rows and a text with the number of steady rounds.

    In a steady round, short calls packed by hand took equally long in all jobs, within a sixth. A
    row has, for each round that counts, the time of each way relative to packing by hand, and the
    time of packing by hand.
    """
    found, steady = {}, []
    for name in PROGRAMS:
        if name == "pingpong" and o.ranks != 2:
            continue
        program = mpi.compiled(folder, f"cli/src/tune/{name}.c", ("-O3",))
        rounds = []
        for turn in range(o.rounds):
            jobs = []
            for settings, *_ in JOBS[:: 1 if turn % 2 == 0 else -1]:
                preload = [f"LD_PRELOAD={o.library.resolve()}", *settings]
                jobs.append(rows_of(mpi.run(program, [str(o.inner), str(o.budget)], preload, folder, ranks=o.ranks)))
                if not jobs[-1]:
                    sys.exit(f"error: {name} under {mpi.name} printed no rows")
            rounds.append(jobs if turn % 2 == 0 else jobs[::-1])
        steady_jobs = [jobs for jobs in rounds if max(map(control, jobs)) * 6 <= min(map(control, jobs)) * 7]
        steady.append(f"{len(steady_jobs)} of {name}")
        for jobs in steady_jobs or rounds:
            for (_, through, past), rows in zip(JOBS, jobs, strict=True):
                for key, (one, other, hand) in rows.items():
                    row = found.setdefault(key, {way: [] for way in (*WAYS, "hand")})
                    row["hand"].append(hand)
                    for way, time in ((through, one), (past, other)):
                        if way is not None:
                            row[way].append(time / hand)
    return found, ", ".join(steady)


def table(found):
    rows = []
    for (call, kind, size), times in found.items():
        hand = median(times["hand"])
        over = {way: median(times[way]) for way in WAYS}
        rows.append(
            {
                "call": call,
                "class": kind,
                "bytes": size,
                **{f"{way}_us": f"{over[way] * hand:.2f}" for way in WAYS},
                "hand_us": f"{hand:.2f}",
                "shipped_over_hand": f"{over['shipped']:.3f}",
                "shipped_over_better": f"{over['shipped'] / min(over['bare'], 1):.3f}",
                "noise_percent": f"{max(noise(times[way]) for way in ('bare', 'shipped')):.1f}",
            }
        )
    return rows


def summary(rows):
    lines = []
    for what, some, column in (
        ("messages", [r for r in rows if r["call"] == "message"], "shipped_over_better"),
        ("collective calls", [r for r in rows if r["call"] != "message"], "shipped_over_hand"),
    ):
        some = [r for r in some if r["bytes"] >= 1024]
        if some:
            limit = 1.0 if column == "shipped_over_better" else 1.15
            above = [r for r in some if float(r[column]) > limit]
            beyond = [r for r in above if float(r[column]) > limit + 2 * float(r["noise_percent"]) / 100]
            worst = max(float(r[column]) for r in some)
            lines.append(
                f"{what} from 1 KiB up, {column} above {limit:g}: {len(above)} of {len(some)}, {len(beyond)} beyond twice the noise; "
                f"median {median(float(r[column]) for r in some):.2f}, most {worst:.2f}"
            )
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="path of libddtc_preload.so")
    parser.add_argument("--wheels", type=Path, default=ROOT / "target/ddtc-hosts", help="folder of the MPI wheels [target/ddtc-hosts]")
    parser.add_argument("--hosts", default=",".join(MPI_LIBRARIES), help="MPI libraries, separated by commas [%(default)s]")
    parser.add_argument("--ranks", type=int, default=2, help="ranks of a job [%(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of three jobs [%(default)s]")
    parser.add_argument("--inner", type=int, default=7, help="rounds within a job [%(default)s]")
    parser.add_argument("--budget", type=float, default=2, help="milliseconds of a round within a job [%(default)s]")
    parser.add_argument("--record", action="store_true", help="write benches/record/MACHINE/DATE-COMMIT-inside-RANKS-MPI.csv")
    o = parser.parse_args()
    if not o.library.is_file():
        sys.exit(f"error: --library {o.library}: no such file: build it with cargo build --release -p ddtc-preload")
    for name, minimum in (("ranks", 2), ("rounds", 1), ("inner", 1)):
        if getattr(o, name) < minimum:
            sys.exit(f"error: --{name} {getattr(o, name)}: must be {minimum} or more")
    names = o.hosts.split(",")
    if unknown := [name for name in names if name not in MPI_LIBRARIES]:
        sys.exit(f"error: --hosts {unknown[0]}: no such MPI library: must be of {', '.join(MPI_LIBRARIES)}")
    cores = sorted(os.sched_getaffinity(0))
    for name in names:
        slug, line = machine()
        mpi = MpiLibrary(o.wheels.resolve(), name, cores)
        with tempfile.TemporaryDirectory() as temporary:
            found, steady = measured(mpi, o, Path(temporary))
        rows = table(found)
        version = (mpi.root / ".ready").read_text().split(" ")[0]
        head = [
            f"benches/inside.py, {o.ranks} ranks, {o.rounds} rounds of three jobs, {o.inner} rounds of {o.budget:g} ms within; steady rounds: {steady}; {version}",
            f"{line}, {os.getloadavg()[0]:.2f} after; ranks pinned; {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
            *summary(rows),
        ]
        present(head, rows, ("call", "class"), f"inside-{o.ranks}-{name}" if o.record else None, slug)


if __name__ == "__main__":
    main()
