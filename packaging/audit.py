#!/usr/bin/env python3
"""Checks that programs and libraries load on systems with glibc 2.28, and that exceptions pass through them.

    packaging/audit.py FILE..             prints what is wrong, one line each, and then exits with 1
    packaging/audit.py --same PLAIN FILE  also checks that FILE has the soname and the exports of
                                          PLAIN, which was built without packaging/portable.sh
    packaging/audit.py --self-check       checks that each rule notices a tiny library that breaks it

The rules for a file:

* No version of a symbol is newer than glibc 2.28 or GCC 8, which RHEL 8 has. Weak references with a
  version count too, since the loader looks for their versions as well.
* No undefined symbol lacks a version, unless the reference is weak. The linker does not refuse such
  a symbol in a library, but a loader without the function does.
* There are no packed relative relocations (DT_RELR), which need glibc 2.36.
* The file needs libgcc_s.so.1, takes functions `_Unwind_*` from it and defines none. With an
  unwinder of its own, a C++ exception could not pass from the program through the file.
* It needs no library but those of glibc and GCC.

Only readelf is needed, and a C compiler for the self-check.
"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GLIBC = (2, 28)
GCC = (8,)
NEEDED = re.compile(r"(libc\.so\.6|lib(m|dl|rt|pthread|util)\.so\.\d|ld-linux[-a-z0-9_]*\.so\.\d|libgcc_s\.so\.1)")
# The functions of Python that an extension module finds in the program that loads it.
PYTHON = re.compile(r"_?Py")


class File:
    """What readelf says of a program or library."""

    def __init__(self, path: str):
        command = ["readelf", "--dynamic", "--version-info", "--symbols", "--dyn-syms", "--wide", path]
        done = subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"audit.py: {path} is no program or library: {done.stderr.strip()}")
        text = done.stdout
        self.path = path
        self.needed = re.findall(r"\(NEEDED\) .*\[(.*)\]", text)
        self.soname = "".join(re.findall(r"\(SONAME\) .*\[(.*)\]", text))
        self.relr = "(RELR" in text or "GLIBC_ABI_DT_RELR" in text
        self.versions = set(re.findall(r"Name: (\S+)  Flags:", text)) - {"GLIBC_ABI_DT_RELR"}
        # The columns of a symbol are number, value, size, type, binding, visibility, section, name.
        self.defined: set[str] = set()
        self.exports: set[tuple[str, str, str]] = set()
        self.undefined: set[str] = set()
        self.unwinder = False
        dynamic = False
        for line in text.splitlines():
            if line.startswith("Symbol table"):
                dynamic = "'.dynsym'" in line
            words = line.split()
            if len(words) < 8 or not re.fullmatch(r"\d+:", words[0]):
                continue
            kind, binding, section, name = words[3], words[4], words[6], words[7]
            if section != "UND":
                self.defined.add(name.split("@")[0])
                if dynamic:
                    self.exports.add((name, kind, binding))
            elif dynamic:
                self.unwinder |= name.startswith("_Unwind_") and "@GCC_" in name
                if binding == "GLOBAL" and "@" not in name:
                    self.undefined.add(name)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))


def faults(path: str) -> list[str]:
    """Returns what is wrong with a file, one message for each rule and name."""
    file = File(path)
    is_module = Path(path).name == "lib_ddtc.so"
    found = []
    for version in sorted(file.versions):
        family, _, number = version.rpartition("_")
        limit = {"GLIBC": GLIBC, "GCC": GCC}.get(family)
        if limit is None or not re.fullmatch(r"[0-9.]+", number) or numbers(number) > limit:
            found.append(f"needs version {version} of a symbol: at most GLIBC_2.28 and GCC_8")
    found += [f"needs {name}, which no library defines with a version" for name in sorted(file.undefined) if not (is_module and PYTHON.match(name))]
    if file.relr:
        found.append("has packed relative relocations (DT_RELR), which need glibc 2.36")
    if "libgcc_s.so.1" not in file.needed or not file.unwinder:
        found.append("does not take its unwinder from libgcc_s.so.1")
    found += [f"defines {name}: the unwinder must be that of libgcc_s.so.1" for name in sorted(file.defined) if name.startswith("_Unwind_")]
    found += [f"needs the library {name}" for name in file.needed if not NEEDED.fullmatch(name)]
    return found


def differences(plain: str, path: str) -> list[str]:
    """Returns where the soname and the exports of two builds of one library differ."""
    before, after = File(plain), File(path)
    found = [f"has the soname {after.soname!r}, and {plain} has {before.soname!r}"] if after.soname != before.soname else []
    for name in sorted(before.exports ^ after.exports):
        found.append(f"{'exports' if name in after.exports else 'does not export'} {name[0]} ({name[1]}, {name[2]}), unlike {plain}")
    return found


GOOD = "extern void _Unwind_Resume(void *);\nvoid tiny(void *p) { _Unwind_Resume(p); }\n"


def self_check() -> None:
    """Builds a library that is right and one that breaks each rule, and checks the verdicts."""
    with tempfile.TemporaryDirectory() as folder:

        def built(name: str, source: str, *options: str) -> str:
            code, out = Path(folder, f"{name}.c"), Path(folder, f"{name}.so")
            code.write_text(source)
            start = ["cc", "-shared", "-fPIC", "-nostartfiles", "-Wl,-soname,tiny.so", "-o", str(out), str(code), "-Wl,--no-as-needed"]
            subprocess.run([*start, *(options or ("-lgcc_s",))], check=True)
            return str(out)

        # A library with a symbol of a version that is too new. It need not be glibc.
        Path(folder, "map").write_text("GLIBC_2.29 { fresh; };\n")
        newer = built("newer", "void fresh(void) {}\n", f"-Wl,--version-script={folder}/map")
        Path(folder, "private-map").write_text("GLIBC_PRIVATE { hidden; };\n")
        private = built("private", "void hidden(void) {}\n", f"-Wl,--version-script={folder}/private-map")
        packed = "static int at;\nint *pointers[64] = { " + "&at, " * 64 + "};\n"
        good = built("good", GOOD)
        cases = [
            ("GLIBC_2.29", built("version", GOOD + "void fresh(void);\nvoid use(void) { fresh(); }\n", "-lgcc_s", newer)),
            ("GLIBC_PRIVATE", built("inner", GOOD + "void hidden(void);\nvoid use(void) { hidden(); }\n", "-lgcc_s", private)),
            ("needs PyErr_Clear,", built("python", GOOD + "void PyErr_Clear(void);\nvoid use(void) { PyErr_Clear(); }\n")),
            ("needs absent,", built("absent", GOOD + "void absent(void);\nvoid use(void) { absent(); }\n")),
            ("DT_RELR", built("packed", GOOD + packed, "-lgcc_s", "-Wl,-z,pack-relative-relocs", "-lc")),
            ("does not take its unwinder", built("alone", "void tiny(void) {}\n")),
            ("defines _Unwind_Resume", built("own", "__attribute__((visibility(\"hidden\"))) void _Unwind_Resume(void *p) {}\n" + GOOD)),
            ("needs the library", built("library", GOOD, "-lgcc_s", newer)),
        ]
        assert not faults(good), faults(good)
        for words, path in cases:
            assert any(words in fault for fault in faults(path)), f"{words}: {faults(path)}"
        assert not differences(good, good)
        more = built("more", GOOD + "void more(void) {}\n")
        assert differences(good, more) and differences(more, good) and differences(good, newer)
    print("audit.py: each rule notices a library that breaks it")


def main() -> None:
    arguments = sys.argv[1:]
    if arguments == ["--self-check"]:
        return self_check()
    plain = None
    if arguments[:1] == ["--same"] and len(arguments) == 3:
        plain, arguments = arguments[1], arguments[2:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit(__doc__)
    wrong = 0
    for path in arguments:
        for fault in faults(path) + (differences(plain, path) if plain else []):
            print(f"audit.py: {path} {fault}", file=sys.stderr)
            wrong += 1
    if wrong:
        sys.exit(1)
    print(f"audited: {' '.join(Path(path).name for path in arguments)}")


if __name__ == "__main__":
    main()
