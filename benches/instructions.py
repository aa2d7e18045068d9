#!/usr/bin/env python3
"""Counts the instructions of MPI calls that neither of two builds of the preload library converts.

    cargo build --release -p ddtc-preload
    benches/instructions.py --library target/release/libddtc_preload.so --reference OLD.so

The script runs preload/benches/passed.c under `valgrind --tool=callgrind`, which counts only inside
of one function. The count divided by the number of calls is the cost of one call. It does not
depend on other work of the machine. The table has a row for each MPI library and call, with the
unmodified MPI library, the reference, and the build under test. The script fails if a call takes
more instructions than with the reference by more than --slack. Hash tables of MPI libraries depend
on addresses, which changes the counts slightly.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = ROOT / "target/ddtc-hosts"
ROUNDS = 4000


def surroundings(root, library):
    """Returns the environment of a process that runs alone under an MPI library."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("DDTC_")}
    env.update(LD_LIBRARY_PATH=str(root / "lib"), OMPI_MCA_btl="self,sm", I_MPI_FABRICS="shm")
    if (root / "bin/mpicc").exists() and root.name == "openmpi4":
        env.update(OPAL_PREFIX=str(root), OMPI_MCA_btl="self,vader", OMPI_MCA_plm="isolated")
    # Measured times must not influence which calls the library converts. So the profile cache,
    # which has measurements of earlier runs, is switched off, and the policy table alone decides.
    env.update(DDTC_PROFILE_CACHE="0", DDTC_POLICY="table")
    if library:
        env["LD_PRELOAD"] = str(library)
    return env


def counted(program, call, env, folder):
    """Returns the number of instructions of one call. Ends the script if valgrind fails."""
    command = ["valgrind", "-q", "--tool=callgrind", "--toggle-collect=counted_calls", f"--callgrind-out-file={folder}/calls", program, call, str(ROUNDS)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stderr}")
    found = re.search(r"^(?:summary|totals): (\d+)", Path(folder, "calls").read_text(), re.M)
    return int(found[1]) / ROUNDS


def main():
    o = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    o.add_argument("--library", type=Path, required=True, help="the build under test")
    o.add_argument("--reference", type=Path, required=True, help="the build that it is compared with")
    o.add_argument("--hosts", nargs="+", default=["mpich", "impi", "openmpi"], help="MPI libraries: folders below target/ddtc-hosts")
    o.add_argument("--calls", nargs="*", help="measure only these calls of preload/benches/passed.c")
    o.add_argument("--slack", type=float, default=0.1, help="instructions that a call may take in addition to the reference [%(default)s]")
    o = o.parse_args()
    worse = 0
    print("| MPI library | call | unmodified | reference | this build | difference |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for mpi in o.hosts:
            root = WHEELS / mpi
            # Intel's wheel has no compiler wrapper. That of MPICH is used instead, whose programs
            # have the same ABI.
            compiler = root / "bin/mpicc" if (root / "bin/mpicc").exists() else WHEELS / "mpich/bin/mpicc"
            program = Path(folder, mpi)
            subprocess.run([compiler, "-O2", "-rdynamic", "-o", program, ROOT / "preload/benches/passed.c"], check=True)
            names = subprocess.run([program], env=surroundings(root, None), capture_output=True, text=True, check=True)
            for call in o.calls or names.stdout.split():
                each = []
                for library in (None, o.reference.resolve(), o.library.resolve()):
                    each.append(counted(program, call, surroundings(root, library), folder))
                more = each[2] - each[1]
                worse += more > o.slack
                print(f"| {mpi} | {call} | {each[0]:.1f} | {each[1]:.1f} | {each[2]:.1f} | {more:+.1f} |", flush=True)
    if worse:
        sys.exit(f"error: {worse} calls take more instructions than with the reference, by more than --slack {o.slack:g}")


if __name__ == "__main__":
    main()
