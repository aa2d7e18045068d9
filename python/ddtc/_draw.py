"""Draws datatypes, by running the command that is part of the package."""

import base64
import html
import subprocess
import tempfile
from pathlib import Path

from .__main__ import PROGRAM

# Maximum size in bytes of an argument of a command. Linux limits it to 128 KiB including the NUL.
_MAX_ARGUMENT_BYTES = 128 * 1024 - 1


class Drawing:
    """A picture of a datatype, shown as characters when it is printed and as SVG in a notebook."""

    def __init__(self, text: str, count: int) -> None:
        if len(text.encode()) > _MAX_ARGUMENT_BYTES:
            raise ValueError(f"draw: the datatype's text has {len(text)} characters: must have at most {_MAX_ARGUMENT_BYTES}")
        self._arguments = ["draw", text, f"--count={count}"]
        # Text for people who cannot see the picture. It has at most 200 characters of the
        # datatype's text.
        self._words = f"memory of {count} x {text[:200]}"

    def _run(self, *more: str) -> str:
        done = subprocess.run([PROGRAM, *self._arguments, *more], capture_output=True, text=True)
        if done.returncode != 0:
            raise ValueError(done.stderr.strip().removeprefix("error: "))
        return done.stdout

    def __str__(self) -> str:
        return self._run("--colour=never")

    __repr__ = __str__

    @property
    def svg(self) -> str:
        """The picture as SVG."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "picture.svg"
            self._run("--output", str(file))
            return file.read_text()

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        # Embed the SVG as an image, so that it shrinks if the notebook is narrower than the
        # picture. Inline SVG would not shrink, and the right part of the picture, which has the
        # labels, would be cut off.
        data = base64.b64encode(self.svg.encode()).decode()
        return f'<img alt="{html.escape(self._words)}" style="max-width: 100%; height: auto" src="data:image/svg+xml;base64,{data}">'

    def save(self, path: str) -> None:
        """Writes the picture to a file whose name ends in .svg."""
        self._run("--output", str(path))


def draw(text: str, count: int) -> Drawing:
    """Implements Datatype.draw.

    The picture is drawn here for a test, and the result is not used. If it cannot be drawn, the
    error is raised here and not later, when the picture is shown.
    """
    drawing = Drawing(text, count)
    str(drawing)
    return drawing
