"""`ofa-tui doctor`: what a run on the GPU needs, whether it is here, and how to get it."""

from __future__ import annotations

import argparse

from ofa_tui.engine import cuda_doctor
from ofa_tui.errors import OfaError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gpu", type=int, default=0, metavar="N", help="number of the GPU (default: 0)")


def run(args: argparse.Namespace) -> int:
    """0 where a run on the GPU is possible, else 1."""
    if args.gpu < 0:
        raise OfaError(f"--gpu {args.gpu} cannot be; the first GPU is 0")
    possible = True
    for check in cuda_doctor.examine(args.gpu):
        print(check.line(), flush=True)
        possible = possible and (check.ok or not check.required)
    print("the GPU can be used: --backend cuda" if possible else "runs use the CPU: --backend host")
    return 0 if possible else 1
