"""The held-out loss of a checkpoint: the sweep that ends a run, made alone, by the same kernel on this processor."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ofa_tui.checkpoint.checkpoint import Checkpoint
from ofa_tui.data.tokenizers import Tokenizer
from ofa_tui.engine.config import RunConfig, TrainState
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.library import KernelLibrary
from ofa_tui.errors import AbortedError, OfaError
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.proved import proof_of

POLL_S = 0.02
MOST_EXPONENT = 700.0
"""A perplexity beyond e^700 is no number that JSON has."""
OnBatch = Callable[[int, int], None]
"""Called with the batches done and their number."""


@dataclass(frozen=True)
class Measured:
    step: int
    """Steps that the weights had."""
    loss: float
    """Nats a token, over every token but the text's first."""
    tokens: int
    bytes: int | None
    """Of these tokens as UTF-8 text, the ends of texts not counted; None where a token has none of its own."""

    @property
    def bits_per_byte(self) -> float | None:
        return self.loss * self.tokens / math.log(2) / self.bytes if self.bytes else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return dataclasses.asdict(self) | {
            "bits_per_token": self.loss / math.log(2),
            "bits_per_byte": self.bits_per_byte,
            "perplexity": math.exp(self.loss) if self.loss < MOST_EXPONENT else None,
        }

    def text(self) -> str:
        parts = [f"step {self.step}: {self.loss:.6f} nats a token over {self.tokens:,} tokens",
                 f"{self.loss / math.log(2):.4f} bits a token"]
        if self.bits_per_byte is not None:
            parts.append(f"{self.bits_per_byte:.4f} bits a byte")
        return ", ".join(parts)


def evaluate(checkpoint: Checkpoint, tokens: np.ndarray, library: KernelLibrary, threads: int,
             on_batch: OnBatch | None = None) -> Measured:
    """The mean loss over every non-overlapping window of `tokens`, i4 [n], n at least 2.

    The same windows in the same batches as in a run: the same number, bit for bit, where the run was one of this
    processor; a GPU's rounds matrices to bf16 and reads a little differently. Raises OfaError.
    """
    if len(tokens) < 2:
        raise OfaError("the text to measure on has fewer than two tokens; give more with --data")
    steps = max(checkpoint.step, 1)
    config = RunConfig(
        preset=checkpoint.identity.preset,
        model=checkpoint.model,
        train=dataclasses.replace(checkpoint.train, steps=steps),
        train_tokens=np.zeros(checkpoint.model.context + 1, np.int32),
        valid_tokens=tokens,
        tokenizer=checkpoint.tokenizer,
        sms=(threads, 0, 0),
        first_step=steps,
        sweep_due=True,
        initial=TrainState.fresh(checkpoint.weights()),
    )
    config.check()
    programs = compile_programs(config.model, config.train, games=0)
    proof_of(programs)
    engine = HostEngine(programs, config, library=library)
    schedule = engine.memory.schedule
    try:
        engine.start()
        while not (snapshot := engine.poll()).sweeps:
            if snapshot.state in ("aborted", "stopped"):
                raise AbortedError(snapshot.message.partition("\n")[0] or "the kernel stopped itself")
            if on_batch:
                on_batch(int(engine.look()["sweep_batches_done"]) - schedule.first_batch, schedule.final_batches)
            time.sleep(POLL_S)
    finally:
        engine.stop(timeout_s=0.1)
    sweep = snapshot.sweeps[0]
    return Measured(checkpoint.step, sweep.loss, sweep.tokens, count_bytes(checkpoint.tokenizer, tokens[1:]))


def count_bytes(tokenizer: Tokenizer, tokens: np.ndarray) -> int | None:
    """Bytes that the tokens stand for, or None where one's text depends on its neighbours."""
    total = 0
    for token, count in zip(*np.unique(tokens, return_counts=True), strict=True):
        piece = tokenizer.token_bytes(int(token))
        if piece is None:
            return None
        total += len(piece) * int(count)
    return total
