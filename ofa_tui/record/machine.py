"""What a run record says about the machine: nothing that names its owner or its place in a network."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np


def describe_machine() -> dict[str, str | int]:
    return {
        "system": f"{platform.system()} {platform.release()}",
        "architecture": platform.machine(),
        "processor": processor_name(),
        "cores": _usable_cores(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def processor_name() -> str:
    """The processor's model as the system names it."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
