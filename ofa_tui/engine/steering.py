"""Steering: checks events, posts them to the kernel's rings, and reports when each took effect."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.config import RunConfig
from ofa_tui.engine.protocol import AppliedEvent, Event
from ofa_tui.errors import OfaError

CLOCK_OF = {
    "set_role": "step", "prompt": "token", "sampling": "token", "end_story": "token",
    "behaviour": "tic", "keys": "tic", "new_game": "tic", "rewind": "tic", "automap": "tic",
}  # fmt: skip
N_ARGS = {"set_role": 1, "prompt": 0, "sampling": 4, "end_story": 0, "behaviour": 1, "keys": 4, "new_game": 4,
          "rewind": 1, "automap": 4}
LONGEST_REWIND_S = 3600
PROMPTS_IN_FLIGHT = abi.STREAM_PROMPTS // 2
"""Prompts of a stream posted and not applied. A slot is used again after STREAM_PROMPTS prompts of its stream; by then
at least half of them are applied, and a prompt that is applied ends the one before it."""


def float_bits(value: float) -> int:
    """The bits of an f4 as the i4 that an event's arguments carry."""
    return struct.unpack("<i", struct.pack("<f", value))[0]


def bits_float(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<i", bits))[0]


def sampling_event(temperature: float, top_p: float, top_k: int, seed: int, when: int = 0,
                   stream: int = abi.ALL_STREAMS) -> Event:
    """The event that changes how tokens are drawn, of one stream or of all."""
    return Event("sampling", "token", when, seed, (float_bits(temperature), float_bits(top_p), top_k, stream))


class Steering:
    """The events of one run, from the wish to the report.

    Events wait here until the kernel's ring has room, those with an earlier `when` first. The kernel holds at most
    EVENT_RING of a clock at a time; a playback with more due at once than that applies some of them late.
    """

    def __init__(self, config: RunConfig, roles: Iterable[int]) -> None:
        """`roles` are those at the start. Raises OfaError for an event of the playback that cannot be."""
        self._config = config
        self._roles = [int(role) for role in roles]
        self._waiting: dict[str, list[tuple[Event, list[int]]]] = {clock: [] for clock in abi.CLOCKS}
        self._in_flight: dict[str, dict[int, Event]] = {clock: {} for clock in abi.CLOCKS}
        self._prompts = [0] * config.streams
        for event in sorted(config.events, key=lambda event: event.when):
            try:
                self.add(event)
            except OfaError as error:
                raise OfaError(f"{event.source}: {error}" if event.source else str(error)) from None

    def add(self, event: Event) -> None:
        """Queues an event. Raises OfaError for one that cannot be."""
        tokens = self._check(event)
        waiting = self._waiting[event.clock]
        position = sum(1 for other, _ in waiting if other.when <= event.when)
        waiting.insert(position, (event, tokens))

    # --- checks ---------------------------------------------------------------------------------------------------

    def _check(self, event: Event) -> list[int]:
        """The prompt's tokens, empty for other events and for a story without a prompt."""
        action = event.action
        if CLOCK_OF.get(action) is None:
            raise OfaError(f"unknown action {action!r}; choose one of {', '.join(abi.ACTIONS)}")
        if event.clock != CLOCK_OF[action]:
            raise OfaError(f"{action} counts {CLOCK_OF[action]}s, not {event.clock!r}")
        if len(event.args) != N_ARGS[action] and action != "prompt":
            raise OfaError(f"{action} takes {N_ARGS[action]} arguments, not {len(event.args)}")
        if not 0 <= event.when < 1 << 63:
            raise OfaError(f"{action} cannot happen at {event.clock} {event.when}")
        if action in ("prompt", "end_story"):
            self._check_stream(event.target)
            return self._check_prompt(event.text) if action == "prompt" else []
        if action == "set_role":
            self._check_role(event)
        elif action == "sampling":
            self._check_sampling(event)
        else:
            self._check_game(event)
        return []

    def _check_stream(self, stream: int) -> None:
        if not 0 <= stream < self._config.streams:
            raise OfaError(f"there is no stream {stream}; they are numbered 0 to {self._config.streams - 1} "
                           "(--streams N)")

    def _check_prompt(self, text: str) -> list[int]:
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise OfaError("the prompt is not UTF-8 text; type it again")
        tokens = self._config.tokenizer.encode(text) if text else []
        longest = self._config.model.context - 1
        if text and not tokens:
            raise OfaError("the prompt has no tokens; type some text")
        if len(tokens) > longest:
            raise OfaError(f"the prompt has {len(tokens)} tokens; the model can read {longest}")
        if self._config.sms[abi.SERVE - abi.TRAIN] == 0 and abi.SERVE not in self._planned_roles()[-1]:
            raise OfaError("no SM serves, so a prompt would never be read; start with --sms serve=1,...")
        return tokens

    def _check_role(self, event: Event) -> None:
        sm, role = event.target, event.args[0]
        if not 0 <= sm < len(self._roles):
            raise OfaError(f"there is no SM {sm}; they are numbered 0 to {len(self._roles) - 1}")
        if not 0 <= role < len(abi.ROLES):
            raise OfaError(f"there is no role {role}; the roles are {', '.join(abi.ROLES)}")
        if role == abi.DOOM and self._config.games == 0:
            raise OfaError(f"SM {sm} cannot play: no game runs. {self._config.doom_missing}".rstrip())
        before = set(self._roles)
        for table in self._planned_roles(event):
            for left in before - {abi.IDLE} - set(table):
                raise OfaError(f"{abi.ROLES[left]} would be left without an SM; move another SM there first")

    def _planned_roles(self, extra: Event | None = None) -> list[list[int]]:
        """The role table now and after each event that is still to come, in the order they will be applied."""
        coming = [*self._in_flight["step"].values(), *(event for event, _ in self._waiting["step"])]
        if extra:
            coming.append(extra)
        tables = [list(self._roles)]
        for event in sorted(coming, key=lambda event: event.when):
            tables.append(list(tables[-1]))
            tables[-1][event.target] = event.args[0]
        return tables

    def _check_sampling(self, event: Event) -> None:
        temperature, top_p = bits_float(event.args[0]), bits_float(event.args[1])
        if not (math.isfinite(temperature) and 0 <= temperature <= 100):
            raise OfaError(f"a temperature of {temperature:g} cannot be; use 0 to 100")
        if not 0 < top_p <= 1:
            raise OfaError(f"top-p {top_p:g} cannot be; use a share above 0, at most 1")
        if event.args[2] < 0:
            raise OfaError(f"top-k {event.args[2]} cannot be; use 0 for all, or a number of tokens")
        if not 0 <= event.target <= abi.NONE_U32:
            raise OfaError(f"seed {event.target} cannot be; use 0 to {abi.NONE_U32}")
        if event.args[3] != abi.ALL_STREAMS:
            self._check_stream(event.args[3])

    def _check_game(self, event: Event) -> None:
        action, args = event.action, event.args
        if not 0 <= event.target < self._config.games or self._config.doom is None:
            raise OfaError(f"there is no game {event.target}; {self._config.games} run")
        if action == "keys":
            limits = ((-128, 127), (-128, 127), (-32768, 32767), (0, 255))
            for name, value, (low, high) in zip(("forward", "side", "turn", "buttons"), args, limits, strict=True):
                if not low <= value <= high:
                    raise OfaError(f"a command with {name} {value} cannot be; use {low} to {high}")
        elif action == "behaviour" and not 0 <= args[0] < 256:
            raise OfaError(f"there is no behaviour {args[0]}")
        elif action == "rewind" and not -LONGEST_REWIND_S <= args[0] <= LONGEST_REWIND_S:
            raise OfaError(f"a game cannot be rewound by {args[0]} seconds; use {-LONGEST_REWIND_S} to "
                           f"{LONGEST_REWIND_S}, below 0 to go forward again")
        elif action == "automap":
            low, high = abi.AUTOMAP_ZOOMS
            limits = ((0, len(abi.AUTOMAP_MODES) - 1), (low, high), (-32768, 32767), (-32768, 32767))
            for name, value, (low, high) in zip(("mode", "zoom", "x", "y"), args, limits, strict=True):
                if not low <= value <= high:
                    raise OfaError(f"an automap with {name} {value} cannot be; use {low} to {high}")
        elif action == "new_game":
            episode, level, skill, _ = args
            levels = self._config.doom.levels
            if not 0 <= skill <= 4 or not 0 <= episode <= 255 or not 0 <= level <= 255:
                raise OfaError(f"a new game at episode {episode}, map {level}, skill {skill + 1} cannot be")
            if levels and (episode, level) not in levels:
                raise OfaError(f"{self._config.doom.wad or 'the WAD'} has no episode {episode}, map {level}")

    # --- to the kernel and back -----------------------------------------------------------------------------------

    def feed(self, control: np.void, prompts: np.ndarray, post: Callable[[int, np.ndarray], None]) -> None:
        """Posts as many waiting events as fit. `prompts` is i4 [PROMPT_SLOTS, context]; `post(clock, row)` appends."""
        for clock, name in enumerate(abi.CLOCKS):
            waiting, flying = self._waiting[name], self._in_flight[name]
            while waiting:
                event, tokens = waiting[0]
                number = int(control["posted"][clock])
                if flying and min(flying) <= number - abi.EVENT_RING:
                    break
                if event.action == "prompt" and self._prompts_in_flight(event.target) >= PROMPTS_IN_FLIGHT:
                    break
                waiting.pop(0)
                post(clock, self._encode(event, tokens, prompts))
                flying[number] = event

    def _prompts_in_flight(self, stream: int) -> int:
        return sum(event.action == "prompt" and event.target == stream for event in self._in_flight["token"].values())

    def _encode(self, event: Event, tokens: list[int], prompts: np.ndarray) -> np.ndarray:
        row = np.zeros(1, abi.EVENT)
        row["when"], row["action"], row["target"] = event.when, abi.ACTIONS.index(event.action), event.target
        if event.action == "prompt" and tokens:
            stream = event.target
            slot = stream * abi.STREAM_PROMPTS + self._prompts[stream] % abi.STREAM_PROMPTS
            self._prompts[stream] += 1
            prompts[slot, : len(tokens)] = tokens
            row["args"][0, :2] = len(tokens), slot
        elif event.action != "prompt":
            row["args"][0, : len(event.args)] = event.args
        return row

    def collect(self, taken: Sequence[int], when: np.ndarray) -> list[AppliedEvent]:
        """Events that took effect since the last call, in the order of their clock.

        `taken`: how many the kernel has seen, per clock, read before `when`, u8 [clocks, EVENT_RING] of the telemetry.
        """
        applied: list[AppliedEvent] = []
        for clock, name in enumerate(abi.CLOCKS):
            flying = self._in_flight[name]
            for number in sorted(flying):
                at = int(when[clock][number % abi.EVENT_RING])
                if number >= taken[clock] or at == abi.NONE_U64:
                    continue
                event = flying.pop(number)
                if event.action == "set_role":
                    self._roles[event.target] = event.args[0]
                applied.append(AppliedEvent(event, at))
        return applied
