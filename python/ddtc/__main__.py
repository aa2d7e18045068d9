"""Runs the command `ddtc`, which is part of the package."""

import os
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "bin"
PROGRAM = FOLDER / "ddtc"


def main() -> None:
    """Replaces this process by the command `ddtc`, with the same arguments."""
    try:
        os.execv(PROGRAM, ["ddtc", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"error: {PROGRAM}: {error.strerror}: install the package again from its wheel")


if __name__ == "__main__":
    main()
