"""What a run came to, in one object: `summary.json`."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ofa_tui.engine.protocol import ServedToken, Snapshot, StepLoss, SweepLoss

LAST_LOSSES = 20
SAMPLE_CHARACTERS = 2_000


@dataclass
class Tally:
    """Counts kept while a run goes on (or while its record is read)."""

    tokens_per_step: int
    steps: int = 0
    """Losses seen. Of them the first and the newest are kept: a run may go on for days."""
    first_loss: StepLoss | None = None
    last_losses: deque[StepLoss] = field(default_factory=lambda: deque(maxlen=LAST_LOSSES))
    sweeps: list[SweepLoss] = field(default_factory=list)
    tokens_served: int = 0
    stories: dict[int, str] = field(default_factory=dict)
    """Text of the newest stories by their numbers, at least SAMPLE_CHARACTERS where there are so many."""
    _newest: dict[int, int] = field(default_factory=dict)
    """The newest story of each stream."""
    versions_served: tuple[int, int] | None = None
    first_frame: tuple[int, float] | None = None
    """Number and seconds."""
    last_frame: tuple[int, float] | None = None
    frames_kept: int = 0
    events_applied: int = 0
    seconds: float = 0.0

    def add(self, snapshot: Snapshot) -> None:
        self.add_losses(snapshot.losses)
        self.sweeps += snapshot.sweeps
        for token in snapshot.served:
            self.add_served(token)
        for frame in snapshot.frames:
            self.add_frame(frame.number, snapshot.seconds)
        self.events_applied += len(snapshot.applied)
        self.seconds = max(self.seconds, snapshot.seconds)

    def add_losses(self, losses: Sequence[StepLoss]) -> None:
        if losses and self.first_loss is None:
            self.first_loss = losses[0]
        self.steps += len(losses)
        self.last_losses.extend(losses)

    @property
    def served_text(self) -> str:
        """The newest SAMPLE_CHARACTERS of the newest stories, a blank line between two."""
        return "\n\n".join(text for text in self.stories.values() if text)[-SAMPLE_CHARACTERS:]

    def add_served(self, token: ServedToken) -> None:
        self.tokens_served += 1
        if self._newest.get(token.stream) != token.story:
            self._newest[token.stream] = token.story
            self._forget_stories()
        self.stories[token.story] = self.stories.get(token.story, "") + token.text
        oldest = self.versions_served[0] if self.versions_served else token.version
        self.versions_served = (oldest, token.version)

    def _forget_stories(self) -> None:
        """Those that are over and before the newest SAMPLE_CHARACTERS."""
        room = SAMPLE_CHARACTERS
        for number in reversed(list(self.stories)):
            if room <= 0 and number not in self._newest.values():
                del self.stories[number]
            else:
                room -= len(self.stories[number])

    def add_frame(self, number: int, seconds: float) -> None:
        # Frames that came before the first look are seen together: the rate begins with the last of them.
        if self.first_frame is None or seconds == self.first_frame[1]:
            self.first_frame = (number, seconds)
        self.last_frame = (number, seconds)
        self.frames_kept += 1


def summarise(tally: Tally, exit_reason: str, message: str = "") -> dict[str, Any]:
    """Plain values. What a run did not do (no frame, no sweep) is None.

    `frames_per_s` is over the whole run, from the first frame to the last; `tokens_per_s` counts training tokens from
    the launch, or the first step of a record that began later, to the last step; `held_out_loss` is the last sweep over
    every held-out window, else the last sweep.
    """
    last = [entry.loss for entry in tally.last_losses]
    held_out = _held_out(tally.sweeps)
    frames = tally.last_frame[0] - tally.first_frame[0] if tally.first_frame and tally.last_frame else 0
    frames_s = tally.last_frame[1] - tally.first_frame[1] if tally.first_frame and tally.last_frame else 0.0
    return {
        "exit_reason": exit_reason,
        "message": message,
        "seconds": round(tally.seconds, 3),
        "steps": tally.steps,
        "first_loss": tally.first_loss.loss if tally.first_loss else None,
        "last_loss": last[-1] if last else None,
        f"mean_last_{LAST_LOSSES}": _mean(last),
        "held_out_loss": held_out.loss if held_out else None,
        "held_out_step": held_out.step if held_out else None,
        "held_out_complete": held_out.complete if held_out else None,
        "tokens_trained": tally.steps * tally.tokens_per_step,
        "tokens_per_s": _tokens_per_s(tally),
        "tokens_served": tally.tokens_served,
        "versions_served": list(tally.versions_served) if tally.versions_served else None,
        "served_text": tally.served_text,
        "frames": tally.last_frame[0] if tally.last_frame else 0,
        "frames_kept": tally.frames_kept,
        "frames_per_s": round(frames / frames_s, 3) if frames_s > 0 else None,
    }


def _tokens_per_s(tally: Tally) -> float | None:
    if tally.first_loss is None:
        return None
    first, last = tally.first_loss, tally.last_losses[-1]
    from_launch = first.step == 0
    steps = tally.steps - (not from_launch)
    seconds = last.seconds - (0.0 if from_launch else first.seconds)
    return round(steps * tally.tokens_per_step / seconds, 1) if seconds > 0 else None


def _held_out(sweeps: Sequence[SweepLoss]) -> SweepLoss | None:
    candidates = [sweep for sweep in sweeps if sweep.complete] or sweeps
    return candidates[-1] if candidates else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
