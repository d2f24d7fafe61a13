"""What happened in a run, a line each: steering as it took effect, held-out losses, checkpoints, turns of its state,
and what the UI said."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from ofa_tui import abi
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import AppliedEvent, Event, RunInfo, Saved, Snapshot, SweepLoss
from ofa_tui.engine.steering import bits_float
from ofa_tui.tui.draw import duration

MOST_ENTRIES = 500
PROMPT_CHARACTERS = 60
"""Of a prompt's text."""


@dataclass(frozen=True)
class Entry:
    when: str
    """On the clock that it belongs to: "step 1,200", "token 90", "tic 35"; else the time since the launch."""
    kind: str
    """"steered", "measured", "saved", "state", "said" or "failed"."""
    text: str


class RunLog:
    """The newest MOST_ENTRIES, oldest first."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=MOST_ENTRIES)

    def absorb(self, info: RunInfo, before: Snapshot | None, snapshot: Snapshot) -> None:
        """Takes every snapshot in order, with the one before it."""
        for entry in (
            *(_measured(sweep) for sweep in snapshot.sweeps),
            *_steered(info, snapshot.applied),
            *(_saved(saved) for saved in snapshot.saved),
            *_turned(before, snapshot),
        ):
            self._add(entry)

    def say(self, text: str, seconds: float, *, error: bool = False) -> None:
        """A sentence of the UI."""
        self._add(Entry(duration(seconds), "failed" if error else "said", text))

    def _add(self, entry: Entry) -> None:
        """Keys that a person holds are many events; what is said again says nothing new."""
        last = self.entries[-1] if self.entries else None
        if last is not None and (last.kind, last.text) == (entry.kind, entry.text):
            self.entries.pop()
        self.entries.append(entry)


def _measured(sweep: SweepLoss) -> Entry:
    over = "every held-out window" if sweep.complete else f"{sweep.tokens:,} tokens"
    return Entry(f"step {sweep.step:,}", "measured", f"held-out loss {sweep.loss:.4f} over {over}")


def _saved(saved: Saved) -> Entry:
    return Entry(f"step {saved.step:,}" if saved.step >= 0 else "", "failed" if saved.error else "saved", saved.text())


def _turned(before: Snapshot | None, snapshot: Snapshot) -> Iterator[Entry]:
    when = duration(snapshot.seconds)
    if before is None or snapshot.state != before.state:
        failed = snapshot.state in ("aborted", "broken off")
        message = f": {snapshot.message.partition(chr(10))[0]}" if snapshot.message else ""
        yield Entry(when, "failed" if failed else "state", f"the run is {snapshot.state}{message}")
    if before is not None and snapshot.games_held != before.games_held:
        yield Entry(when, "state", "the games are held" if snapshot.games_held else "the games go on")


def _steered(info: RunInfo, applied: list[AppliedEvent]) -> Iterator[Entry]:
    for act in applied:
        origin = f" ({act.event.source})" if act.event.source else ""
        yield Entry(f"{act.event.clock} {act.at:,}", "steered", f"{event_text(info, act.event)}{origin}")


def event_text(info: RunInfo, event: Event) -> str:
    """What an event does, for people. Numbers of games and streams only where there are several."""
    stream = f"stream {event.target}: " if info.streams > 1 else ""
    game = f"game #{event.target}: " if info.games > 1 else ""
    args = event.args
    match event.action:
        case "set_role":
            return f"SM {event.target} → {abi.ROLES[args[0]]}"
        case "prompt":
            text = " ".join(event.text.split())
            cut = text if len(text) <= PROMPT_CHARACTERS else f"{text[: PROMPT_CHARACTERS - 1]}…"
            return f"{stream}prompt “{cut}”" if text else f"{stream}a new story"
        case "sampling":
            one = "" if args[3] == abi.ALL_STREAMS or info.streams == 1 else f"stream {args[3]}: "
            top_k = f", top-k {args[2]}" if args[2] else ""
            temperature, top_p = bits_float(args[0]), bits_float(args[1])
            return f"{one}temperature {temperature:g}, top-p {top_p:g}{top_k}, seed {event.target}"
        case "end_story":
            return f"{stream}the story ends"
        case "behaviour":
            name = BEHAVIOURS[args[0]] if args[0] < len(BEHAVIOURS) else f"behaviour {args[0]}"
            return f"{game}the player is to {name}"
        case "keys":
            return f"{game}a person plays"
        case "new_game":
            return f"{game}a new game"
        case "rewind":
            return f"{game}{abs(args[0])} s {'back' if args[0] >= 0 else 'forward'}"
        case "automap":
            return f"{game}the automap" if args[0] else f"{game}no automap"
    return event.action
