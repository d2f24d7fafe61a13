"""`ofa-tui eval CHECKPOINT`: its loss on held-out text, over every window, on this processor."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.checkpoint.checkpoint import Checkpoint, describe_tokenizer, describe_tokens, find_checkpoint
from ofa_tui.checkpoint.evaluate import Measured, evaluate
from ofa_tui.console import say
from ofa_tui.data.corpus import read_documents
from ofa_tui.data.prepare import corpus_spec, prepare
from ofa_tui.data.tokenizers import bpe_size, load_tokenizer
from ofa_tui.engine.library import load_kernel
from ofa_tui.errors import OfaError
from ofa_tui.presets import preset
from ofa_tui.progress import Progress
from ofa_tui.settings import named_path
from ofa_tui.signals import signals_raise


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=named_path, metavar="CHECKPOINT",
                        help="a checkpoint, or a folder: then its newest whole one")
    parser.add_argument("--data", type=named_path, action="append", default=[], metavar="FILE",
                        help="text to measure on, all of it, repeatable (default: what its own run held out)")
    parser.add_argument("--tokenizer", default="", metavar="T",
                        help="refuse to measure unless this is the checkpoint's tokenizer, which is used in any case")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, metavar="N",
                        help="virtual SMs (default: one per core); the result is the same with any number")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")


def run(args: argparse.Namespace) -> int:
    if not 1 <= args.threads <= abi.MAX_SMS:
        raise OfaError(f"--threads {args.threads} cannot be; choose 1 to {abi.MAX_SMS}")
    checkpoint, broken = find_checkpoint(args.checkpoint)
    for sentence in broken:
        say(f"ofa-tui: {sentence.partition(';')[0]}; measuring an older one")
    _check_tokenizer(checkpoint, args.tokenizer)
    with signals_raise():
        tokens = _tokens_of(checkpoint, args.data) if args.data else _held_out(checkpoint)
        library = load_kernel(lambda seconds: None)
        progress = Progress("measuring")

        def on_batch(done: int, batches: int) -> None:
            progress.total = batches
            progress.update(done, f"batch {done}/{batches}")

        try:
            measured = evaluate(checkpoint, tokens, library, args.threads, on_batch)
        except MemoryError:
            raise OfaError(f"{checkpoint.path} needs more memory to be measured than there is") from None
        progress.close(f"{measured.tokens:,} tokens")
    print(json.dumps(_object(checkpoint, tokens, measured)) if args.json else measured.text())
    return 0


def _object(checkpoint: Checkpoint, tokens: np.ndarray, measured: Measured) -> dict[str, object]:
    return {"checkpoint": str(checkpoint.path), "preset": checkpoint.identity.preset,
            "trained_on": checkpoint.identity.target, "text": describe_tokens(tokens), **measured.as_dict()}


def _check_tokenizer(checkpoint: Checkpoint, wanted: str) -> None:
    """A vocabulary that is learned from a corpus is known by its size alone."""
    if os.path.exists(wanted) and not os.path.isfile(wanted) and not os.path.isdir(wanted):
        raise OfaError(f"--tokenizer {wanted} is no regular file; give a tokenizers JSON file")
    theirs, size = checkpoint.identity.tokenizer, bpe_size(wanted) if wanted else None
    if size is not None:
        same, ours = theirs.startswith(f"{wanted} "), wanted
    else:
        ours = describe_tokenizer(load_tokenizer(wanted)) if wanted else theirs
        same = theirs.partition(" of ")[2] == ours.partition(" of ")[2]
    if not same:
        raise OfaError(f"{checkpoint.path} has the tokenizer {theirs} and --tokenizer is {ours}; leave the option out")


def _tokens_of(checkpoint: Checkpoint, paths: list[Path]) -> np.ndarray:
    """i4 [n]: the ids of all documents of these files."""
    for path in paths:
        if os.path.exists(path) and not os.path.isfile(path):
            raise OfaError(f"{path} is no regular file; give --data text files one by one")
    documents = [document for path in paths for document in read_documents(path)[0]]
    return checkpoint.tokenizer.encode_documents(documents)


def _held_out(checkpoint: Checkpoint) -> np.ndarray:
    """i4 [n]: what the checkpoint's run held out, prepared as the run did."""
    options = checkpoint.options()
    for path in [*options["data"], *options["valid"]]:
        if not os.path.exists(path):
            raise OfaError(f"{checkpoint.path} is of a run on {path}, which is not there; give a text with --data")
    spec = corpus_spec(preset(options["preset"]), options["data"], options["valid"], options["tokenizer"],
                       options["steps"])
    tokens = prepare(spec, Progress("preparing the text")).valid_tokens
    if describe_tokens(tokens) != checkpoint.identity.held_out_text:
        raise OfaError(f"{checkpoint.path} was measured on held-out text {checkpoint.identity.held_out_text} and the "
                       f"text found now is {describe_tokens(tokens)}; give a text with --data")
    return tokens
