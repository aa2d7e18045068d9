#!/usr/bin/env python3
"""Prints a random sample of comments, to be judged by somebody who has not read the code.

    tests/comment-sample.py FOLDER.. [-n 60] [--seed S] [--words 8] [--blind] [--safety] [--docs]
    tests/comment-sample.py FOLDER.. --count

Each sample is one comment block (adjacent comment lines joined) with its place, the enclosing
function if there is one, and the three lines of code that follow it. A docstring of Python is
printed with the first line of what it documents. Rust, C, Fortran, Python and shell files are read,
if git tracks them. Blocks shorter than --words words are left out, because one-word field
comments are always clear. Comments that begin with "SAFETY" are left out
unless --safety asks for those alone. With --docs, paragraphs of Markdown files are sampled instead,
with the heading above each. --blind leaves the places out. --count prints no sample, only the
number of blocks and the share of those shorter than --words.

Hand the output to a reader who is fluent in English and in the field, but has not seen this
project, and ask for each sample: is it clear at once, clear only at a second reading, or not clear?
The last two are to be rewritten. docs/STYLE.md, "How to check", describes a whole reading.
"""
import argparse
import ast
import random
import re
import subprocess
from pathlib import Path

MARKS = {
    ".rs": r"\s*(//[!/]?)(?!/)\s?(.*)",
    ".c": r"\s*(//|/?\*+)(?!/)\s?(.*)",
    ".h": r"\s*(//|/?\*+)(?!/)\s?(.*)",
    ".cpp": r"\s*(//|/?\*+)(?!/)\s?(.*)",
    ".f90": r"\s*(!)(?!\$)\s?(.*)",
    ".py": r"\s*(#)(?!!)\s?(.*)",
    ".pyi": r"\s*(#)(?!!)\s?(.*)",
    ".sh": r"\s*(#)(?!!)\s?(.*)",
}
TRAILING = {".rs": r"[;{},)]\s+// (.*)$", ".c": r"[;{},)]\s+(?://|/\*) ?(.*?)(?:\*/)?$", ".h": r"[;{},)]\s+(?://|/\*) ?(.*?)(?:\*/)?$"}
FUNCTION = re.compile(r"\b(?:fn|def|function|subroutine)\s+(\w+)")
SAFETY = re.compile(r"(SAFETY\b|# Safety\b)")


def comment_blocks(path: Path):
    """Yields each block of adjacent comment lines of a source file.

    A block is yielded as a tuple of its first line number, its text, the code that follows it, and
    the name of the function that encloses it.
    """
    mark, trailing = re.compile(MARKS[path.suffix]), TRAILING.get(path.suffix)
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    first, kind, text, function, fenced = None, None, [], "", False
    inside = False  # of a block comment of C whose end has not been seen
    for number, line in enumerate([*lines, ""], 1):
        match = mark.match(line)
        # In C, a line that begins with `*` is a comment only inside of a block comment. Outside of
        # one it is code, such as an assignment through a pointer.
        if match and match[1].startswith("*") and not inside:
            match = None
        if inside or (match and (kind is None or match[1] == kind)):
            first, kind = first or number, kind or match[1]
            words = match[2] if match else line
            fence = words.strip().startswith("```")
            if not fenced and not fence:
                text.append(words.strip().removesuffix("*/").strip())
            fenced ^= fence
            inside = kind.startswith("/*") and "*/" not in line
            continue
        if text:
            after = [l.strip() for l in lines[number - 1 : number + 8] if l.strip() and not l.strip().startswith("#[")]
            yield first, " ".join(t for t in text if t), after[:3], function
        first, kind, text, fenced = None, None, [], False
        if match:
            first, kind, text = number, match[1], [match[2].strip().removesuffix("*/").strip()]
            inside = kind.startswith("/*") and "*/" not in line
            continue
        if found := FUNCTION.search(line):
            function = found[1]
        if trailing and (found := re.search(trailing, line)):
            yield number, found[1].strip(), [line.strip()], function


def docstrings(path: Path):
    """Yields each docstring of a Python file, in the form in which comment_blocks yields comments.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            if text := ast.get_docstring(node):
                name = getattr(node, "name", "")
                head = [lines[node.lineno - 1].strip()] if name else []
                yield node.body[0].lineno, " ".join(text.split()), head, name


def paragraphs(path: Path):
    """Yields each paragraph of prose in a Markdown file: its line number, its text and its heading.

    Tables and blocks of code are skipped.
    """
    number, fenced, heading = 1, False, ""
    for part in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        fences = part.count("```")
        if part.lstrip().startswith("#") and not fenced:
            heading = part.strip().splitlines()[0]
        elif not fenced and fences == 0 and not part.startswith("    ") and not part.lstrip().startswith(("|", "<")):
            yield number, " ".join(part.split()), [heading], ""
        fenced ^= fences % 2 == 1
        number += part.count("\n") + 2


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", help="folders or files to sample")
    parser.add_argument("-n", type=int, default=60, help="number of samples [%(default)s]")
    parser.add_argument("--seed", type=int, default=None, help="seed of the choice [a random one]")
    parser.add_argument("--words", type=int, default=8, help="minimum number of words of a sample [%(default)s]")
    parser.add_argument("--blind", action="store_true", help="leave out the places of the samples")
    parser.add_argument("--safety", action="store_true", help='sample only comments that begin with "SAFETY"')
    parser.add_argument("--docs", action="store_true", help="sample paragraphs of Markdown files instead of comments")
    parser.add_argument("--count", action="store_true", help="print only how many blocks there are")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    names = subprocess.check_output(["git", "ls-files", *options.folders], text=True).split("\n")
    found, short = [], 0
    for path in map(Path, filter(None, names)):
        if path.suffix != ".md" if options.docs else path.suffix not in MARKS:
            continue
        if options.docs:
            blocks = paragraphs(path)
        else:
            blocks = [*comment_blocks(path), *(docstrings(path) if path.suffix.startswith(".py") else [])]
        for number, text, context, function in blocks:
            if bool(SAFETY.match(text)) != options.safety:
                continue
            if len(text.split()) >= options.words:
                found.append((str(path), number, text, context, function))
            else:
                short += 1
    if options.count:
        total = len(found) + short
        share = 100 * short / max(total, 1)
        print(f"{total} blocks, {share:.0f} % of them shorter than {options.words} words")
        return
    sample = random.Random(seed).sample(found, min(options.n, len(found)))
    print(f"{len(found)} blocks of {options.words} words and more ({short} shorter ones), seed {seed}; {len(sample)} of them:\n")
    for index, (name, number, text, context, function) in enumerate(sorted(sample), 1):
        place = f"{index}." if options.blind else f"{index}. {name}:{number}" + (f" in {function}" if function else "")
        print(place + f"\n  {text}")
        for line in context:
            print(f"  -> {line}")
        print()


if __name__ == "__main__":
    main()
