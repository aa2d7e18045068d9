"""Describes the machine on which times and other results were measured."""

import os
import platform
import re
from pathlib import Path


def machine():
    """Returns a line that names the processor, the number of cores, the load and the kernel."""
    text = Path("/proc/cpuinfo").read_text()
    # On architectures other than x86-64, /proc/cpuinfo has fewer fields. A missing one becomes `?`.
    field = lambda name: (re.search(rf"^{name}\s*: (.*)$", text, re.M) or ["", "?"])[1]
    return (f"{field('model name')}, family {field('cpu family')} model {field('model')} stepping {field('stepping')}, "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Linux {platform.release()}")
