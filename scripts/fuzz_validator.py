#!/usr/bin/env python3
"""Puts mutants of small programs to the validator and to an independent oracle, and prints a table.

    scripts/fuzz_validator.py                             10,000 mutants of all classes and targets
    scripts/fuzz_validator.py --mutants 500 --seed 7      other ones
    scripts/fuzz_validator.py --target sm90 --only "wrong lane" --verbose

A class counts if the oracle shows 90 % of its mutants wrong. Ends with 1 if the validator accepts a mutant that the
oracle shows wrong, if it refuses one that is out of order only because of the names of its operands, or if a class does
not count.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from ofa_tui.progress import Progress
from tests.program.mutants import CLASSES
from tests.program.trials import Score, try_mutants


def print_score(score: Score, verbose: bool) -> None:
    mark = "" if score.counts else "  does not count"
    print(f"{score.target:5} {score.name:30} {score.made:6} {score.shown:6} {score.accepted:9} "
          f"{len(score.wrongly_accepted):9} {len(score.not_shown):9}{mark}", flush=True)
    for line in score.wrongly_accepted:
        print(f"      ACCEPTED: {line}")
    for line in score.order_not_seen:
        print(f"      ONLY BY NAME: {line}")
    if verbose:
        print(f"      refused by: {', '.join(f'{check} {n}' for check, n in score.checks.most_common())}")
        for line in score.not_shown:
            print(f"      not shown: {line}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mutants", type=int, default=10_000, help="in all; divided evenly among the classes")
    parser.add_argument("--seed", type=int, default=0, help="number of the first mutant of each class")
    parser.add_argument("--target", choices=("host", "sm90"), help="only the programs of this target")
    parser.add_argument("--only", choices=CLASSES, metavar="CLASS", help="only this class")
    parser.add_argument("--verbose", action="store_true", help="print what refused and what was not shown wrong")
    options = parser.parse_args()
    chosen = [(name, target) for name, known in CLASSES.items() for target in known.targets
              if options.target in (None, target) and options.only in (None, name)]
    if not chosen:
        parser.error(f"the programs of {options.target} have no mutants of class {options.only!r}")
    each = max(1, options.mutants // len(chosen))
    print(f"{'':5} {'class':30} {'made':>6} {'wrong':>6} {'accepted':>9} {'both':>9} {'refused,':>9}")
    print(f"{'':5} {'':30} {'':6} {'':6} {'':9} {'':9} {'not shown':>9}")
    scores, done = [], itertools.count(1)
    with Progress("mutants", each * len(chosen)) as progress:
        for name, target in chosen:
            seeds = range(options.seed, options.seed + each)
            scores.append(try_mutants(name, target, seeds, lambda: progress.update(next(done))))
            progress.end()
            print_score(scores[-1], options.verbose)
    wrongly_accepted = sum(len(score.wrongly_accepted) for score in scores)
    print(f"{sum(score.made for score in scores)} mutants, {sum(score.shown for score in scores)} shown wrong, "
          f"{wrongly_accepted} of them accepted; {sum(len(score.not_shown) for score in scores)} refused and not shown")
    by_name = sum(len(score.order_not_seen) for score in scores)
    print(f"{by_name} out of order and refused by nothing but names")
    return 1 if wrongly_accepted or by_name or not all(score.counts for score in scores) else 0


if __name__ == "__main__":
    raise SystemExit(main())
