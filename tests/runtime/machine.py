"""Describes the machine on which figures and results were made."""

import os
import platform
import re
from pathlib import Path


def machine():
    """Returns a line about the processor, the number of cores, the load and the kernel."""
    text = Path("/proc/cpuinfo").read_text()
    # On architectures other than x86-64 the kernel says less, so a field may be missing.
    field = lambda name: (re.search(rf"^{name}\s*: (.*)$", text, re.M) or ["", "?"])[1]
    return (f"{field('model name')}, family {field('cpu family')} model {field('model')} stepping {field('stepping')}, "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Linux {platform.release()}")
