#!/usr/bin/env python3
"""Plays damaged WADs and demos through reader, packer and engine under AddressSanitizer and UBSan.

    scripts/fuzz_doom.py                       all: 20,000 WADs, 5,000 demos, 2,000 WADs with a scripted player in them
    scripts/fuzz_doom.py --first 30000         other ones
    scripts/fuzz_doom.py --wads 1 --demos 0 --players 0 --first 1234 --keep .   one case, and its file if it fails

Each case must be played or refused with one sentence. Ends with 1 where one crashes, ends in a traceback, or does not
end; the failing seeds are printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.errors import OfaError
from ofa_tui.progress import Progress
from tests.doom import fuzz_cases
from tests.doom.broken_maps import BROKEN_MAPS
from tests.doom.fuzzing import DEADLINE_S, Score, compile_sanitized, run_cases, sanitizer_environment

REASONS = 12


def report_to(progress: Progress) -> Callable[[Score], None]:
    """Says on stderr how far it is, and of each failure when it comes."""
    said = 0

    def on_case(score: Score) -> None:
        nonlocal said
        for failure in score.failures[said:]:
            progress.message(f"FAILED {failure.kind} {failure.seed}\n      {failure.what}")
        said = len(score.failures)
        progress.update(score.cases, f"{said} failed")

    return on_case


def print_score(score: Score, verbose: bool) -> None:
    refused = sum(score.refused.values())
    print(f"{score.cases} x {score.kind}: {score.played} played, {refused} refused, {len(score.failures)} failed; "
          f"the slowest took {score.slowest_ms / 1e3:.1f} s (seed {score.slowest})")
    for reason, count in score.refused.most_common(None if verbose else REASONS):
        print(f"  {count:6} {reason}")
    for failure in score.failures:
        print(f"  FAILED {failure.kind} {failure.seed}\n      {failure.what}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wads", type=int, default=20_000, help="damaged WADs")
    parser.add_argument("--demos", type=int, default=5_000, help="damaged demos")
    parser.add_argument("--players", type=int, default=2_000, help="damaged WADs that a scripted player plays in")
    parser.add_argument("--first", type=int, default=0, help="seed of the first case of each kind")
    parser.add_argument("--deadline", type=float, default=DEADLINE_S, metavar="S", help="for one case")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the files of the failing cases there")
    parser.add_argument("--library", type=Path, metavar="FILE", help="the engine, compiled with sanitizers before")
    parser.add_argument("--verbose", action="store_true", help="print every reason for a refusal")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        try:
            environment = sanitizer_environment()
            library = options.library or compile_sanitized(Path(folder))
        except OfaError as error:
            print(error, file=sys.stderr)
            return 2
        ranges = [("broken", 0, len(BROKEN_MAPS)), ("wad", options.first, options.first + options.wads),
                  ("demo", options.first, options.first + options.demos),
                  ("player", options.first, options.first + options.players)]
        for kind, first, end in ranges:
            with Progress(kind, end - first) as progress:
                score = run_cases(library, environment, kind, first, end, report_to(progress), options.deadline)
            print_score(score, options.verbose)
            failed = failed or bool(score.failures)
            if options.keep:
                for failure in score.failures:
                    print(f"  kept {fuzz_cases.keep(kind, failure.seed, options.keep)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
