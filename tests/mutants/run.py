#!/usr/bin/env python3
"""Tells which mutants of the modules that move bytes the tests notice.

A mutant is a change of one operator, match arm, guard, field or result of a function.
cargo-mutants lists the mutants, and a seeded shuffle takes a sample of them. A build for each
mutant would cost minutes of compilation for seconds of tests. So the mutants of the sample are put
into one copy of the sources. Each has its own copy of its function's body, and the environment
variable DDTC_MUTANT selects the mutant that runs:

    fn f(..) { if mutant::is(7) { BODY WITH MUTANT 7 } else { BODY } }

A mutant that does not compile in this way is built alone. If it does not compile alone either, it
is unviable. Start the script in the root of the repository. It writes everything into DIR, and
continues an interrupted run.

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

VERSION = "cargo-mutants 27.1.0"
# Modules whose code decides which bytes are moved where. Left out are the text form, the verifier
# and the evaluation of nests, and code of another architecture.
ROOMS = ["apply", "emit", "interval", "kernel", "legalize", "load", "lower", "micro", "nest",
         "normalize", "refine", "schedule", "segments", "walk"]
LEFT_OUT = ["src/nest/text.rs", "src/nest/verify.rs", "src/nest/eval.rs", "src/micro/isa/neon"]
# Number of the first entries of JUDGES that run on all mutants before the other entries run on any.
# These tests notice most mutants in little time.
FIRST = 3
# Test runs that judge a mutant: a test binary and its arguments, in which ROOM stands for the
# module of the mutant.
JUDGES = [
    ("filetests", []),
    ("engines", ["listed_types"]),
    ("lib", ["ROOM::"]),
    ("lib", ["--skip", "ROOM::"]),
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


def listed():
    """Returns the mutants of the modules in ROOMS, sorted by name."""
    version = subprocess.run(["cargo", "mutants", "--version"], capture_output=True, text=True).stdout.strip()
    if version != VERSION:
        sys.exit(f"error: found '{version}', need {VERSION}: cargo install cargo-mutants --version {VERSION.split()[1]} --locked")
    globs = [g for room in ROOMS for g in ("-f", f"src/{room}.rs", "-f", f"src/{room}/**")]
    text = subprocess.run(["cargo", "mutants", "--list", "--json", *globs], check=True, capture_output=True, text=True).stdout
    mutants = [m for m in json.loads(text) if not m["file"].startswith(tuple(LEFT_OUT))]
    return sorted(mutants, key=lambda m: m["name"])


def offset(starts, place):
    """Returns the index of a place in a text whose lines begin at the indices `starts`."""
    return starts[place["line"] - 1] + place["column"] - 1


def body(text, start, end):
    """Returns where the body of the function at [start, end) begins and ends, with its braces.

    The body begins at the first opening brace that is outside of comments, quotes and brackets.
    Without such a brace, the function returns None.
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
    """Puts `mutants` ({number: mutant}) into the text of a file.

    Returns the new text, the numbers of the mutants that cannot be selected at run time because
    they are outside of a body or in a constant function, and by number the first and the last line
    of each other mutant.
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
        # A constant function cannot ask which mutant runs.
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
    """A copy of the sources, into which mutants are put."""

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
        """Writes a file if its text has changed. Otherwise cargo need not compile it again."""
        path = os.path.join(self.root, name)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    return
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def put(self, mutants):
        """Writes all of `mutants` into the tree, and restores the files of earlier mutants.

        Returns the numbers of the mutants that cannot be selected at run time, and by number the
        file and the lines of each other mutant.
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
        """Puts `mutants` of one file, which must not overlap, into its original text.

        Later lines keep their numbers, unless a replacement has more lines than what it replaces.
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
        """Returns the files and lines of errors when the library is compiled with its tests.

        An error without a place is returned as None and its message.
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

        Returns their paths by name and an empty text, or None and the end of cargo's messages.
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


def beside(tree, mutants, wait):
    """Returns the mutants that compile together in one tree.

    An error counts against the mutants whose lines it names; these mutants are left out, and the
    others are compiled again. `wait` returns when the next compilation may start.
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

    Mutants of different functions are compiled at the same time, to save compilations.
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
                # The errors are elsewhere, for example where a changed constant is used. Try each
                # mutant by itself.
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
    """Returns the resident bytes of the processes in process group `group`, for 4 KiB pages."""
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

    It ends as "passed" or "failed", as "timeout" after `limit` seconds, or as "memory" above 6 GiB.
    While paused() returns True, the processes are stopped, and the time does not count.
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
    # A larger sample with the same seed begins with the smaller one.
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
            room = re.split(r"[/.]", m["file"])[1]
            extra = [word.replace("ROOM", room) for word in extra]
            verdict, seconds = judged([binaries[name], "--test-threads", str(args.threads), *extra], tree.root, number, limits[i], paused)
            total += seconds
            if verdict != "passed":
                return write(m, "timeout" if verdict == "timeout" else "caught", f"{name} {' '.join(extra[:2])}: {verdict}", total)
        return write(m, "survived" if which[-1] == len(JUDGES) - 1 else "left", "", total)

    def known_as(m):
        return known.get(m["name"], {}).get("verdict")

    tree = Tree(folder)

    def parted(name, find, among):
        """Returns the mutants of `among` that `find` chooses.

        A file keeps their numbers, so that an interrupted run need not choose them again.
        """
        path = os.path.join(folder, f"{name}-{args.sample}-{args.seed}.json")
        if not os.path.exists(path):
            found = sorted(find(tree, among, wait))
            with open(path, "w") as file:
                json.dump(found, file)
        with open(path) as file:
            return {n: mutants[n] for n in json.load(file)}

    together = parted("together", beside, mutants)
    tree.put(together)
    limits = []
    for which, before in ((range(FIRST), None), (range(FIRST, len(JUDGES)), "left")):
        wait()
        binaries, text = tree.binaries({JUDGES[i][0] for i in which})
        if not binaries:
            sys.exit(f"error: the tests do not compile:\n{text}")
        # The tests must pass without a mutant, and their time then bounds the time with a mutant.
        for name, extra in (JUDGES[i] for i in which):
            wait()
            extra = [word.replace("ROOM", "micro") for word in extra]
            verdict, seconds = judged([binaries[name], "--test-threads", str(args.threads), *extra], tree.root, len(mutants), 3600, paused)
            print(f"no mutant: {name} {' '.join(extra[:2])}: {verdict}, {seconds:.1f} s", flush=True)
            if verdict != "passed":
                sys.exit(f"error: {name} fails without a mutant")
            limits.append(60 + 10 * seconds)
        for number, m in together.items():
            if known_as(m) == before:
                judge(m, number, binaries, limits, which)
    # Build and judge the mutants that do not compile together with the others, each alone.
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
