"""A process that runs fuzz cases one after another and says of each how it ended.

    python -m tests.doom.fuzz_worker LIBRARY KIND FIRST END

LIBRARY is the engine, compiled. On stdout a line for each case: its seed when it begins, then a tab, the milliseconds,
a tab, and `played`, or why it was refused. A case that raises anything ends the process with its traceback.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from unittest import mock

from ofa_tui.engine import compiler
from tests.doom.fuzz_cases import run_case


def main(library: str, kind: str, first: int, end: int) -> None:
    # What NumPy would only warn of (a number that does not fit) is a mistake too.
    warnings.simplefilter("error")
    with mock.patch.object(compiler, "build", return_value=Path(library)):
        for seed in range(first, end):
            print(seed, end="", flush=True)
            started = time.perf_counter()
            outcome = run_case(kind, seed)
            print(f"\t{1e3 * (time.perf_counter() - started):.1f}\t{outcome}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
