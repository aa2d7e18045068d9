#!/usr/bin/env python3
"""Runs MPICH's tests under Open MPI twice: without and with ddtc's preload library.

A run without the preload library is called "bare". A run with it is called "inside", because the
library's hook in Open MPI's convertors packs and unpacks the bytes of Open MPI's own requests. A
test that passes bare must also pass inside. tests/openmpi.sh --suites builds the programs of the
tests and runs this script.

Each case runs bare first. If it does not pass, it does not run inside. Otherwise it runs inside:
all ranks have the preload library, which does nothing but move bytes through its hook. If the case
fails there, it runs bare and inside up to two more times, and counts as different if it never
passes inside. The file of results has a line for each case: verdict bare, verdict inside, bytes
moved inside, and name. A case that has a result with the same preload library is not run again, so
an interrupted run can be continued. The script ends with an error if a case is different, or if no
bytes were moved inside.
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runtime"))
import cases as lists

PARTS = ["datatype", "pt2pt", "coll", "rma", "io", "part"]
PASSED = re.compile(r"^\s*No [Ee]rrors\s*$", re.MULTILINE)
MOVED = ["hook_bytes_packed", "hook_bytes_unpacked"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True, help="test/mpi of MPICH's source")
    parser.add_argument("--programs", type=Path, required=True, help="folder in which these tests were built")
    parser.add_argument("--openmpi", type=Path, help="prefix of Open MPI")
    parser.add_argument("--library", type=Path, help="path of libddtc_preload.so")
    parser.add_argument("--results", type=Path, help="file with the results, to which lines are added")
    parser.add_argument("--list", action="store_true", help="print only FOLDER/PROGRAM of all cases")
    parser.add_argument("--only", default="", metavar="REGEX", help="run only cases whose names match")
    parser.add_argument("--limit", type=float, default=120, help="seconds after which a case counts as hanging [%(default)s]")
    return parser.parse_args()


def chosen(o):
    """Returns the cases to run, each once.

    Cases that need more than 4 gigabytes of memory are left out, and so are those that the lists of
    MPICH's tests mark as known failures.
    """
    found = {}
    lists.MPI, lists.NOLOCAL = PARTS, []
    for case in lists.mpi_cases(o.source, o.programs):
        if case.memory <= 4 and not case.expected_failure and re.search(o.only, case.name):
            found.setdefault(case.name, case)
    return list(found.values())


def run(o, case, inside):
    """Runs a case, and returns its verdict and the number of bytes that the preload library moved.
    """
    if not (case.folder / case.program).exists():
        return "not built", 0
    reports = o.results.parent / "suites-reports"
    reports.mkdir(exist_ok=True)
    for old in reports.iterdir():
        old.unlink()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DDTC_", "LD_"))}
    env |= {"LD_LIBRARY_PATH": str(o.openmpi / "lib"), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    own = [word for name in case.environment for word in ("-x", name)]
    env |= case.environment
    with_it = ["env", f"LD_PRELOAD={o.library}", "DDTC_POLICY=none", f"DDTC_REPORT={reports}/report-%p-%r.json"] if inside else []
    launcher = [o.openmpi / "bin/mpiexec", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,sm", *own]
    command = [*launcher, "-n", str(case.ranks), *with_it, case.program, *case.arguments]
    # Run the job in a session of its own. If it hangs, all of its processes can then be found by
    # the session. A search for the name of the program could also find this script.
    with subprocess.Popen(command, cwd=case.folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace", start_new_session=True) as job:
        try:
            said, _ = job.communicate(timeout=o.limit)
        except subprocess.TimeoutExpired:
            subprocess.run(["pkill", "-KILL", "-s", str(job.pid)], check=False)
            return "hangs", 0
    # If a rank was killed, it may have left an unfinished report under another name. The pattern
    # here does not match that name.
    totals = [json.loads(report.read_text())["totals"] for report in reports.glob("report-*.json")]
    moved = sum(total[name] for total in totals for name in MOVED)
    if job.returncode != 0:
        return f"exit {job.returncode}", moved
    return ("pass" if PASSED.search(said) else "no verdict"), moved


def both(o, case):
    """Runs a case bare and inside.

    Returns both verdicts, and the number of bytes that the preload library moved inside.
    """
    bare, _ = run(o, case, False)
    if bare != "pass":
        return bare, "", 0
    inside, moved = run(o, case, True)
    for _ in range(2):
        if inside == "pass":
            break
        inside = run(o, case, True)[0] if run(o, case, False)[0] == "pass" else inside
    return bare, inside, moved


def judged(o):
    """Returns the results of earlier runs with the same preload library, by the name of the case.

    The first line of the file of results has a hash of the preload library. If the hash is that of
    another preload library, the file is emptied.
    """
    stamp = "# " + hashlib.sha256(o.library.read_bytes()).hexdigest()
    first, *lines = o.results.read_text().splitlines() if o.results.exists() else [""]
    if first != stamp:
        o.results.write_text(stamp + "\n")
        return {}
    # If a run was interrupted, the last line may be incomplete. Leave out such a line.
    rows = [row for row in (line.split("\t") for line in lines) if len(row) == 4]
    return {name: (bare, inside, int(moved)) for bare, inside, moved, name in rows}


def main():
    o = options()
    every = chosen(o)
    if o.list:
        print(*sorted({f"{case.folder.name}/{case.program[2:]}" for case in every}), sep="\n")
        return
    if None in (o.openmpi, o.library, o.results):
        sys.exit("error: --openmpi, --library or --results is missing: give all three, or --list")
    known = judged(o)
    counts = {part: [0, 0, 0, 0] for part in PARTS}
    differ, total = [], 0
    for number, case in enumerate(every, 1):
        count = counts[case.folder.name]
        count[0] += 1
        if case.name not in known:
            known[case.name] = both(o, case)
            with o.results.open("a") as sink:
                sink.write("\t".join([*map(str, known[case.name]), case.name]) + "\n")
        bare, inside, moved = known[case.name]
        if bare == "pass":
            count[1] += 1
            count[2] += inside == "pass"
            count[3] += moved > 0
            total += moved
            if inside != "pass":
                differ.append(f"{inside}: {case.name}")
        print(f"{number}/{len(every)} {bare:10} {inside:10} {moved:12}  {case.name}", flush=True)
    for part, (cases, bare, inside, moving) in counts.items():
        print(f"{part}: {cases} cases, {bare} pass bare, {inside} inside; {moving} move bytes inside")
    print(f"{total} bytes moved inside")
    print(*(f"  {line}" for line in differ), sep="\n")
    if differ or total == 0:
        sys.exit("error: a case that passes bare does not pass inside, or no case moved bytes inside: see the lists above")


if __name__ == "__main__":
    main()
