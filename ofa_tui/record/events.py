"""Event files: steering as lines of JSON, written by every run and played back by `--events FILE`.

A line is `{"step" | "token" | "tic": N, "action": A, ...}`: the clock value at which the event takes effect, what it
does, and the action's own fields, for example

    {"step": 120, "action": "set_role", "sm": 2, "role": "serve"}
    {"token": 300, "action": "prompt", "stream": 0, "text": "Once upon a time"}
    {"token": 300, "action": "sampling", "seed": 1, "temperature": 0.8, "top_p": 0.95, "top_k": 0, "stream": -1}
    {"token": 400, "action": "end_story", "stream": 0}
    {"tic": 700, "action": "behaviour", "game": 0, "behaviour": "explore"}
    {"tic": 700, "action": "keys", "game": 0, "forward": 50, "side": 0, "turn": 0, "buttons": 1}
    {"tic": 1400, "action": "new_game", "game": 0, "episode": 1, "map": 2, "skill": 3, "seed": 7}
    {"tic": 2000, "action": "rewind", "game": 0, "seconds": 3}
    {"tic": 2100, "action": "automap", "game": 0, "mode": "follow", "zoom": 2, "x": 0, "y": 0}
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.protocol import AppliedEvent, Event
from ofa_tui.errors import OfaError

MAX_CLOCK = 2**63 - 1
NAMES: dict[str, tuple[str, ...]] = {"role": abi.ROLES, "behaviour": BEHAVIOURS, "mode": abi.AUTOMAP_MODES}
"""Values that a file gives by name and an event by index."""


@dataclass(frozen=True)
class Field:
    """A value of an action: its name in the file, and where it goes (`target`, or an index into `args`)."""

    name: str
    place: str | int
    kind: str = "int"  # "int", "float" (bits in an i4), "skill" (1-5 for 0-4), or a key of NAMES
    default: float | None = None


@dataclass(frozen=True)
class Action:
    clock: str
    fields: tuple[Field, ...]
    text: bool = False


ACTIONS: dict[str, Action] = {
    "set_role": Action("step", (Field("sm", "target"), Field("role", 0, "role"))),
    "prompt": Action("token", (Field("stream", "target", default=0),), text=True),
    "sampling": Action(
        "token",
        (
            Field("seed", "target"),
            Field("temperature", 0, "float"),
            Field("top_p", 1, "float", default=1.0),
            Field("top_k", 2, default=0),
            Field("stream", 3, default=abi.ALL_STREAMS),
        ),
    ),
    "end_story": Action("token", (Field("stream", "target", default=0),)),
    "behaviour": Action("tic", (Field("game", "target", default=0), Field("behaviour", 0, "behaviour"))),
    "keys": Action(
        "tic",
        (
            Field("game", "target", default=0),
            Field("forward", 0, default=0),
            Field("side", 1, default=0),
            Field("turn", 2, default=0),
            Field("buttons", 3, default=0),
        ),
    ),
    "new_game": Action(
        "tic",
        (
            Field("game", "target", default=0),
            Field("episode", 0),
            Field("map", 1),
            Field("skill", 2, "skill"),
            Field("seed", 3),
        ),
    ),
    "rewind": Action("tic", (Field("game", "target", default=0), Field("seconds", 0))),
    "automap": Action(
        "tic",
        (
            Field("game", "target", default=0),
            Field("mode", 0, "mode"),
            Field("zoom", 1, default=0),
            Field("x", 2, default=0),
            Field("y", 3, default=0),
        ),
    ),
}
"""How each of abi.ACTIONS looks in a file."""


def clock_of(action: str) -> str:
    """The clock (one of abi.CLOCKS) that an action's events count by."""
    return ACTIONS[action].clock


def to_line(applied: AppliedEvent) -> str:
    """The line, without its newline, that repeats an applied event."""
    event = applied.event
    action = ACTIONS[event.action]
    entry: dict[str, Any] = {action.clock: applied.at, "action": event.action}
    for field in action.fields:
        entry[field.name] = _from_event(event, field)
    if action.text:
        entry["text"] = event.text
    return json.dumps(entry, ensure_ascii=False)


def _from_event(event: Event, field: Field) -> Any:
    if field.place == "target":
        return event.target
    index = int(field.place)
    bits = event.args[index] if index < len(event.args) else 0
    if field.kind == "float":
        # The shortest decimal that is this float32, so that reading it back gives the same bits.
        return float(str(np.int32(bits).view(np.float32)))
    if field.kind in NAMES:
        return NAMES[field.kind][bits]
    return bits + 1 if field.kind == "skill" else bits


def from_line(line: str) -> Event:
    """The event of one line. Raises OfaError that says what is wrong with it."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise OfaError("is not JSON; a line is an object such as " + _EXAMPLE) from None
    if not isinstance(entry, dict):
        raise OfaError("is not an object; write for example " + _EXAMPLE)
    name = entry.pop("action", None)
    if not isinstance(name, str) or name not in ACTIONS:
        raise OfaError(f"has the action {name!r}; choose one of {', '.join(ACTIONS)}")
    action = ACTIONS[name]
    when = _clock_value(name, action.clock, entry)
    text = entry.pop("text", None) if action.text else ""
    if not isinstance(text, str):
        raise OfaError(f"is a {name} without a text; add \"text\": \"...\"")
    target, args = _values(name, action, entry)
    if entry:
        raise OfaError(f"has {next(iter(entry))!r}, which {name} does not know; it knows {_known(action)}")
    return Event(name, action.clock, when, target, args, text)


_EXAMPLE = '{"step": 120, "action": "set_role", "sm": 2, "role": "serve"}'


def _known(action: Action) -> str:
    return ", ".join([action.clock, *(field.name for field in action.fields), *(["text"] if action.text else [])])


def _clock_value(name: str, clock: str, entry: dict[str, Any]) -> int:
    wrong = [other for other in abi.CLOCKS if other != clock and other in entry]
    if clock not in entry or wrong:
        raise OfaError(f"does not say when; {name} counts by \"{clock}\": N")
    when = entry.pop(clock)
    if not _is_int(when) or not 0 <= when <= MAX_CLOCK:
        raise OfaError(f"has the {clock} {when!r}; write a whole number from 0 on")
    return when


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _values(name: str, action: Action, entry: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
    target = 0
    args: dict[int, int] = {}
    for field in action.fields:
        value = entry.pop(field.name, field.default)
        if value is None:
            raise OfaError(f"has no {field.name!r}, which {name} needs")
        number = _number(field, value)
        if field.place == "target":
            target = number
        else:
            args[int(field.place)] = number
    return target, tuple(args[index] for index in sorted(args))


def _number(field: Field, value: Any) -> int:
    if field.kind in NAMES:
        names = NAMES[field.kind]
        if value not in names:
            raise OfaError(f"has the {field.kind} {value!r}; choose one of {', '.join(names)}")
        return names.index(value)
    if field.kind == "float":
        if not (_is_int(value) or isinstance(value, float)) or not 0 <= value <= 1e6:
            raise OfaError(f"has the {field.name} {value!r}; write a number from 0 on")
        return int(np.float32(value).view(np.int32))
    low, high = (0, 2**32 - 1) if field.place == "target" else (-(2**31), 2**31 - 1)
    if field.kind == "skill":
        low, high = 1, 5
    if not _is_int(value) or not low <= value <= high:
        raise OfaError(f"has the {field.name} {value!r}; write a whole number from {low} to {high}")
    return value - 1 if field.kind == "skill" else value


def parse_events(lines: Iterable[str], source: str) -> list[Event]:
    """The events of a file's lines, in order of the file. Empty lines do not count.

    Raises OfaError with `source` and the line's number for the first line that cannot be.
    """
    events = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                events.append(replace(from_line(line), source=f"line {number} of {source}"))
            except OfaError as error:
                raise OfaError(f"line {number} of {source} {error}") from None
    return events


def read_events(path: Path) -> list[Event]:
    """The events of a file. Raises OfaError for a file that cannot be read, or with the number of a bad line."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OfaError(f"{path} is no regular file; give the events.jsonl of a recorded run")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise OfaError(f"there is no event file {path}; give the events.jsonl of a recorded run") from None
    except UnicodeDecodeError:
        raise OfaError(f"{path} is not an event file; give the events.jsonl of a recorded run") from None
    except OSError as error:
        raise OfaError(f"cannot read the event file {path} ({error.strerror}); check it and its permissions") from None
    return parse_events(text.split("\n"), str(path))
