"""The machine that figures and results are from."""

import os
import platform
import re
from pathlib import Path


def machine():
    text = Path("/proc/cpuinfo").read_text()
    # Of other processors than x86-64 the kernel tells less.
    field = lambda name: (re.search(rf"^{name}\s*: (.*)$", text, re.M) or ["", "?"])[1]
    return (f"{field('model name')}, family {field('cpu family')} model {field('model')} stepping {field('stepping')}, "
            f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Linux {platform.release()}")
