"""An engine that tells by itself as it is polled, and whose text after a prompt anybody can compute."""

from __future__ import annotations

import hashlib
import random

from scripted_engine import ScriptedEngine, Stream

from ofa_tui.engine.protocol import Event, Snapshot

LETTERS = "abcdefgh .e"
CONTEXT = 64


def told(prompt: str, position: int) -> tuple[str, bool]:
    """The likeliest letter at a position after a prompt, and whether it is the story's last."""
    digest = hashlib.blake2b(f"{position} {prompt}".encode(), digest_size=2).digest()
    return LETTERS[digest[0] % len(LETTERS)], digest[1] < 8


class TellingEngine(ScriptedEngine):
    def __init__(self, sampling: Event, streams: int, telling: int, seed: int) -> None:
        super().__init__(sampling, streams, telling, CONTEXT)
        self._chance = random.Random(seed)

    def letter(self, stream: Stream) -> tuple[str, bool]:
        likeliest = stream.sampling[1][0] == 0
        return told(stream.begun_with if likeliest else f"{stream.sampling} {stream.begun_with}", stream.position)

    def poll(self, between: int = 0) -> Snapshot:
        for _ in range(self._chance.choice([0, 1, 2, 5])):
            self.serve([False])
        return super().poll(self._chance.choice([0, 0, 1]))

    def start(self) -> None: ...

    def pause(self, paused: bool) -> None: ...

    def stop(self, timeout_s: float = 10.0) -> None: ...
