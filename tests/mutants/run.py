#!/usr/bin/env python3
"""Finds out which mutants of the modules that move bytes are noticed by the tests.

A mutant is a change of one operator, match arm, guard, field or result of a function. cargo-mutants
lists the mutants, and a seeded shuffle takes a sample of them. To build each mutant alone would
cost minutes of compilation for seconds of tests. So the mutants of the sample are put into one copy
of the sources, in which each mutant has its own copy of its function's body. The environment
variable DDTC_MUTANT selects the mutant that runs:

    fn f(..) { if mutant::is(7) { BODY WITH MUTANT 7 } else { BODY } }

A mutant that does not compile together with the others is built alone. If it does not compile alone
either, its verdict is "unviable". Start the script in the root of the repository. It writes
everything into the folder DIR, and continues a run there that was interrupted.

    tests/mutants/run.py DIR --sample 400 --seed 1
"""

import argparse
import collections
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

VERSION = "cargo-mutants 27.1.0"
# Names of the modules below src/ whose mutants are tried. Their code decides which bytes are moved
# where. LEFT_OUT has files of these modules whose mutants are not tried: the text form, the
# verifier and the evaluation of nests, micro-kernels for another architecture, and the oracles.
MODULES = ["apply", "emit", "interval", "kernel", "legalize", "load", "lower", "micro", "nest",
           "nest_interpreter", "normalize", "refine", "schedule", "segments"]
LEFT_OUT = ["src/fuzzing", "src/nest/text.rs", "src/nest/verify.rs", "src/nest/eval.rs", "src/micro/isa/neon"]
# Number of entries at the start of JUDGES that run on all mutants before any of the other entries
# runs. The tests in these entries notice most of the mutants, and take little time.
FIRST = 3
# The runs of test binaries that judge a mutant, in this order. An entry has the name of a test
# binary and its arguments. In an argument, MODULE stands for the name of the topmost module that
# has the mutant, such as `exec` for src/exec/apply.rs.
JUDGES = [
    ("filetests", []),
    ("engines", ["listed_types"]),
    ("lib", ["MODULE::"]),
    ("lib", ["--skip", "MODULE::"]),
    ("identities", []),
    ("ranges", []),
    ("external32", []),
    ("reduce", []),
    ("parallel", []),
    ("cache", []),
    ("faults", []),
    ("regressions", []),
    ("foreign", []),
    ("engines", ["--skip", "listed_types"]),
    ("properties", []),
]
SELECTOR = """
//! Which mutant runs: set before main, by the environment.
use std::sync::atomic::{AtomicUsize, Ordering};
static ACTIVE: AtomicUsize = AtomicUsize::new(usize::MAX);
extern "C" fn choose() {
    if let Ok(text) = std::env::var("DDTC_MUTANT") {
        ACTIVE.store(text.parse().expect("DDTC_MUTANT is a number"), Ordering::Relaxed);
    }
}
// SAFETY: the loader calls it once, before main.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;
pub(crate) fn is(n: usize) -> bool {
    ACTIVE.load(Ordering::Relaxed) == n
}
"""


def files_of(module):
    """Returns the paths of a module's file and folder, each as a pattern of cargo-mutants.

    Ends the script if no module below src/ has this name.
    """
    files = [str(file) for file in sorted(Path("src").glob(f"**/{module}.rs"))]
    folders = [f"{folder}/**" for folder in sorted(Path("src").glob(f"**/{module}")) if folder.is_dir()]
    if not files + folders:
        sys.exit(f"error: MODULES has {module}, and src/ has no such module")
    return files + folders


def listed():
    """Returns the mutants of the modules in MODULES, sorted by name.

    Mutants of the files in LEFT_OUT are not among them.
    """
    version = subprocess.run(["cargo", "mutants", "--version"], capture_output=True, text=True).stdout.strip()
    if version != VERSION:
        sys.exit(f"error: found '{version}', need {VERSION}: cargo install cargo-mutants --version {VERSION.split()[1]} --locked")
    globs = [word for module in MODULES for pattern in files_of(module) for word in ("-f", pattern)]
    text = subprocess.run(["cargo", "mutants", "--list", "--json", *globs], check=True, capture_output=True, text=True).stdout
    mutants = [m for m in json.loads(text) if not m["file"].startswith(tuple(LEFT_OUT))]
    return sorted(mutants, key=lambda m: m["name"])


def offset(starts, place):
    """Returns the index in a text of a place that is given as a line and a column.

    `starts` has for each line of the text the index at which the line begins.
    """
    return starts[place["line"] - 1] + place["column"] - 1


def body(text, start, end):
    """Returns the start and the end of the body of a function, both braces included.

    The function is in `text` at [start, end). Its body begins at the first opening brace that is
    outside of comments, quotes and brackets. If there is no such brace, this function returns None.
    """
    at, depth = start, 0
    token = re.compile(r"""//[^\n]*|/\*.*?\*/|r#*"|b?"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.[^']*)'|[()\[\]{}]""", re.S)
    while m := token.search(text, at, end):
        at = m.end()
        if m[0] == "{" and depth == 0:
            return m.start(), end
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(m[0], 0)
    return None


def rewritten(source, mutants):
    """Puts `mutants`, a dictionary from number to mutant, into the text of a source file.

    Returns three values. The first is the new text. The second is a list of the numbers of mutants
    that cannot be selected at run time, because they are outside of the body of a function or in a
    constant function. The third is a dictionary from the number of each other mutant to the first
    and the last line of its code in the new text.
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    homes, misfits = collections.defaultdict(list), []
    spans = [(offset(starts, m["function"]["span"]["start"]), offset(starts, m["function"]["span"]["end"])) for m in mutants.values() if m["function"]]
    for number, m in mutants.items():
        at = offset(starts, m["span"]["start"])
        home = min((s for s in spans if s[0] <= at < s[1]), default=None, key=lambda s: s[0])
        braces = home and body(source, *home)
        # The compiler may evaluate a constant function, which cannot ask at run time which mutant
        # is selected.
        if not braces or braces[0] > at or re.search(r"\bconst\s+(unsafe\s+)?fn\b", source[home[0]:braces[0]]):
            misfits.append(number)
        else:
            homes[braces].append(number)
    out, done, lines = [], 0, {}
    count = 0

    def put(part):
        nonlocal count
        out.append(part)
        count += part.count("\n")

    for (start, end), numbers in sorted(homes.items()):
        put(source[done:start] + "{\n")
        for number in numbers:
            m = mutants[number]
            first, last = offset(starts, m["span"]["start"]), offset(starts, m["span"]["end"])
            begin = count + 1
            put(f"if crate::mutant::is({number}) " + source[start:first] + m["replacement"] + " " + source[last:end] + " else\n")
            lines[number] = (begin, count)
        put(source[start:end] + "\n}")
        done = end
    put(source[done:])
    return "".join(out), misfits, lines


class Tree:
    """A copy of the sources of ddtc, into whose files mutants are put."""

    def __init__(self, folder):
        self.root = os.path.join(folder, "tree")
        if not os.path.exists(self.root):
            os.makedirs(self.root)
            files = subprocess.run(["git", "ls-files", "-z"], check=True, capture_output=True).stdout.decode().split("\0")
            for name in filter(None, files):
                os.makedirs(os.path.dirname(os.path.join(self.root, name)), exist_ok=True)
                shutil.copy2(name, os.path.join(self.root, name))
        self.plain = {}

    def read(self, name):
        if name not in self.plain:
            with open(name, encoding="utf-8") as file:
                self.plain[name] = file.read()
        return self.plain[name]

    def write(self, name, text):
        """Writes a file of the copy, but only if its text has changed.

        If a file was written with the same text, cargo would compile it again for nothing.
        """
        path = os.path.join(self.root, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    return
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def put(self, mutants):
        """Writes all of `mutants` into the copy, and restores the files that had mutants before.

        Returns a list of the numbers of the mutants that cannot be selected at run time, and a
        dictionary from the number of each other mutant to its file and lines.
        """
        files, misfits, where = collections.defaultdict(dict), [], {}
        for number, m in mutants.items():
            files[m["file"]][number] = m
        for name in self.plain:
            files[name]
        for name, own in files.items():
            text, left, lines = rewritten(self.read(name), own)
            misfits += left
            where.update({number: (name, span) for number, span in lines.items()})
            self.write(name, text)
        self.write("src/mutant.rs", SELECTOR)
        self.write("src/lib.rs", self.read("src/lib.rs") + "\n#[allow(unsafe_code, clippy::all, missing_docs)]\nmod mutant;\n")
        return misfits, where

    def replace(self, name, mutants):
        """Replaces code in the original text of one file by all of `mutants`.

        The mutants must not overlap. The lines after a mutant keep their numbers, unless the mutant
        has more lines than the code that it replaces.
        """
        text = self.read(name)
        starts = [0]
        for line in text.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        for m in sorted(mutants, key=lambda m: -offset(starts, m["span"]["start"])):
            first, last = offset(starts, m["span"]["start"]), offset(starts, m["span"]["end"])
            lines = "\n" * (text[first:last].count("\n") - m["replacement"].count("\n"))
            text = text[:first] + m["replacement"] + " " + lines + text[last:]
        self.write(name, text)

    def cargo(self, *args):
        return subprocess.run(["cargo", *args], cwd=self.root, capture_output=True, text=True)

    def errors(self):
        """Compiles the library with its unit tests, and returns the file and line of each error.

        For an error without a place, the result has the pair of None and the message.
        """
        found = set()
        for line in self.cargo("check", "--profile", "test", "--lib", "--message-format=json").stdout.splitlines():
            message = json.loads(line).get("message") or {}
            if message.get("level") == "error":
                spans = list(message["spans"])
                for child in message["children"]:
                    spans += child["spans"]
                found |= {(s["file_name"], s["line_start"]) for s in spans}
                found |= {(None, message["message"])} if not message["spans"] and "aborting" not in message["message"] else set()
        return found

    def binaries(self, names):
        """Builds the test binaries of these names.

        Returns a dictionary from name to path and an empty text. If the build fails, returns None
        and the end of cargo's messages.
        """
        chosen = [a for n in sorted(names) for a in (["--lib"] if n == "lib" else ["--test", n])]
        built = self.cargo("test", "--no-run", "--message-format=json", *chosen)
        if built.returncode:
            return None, built.stderr[-4000:]
        found = {}
        for line in built.stdout.splitlines():
            message = json.loads(line)
            if message.get("executable"):
                found["lib" if "lib" in message["target"]["kind"] else message["target"]["name"]] = message["executable"]
        return found, ""


def compiling_together(tree, mutants, wait):
    """Returns those of `mutants` that compile together in one tree.

    Compiles all of them, leaves out the mutants on whose lines an error was reported, and compiles
    the others again, until there is no error. The function `wait` returns when the next compilation
    may start.
    """
    together = dict(mutants)
    while True:
        misfits, where = tree.put(together)
        wrong = set(misfits)
        if not misfits:
            wait()
            errors = tree.errors()
            wrong = {n for n, (name, (a, b)) in where.items() if any(f == name and a <= line <= b for f, line in errors if f)}
            print(f"{len(together)} together, {len(errors)} places of errors, {len(wrong)} mutants in them", flush=True)
            if not errors:
                return together
            if not wrong:
                sys.exit(f"error: the tree does not compile: {sorted(errors, key=str)[:5]}")
        for number in wrong:
            del together[number]


def viable(tree, rest, wait):
    """Returns the mutants of `rest` that compile alone, and empties `rest`.

    To save compilations, mutants of different functions are put into the sources and compiled at
    the same time.
    """
    alone = {}
    while rest:
        chosen, homes = {}, set()
        for number, m in rest.items():
            home = (m["file"], json.dumps(m["function"]["span"] if m["function"] else m["span"]))
            if home not in homes:
                homes.add(home)
                chosen[number] = m
        for number in chosen:
            del rest[number]
        while chosen:
            tree.put({})
            for name in {m["file"] for m in chosen.values()}:
                tree.replace(name, [m for m in chosen.values() if m["file"] == name])
            wait()
            errors = tree.errors()
            lines = {n: (m["function"] or m)["span"] for n, m in chosen.items()}
            wrong = {n for n, span in lines.items()
                     if any(f == chosen[n]["file"] and span["start"]["line"] <= line <= span["end"]["line"] for f, line in errors if f)}
            print(f"{len(chosen)} alone, {len(errors)} places of errors, {len(wrong)} mutants in them", flush=True)
            if not errors:
                break
            if not wrong:
                # No error is in the function of a mutant, so the errors are elsewhere, for example
                # where a constant is used that a mutant changed. Compile each mutant by itself to
                # find those that cause errors.
                wrong = set()
                for number, m in chosen.items():
                    tree.put({})
                    tree.replace(m["file"], [m])
                    wrong |= {number} if tree.errors() else set()
            for number in wrong:
                del chosen[number]
        alone.update(chosen)
    return alone


def memory(group):
    """Returns the resident bytes of all processes in the process group `group`.

    The result is right for pages of 4 KiB.
    """
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            if int(fields[2]) == group:
                total += int(fields[21]) * 4096
        except OSError:
            pass
    return total


def judged(command, root, number, limit, paused):
    """Runs a test binary with mutant `number` selected, and returns how it ended and its seconds.

    The first value is "passed" or "failed" if the binary ended by itself. It is "timeout" if the
    binary was killed after `limit` seconds, and "memory" if it was killed because its processes had
    more than 6 GiB of memory. While paused() returns True, the processes are stopped, and this time
    does not count.
    """
    env = dict(os.environ, CARGO_MANIFEST_DIR=root, RUST_BACKTRACE="0", DDTC_MUTANT=str(number))
    started = time.monotonic()
    process = subprocess.Popen(command, cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
    verdict = None
    while True:
        try:
            process.wait(0.05 if time.monotonic() - started < 2 else 0.5)
            break
        except subprocess.TimeoutExpired:
            pass
        if paused():
            stopped = time.monotonic()
            os.killpg(process.pid, signal.SIGSTOP)
            while paused():
                time.sleep(2)
            os.killpg(process.pid, signal.SIGCONT)
            started += time.monotonic() - stopped
        if time.monotonic() - started > limit:
            verdict = "timeout"
        elif memory(process.pid) > 6 << 30:
            verdict = "memory"
        if verdict:
            break
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    status = process.wait()
    return verdict or ("passed" if status == 0 else "failed"), time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="DIR", help="folder for the copy of the sources and results.jsonl")
    parser.add_argument("--sample", type=int, default=400, help="number of mutants to try [%(default)s]")
    parser.add_argument("--seed", type=int, default=1, help="seed of the shuffle that chooses the mutants [%(default)s]")
    parser.add_argument("--threads", type=int, default=1, help="threads of each test binary [%(default)s]")
    parser.add_argument("--pause", metavar="FILE", help="while FILE exists, start nothing and stop the running tests")
    parser.add_argument("--again", action="store_true",
                        help=f"after tests were added: run all tests but the first {FIRST} again on mutants that survived")
    args = parser.parse_args()
    folder = os.path.abspath(args.folder)
    os.makedirs(folder, exist_ok=True)

    everything = listed()
    # Take the first mutants of the shuffled list. A larger sample with the same seed then begins
    # with the mutants of a smaller sample.
    random.Random(args.seed).shuffle(everything)
    sample = everything[:args.sample]
    print(f"{len(everything)} mutants, the first {len(sample)} of them shuffled by seed {args.seed}", flush=True)
    mutants = dict(enumerate(sample))
    record = os.path.join(folder, "results.jsonl")
    known = {}
    if os.path.exists(record):
        with open(record) as file:
            for line in file:
                row = json.loads(line)
                if args.again and row["verdict"] == "survived":
                    row["verdict"] = "left"
                known[row["name"]] = row

    def write(m, verdict, judge="", seconds=0.0):
        row = {"name": m["name"], "genre": m["genre"], "verdict": verdict, "judge": judge, "seconds": round(seconds, 1)}
        known[m["name"]] = row
        with open(record, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{verdict:9} {seconds:6.1f} s  {m['name']}  {judge}", flush=True)

    def paused():
        return bool(args.pause) and os.path.exists(args.pause)

    def wait():
        while paused():
            time.sleep(2)

    def judge(m, number, binaries, limits, which):
        total = 0.0
        for i in which:
            wait()
            name, extra = JUDGES[i]
            if name not in binaries:
                more, _ = tree.binaries([name])
                if not more:
                    return write(m, "unviable", f"{name} does not compile")
                binaries.update(more)
            module = re.split(r"[/.]", m["file"])[1]
            extra = [word.replace("MODULE", module) for word in extra]
            verdict, seconds = judged([binaries[name], "--test-threads", str(args.threads), *extra], tree.root, number, limits[i], paused)
            total += seconds
            if verdict != "passed":
                return write(m, "timeout" if verdict == "timeout" else "caught", f"{name} {' '.join(extra[:2])}: {verdict}", total)
        return write(m, "survived" if which[-1] == len(JUDGES) - 1 else "left", "", total)

    def known_as(m):
        return known.get(m["name"], {}).get("verdict")

    tree = Tree(folder)

    def parted(name, find, among):
        """Returns those of the mutants `among` that the function `find` chooses.

        The numbers of the chosen mutants are stored in a file, so that an interrupted run that is
        continued reads them from there.
        """
        path = os.path.join(folder, f"{name}-{args.sample}-{args.seed}.json")
        if not os.path.exists(path):
            found = sorted(find(tree, among, wait))
            with open(path, "w") as file:
                json.dump(found, file)
        with open(path) as file:
            return {n: mutants[n] for n in json.load(file)}

    together = parted("together", compiling_together, mutants)
    tree.put(together)
    limits = []
    for which, before in ((range(FIRST), None), (range(FIRST, len(JUDGES)), "left")):
        wait()
        binaries, text = tree.binaries({JUDGES[i][0] for i in which})
        if not binaries:
            sys.exit(f"error: the tests do not compile:\n{text}")
        # All tests must pass without a mutant. Their time is measured here: with a mutant, a test
        # binary may take 60 seconds and 10 times as long as without one.
        for name, extra in (JUDGES[i] for i in which):
            wait()
            extra = [word.replace("MODULE", "micro") for word in extra]
            verdict, seconds = judged([binaries[name], "--test-threads", str(args.threads), *extra], tree.root, len(mutants), 3600, paused)
            print(f"no mutant: {name} {' '.join(extra[:2])}: {verdict}, {seconds:.1f} s", flush=True)
            if verdict != "passed":
                sys.exit(f"error: {name} fails without a mutant")
            limits.append(60 + 10 * seconds)
        for number, m in together.items():
            if known_as(m) == before:
                judge(m, number, binaries, limits, which)
    # The mutants that do not compile together with the others have not been judged yet. Build and
    # judge each of them alone.
    rest = {n: m for n, m in mutants.items() if n not in together}
    alone = parted("alone", viable, dict(rest))
    for number, m in rest.items():
        if number not in alone and not known_as(m):
            write(m, "unviable")
        elif known_as(m) in (None, "left"):
            wait()
            tree.put({})
            tree.replace(m["file"], [m])
            judge(m, len(mutants), {}, limits, range(len(JUDGES)))
    print(collections.Counter(row["verdict"] for row in known.values()))


if __name__ == "__main__":
    main()
