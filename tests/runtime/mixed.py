#!/usr/bin/env python3
"""Checks jobs in which two ranks use different libraries as libyaksa.so.0.

MPICH gets its datatype engine from that library. In a job with different libraries, no call may
return success and leave wrong data. The script runs the program of mixed.c for each kind of call
and for each pair of libraries. Each rank gets its library through LD_LIBRARY_PATH. The script
prints one line for each job. The exit status is 1 if the data are not right in a job whose ranks
use the same library. It is also 1 if a job with different libraries hangs or does not end with an
error.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

KINDS = ("send", "put", "accumulate")


def outcome(mpiexec, program, kind, libraries, limit):
    """Runs a job, and returns its outcome and its output.

    The outcome is the line that a rank printed, such as "right". If no rank printed one, the
    outcome says how the job ended. A job that succeeds without such a line has not ended as it should.
    """
    ranks = [["-n", "1", "-env", "LD_LIBRARY_PATH", str(folder), program, kind] for folder in libraries]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DDTC_", "MPIR_CVAR_", "LD_"))}
    try:
        job = subprocess.run([mpiexec, *ranks[0], ":", *ranks[1]], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "hangs", ""
    text = job.stdout + job.stderr
    lines = [line.strip() for line in job.stdout.splitlines()]
    for word in ("wrong", "error", "right"):
        found = [line for line in lines if line.startswith(word)]
        if found and (word != "right" or job.returncode == 0):
            return found[0], text
    return f"ends with status {job.returncode}" if job.returncode else "succeeds without a word", text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpiexec", required=True, help="mpiexec of the MPICH under test")
    parser.add_argument("--program", required=True, help="the compiled mixed.c")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a job counts as hanging [%(default)s]")
    parser.add_argument("--ours", type=Path, required=True, help="folder of ddtc's libyaksa.so.0")
    parser.add_argument("stock", type=Path, nargs="+", help="folders of yaksa's libyaksa.so.0, with assertions and without")
    o = parser.parse_args()
    failed = 0
    pairs = [(o.ours, o.ours)]
    for stock in o.stock:
        pairs += [(stock, stock), (stock, o.ours), (o.ours, stock)]
    for pair in pairs:
        for kind in KINDS:
            said, text = outcome(o.mpiexec, o.program, kind, pair, o.limit)
            same_library = pair[0] == pair[1]
            good = said == "right" if same_library else said.startswith(("error", "ends"))
            failed += not good
            print(f"{'ok  ' if good else 'FAIL'} {kind:10} from {pair[0]} to {pair[1]}: {said}", flush=True)
            if not good:
                print("\n".join(f"     {line}" for line in text.splitlines()[-10:]))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
