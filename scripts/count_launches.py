#!/usr/bin/env python3
"""Runs ofa-tui under CUPTI, through PyTorch's profiler, and writes what the GPU was given to do.

    scripts/count_launches.py OUT.json [OPTIONS OF OFA-TUI ...]

OUT.json gets how often each kernel was launched and how many fills and copies there were. Needs PyTorch
(`pip install torch==2.13.0`) in the interpreter that has ofa-tui's packages.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui import cli

NAMED = {"gpu_memset": "fills", "gpu_memcpy": "copies"}


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """What CUPTI saw inside, filled in at the end: launches by kernel, `fills`, `copies`."""
    import torch

    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    counts: Counter[str] = Counter()
    activities = [torch.profiler.ProfilerActivity.CUDA, torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities) as profiler:
        yield counts
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        for event in json.loads(path.read_text())["traceEvents"]:
            if event.get("cat") == "kernel" or event.get("cat") in NAMED:
                counts[NAMED.get(event["cat"], event["name"])] += 1


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    out = Path(sys.argv[1])
    with counted() as counts:
        code = cli.main(sys.argv[2:])
    out.write_text(json.dumps(counts) + "\n")
    print(", ".join(f"{name} {count}" for name, count in counts.items()), file=sys.stderr)
    return code


if __name__ == "__main__":
    raise SystemExit(main())
