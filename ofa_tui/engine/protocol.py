"""What the rest of the program knows of an engine: events go in, snapshots come out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ofa_tui import abi


@dataclass(frozen=True)
class Event:
    """One act of steering. Applied at the first boundary of its clock that is not before `when`.

    `action` is one of abi.ACTIONS, `clock` its clock (abi.CLOCKS). `text` is the prompt of a "prompt" event, `target`
    its stream; an empty one begins a new story without a prompt.
    """

    action: str
    clock: str
    when: int = 0
    target: int = 0
    args: tuple[int, ...] = ()
    text: str = ""
    source: str = field(default="", compare=False)
    """Where it is from, where that is not the person at the keys: the line and the file of a playback, "HTTP"."""


@dataclass(frozen=True)
class AppliedEvent:
    event: Event
    """The object that was posted, so that whoever posted it knows it again."""
    at: int
    """Clock value at which it took effect; replaying the event with when=at repeats it exactly."""


@dataclass(frozen=True)
class RunInfo:
    """What does not change during a run."""

    backend: str  # "host", "cuda", "replay"
    device: str  # "AMD EPYC ... (2 cores)", "NVIDIA H200"
    n_sms: int
    preset: str
    parameters: int
    steps: int
    tokens_per_step: int
    context: int
    games: int
    """0 where no Doom runs; then `doom_missing` says why and how to change it."""
    seed: int
    doom_missing: str = ""
    wad: str = ""
    notes: tuple[str, ...] = ()
    end_of_text: int = 0
    """The id that ends a story when it is sampled. Older records do not say it and have 0."""
    streams: int = 1
    """Stories that can be told at the same time."""
    telling: int = 1
    """The first so many streams begin a story when one ends; the others rest until a prompt comes."""


@dataclass(frozen=True)
class StepLoss:
    step: int
    loss: float  # nats per token
    learning_rate: float
    seconds: float  # since the launch


@dataclass(frozen=True)
class SweepLoss:
    step: int
    """Steps done when it was measured, so the weight version."""
    loss: float
    tokens: int
    complete: bool
    """True for a sweep over every held-out window."""


@dataclass(frozen=True)
class ServedToken:
    index: int  # counts from 0 over the run
    token: int
    text: str
    """Piece of text this token completes: never half a character, so it may be empty."""
    version: int
    story: int
    position: int
    from_prompt: bool
    first: bool
    seconds: float
    stream: int = 0


@dataclass(frozen=True)
class Frame:
    """A published Doom frame: `pixels` u1 [200, 320] palette indices, `palette` u1 [256, 3] in force."""

    number: int
    pixels: np.ndarray
    palette: np.ndarray
    palette_index: int
    status: np.void  # one abi.DOOM_STATUS
    game: int = 0


@dataclass(frozen=True)
class Commands:
    """What a game's player did in the tics from `first` on (of the tic clock): abi.DOOM_COMMAND [tics]."""

    first: int = 0
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, abi.DOOM_COMMAND))


@dataclass(frozen=True)
class TimelinePart:
    """What SMs have run since the poll before, each SM's tasks in order. `begin_ns` counts from the launch here."""

    sms: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint16))  # u2 [n]
    entries: np.ndarray = field(default_factory=lambda: np.zeros(0, abi.TIMELINE_ENTRY))  # [n]
    lost: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    """i8 [n_sms]: tasks that each SM has run in between but whose times were overwritten before this poll."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint that was written, or could not be."""

    step: int  # steps done; -1: no particular one
    path: str
    bytes: int = 0
    held_ms: float = 0.0
    """Training stood still for so long while its state was copied."""
    write_s: float = 0.0
    error: str = ""
    """Why it could not be written, in one sentence."""

    def text(self) -> str:
        """For people."""
        if self.error:
            return self.error
        held = f", training stood still for {self.held_ms:.1f} ms" if self.held_ms else ""
        return (f"checkpoint of step {self.step}: {self.path}, {self.bytes / 1e6:,.1f} MB, written in "
                f"{self.write_s:.2f} s{held}")


@dataclass(frozen=True)
class Snapshot:
    """The state at one poll. Lists hold what is new since the poll before; everything else is current."""

    seconds: float  # since the launch
    state: str
    """"running", "paused", "finished" (trained to the end, still serving), "stopped" or "aborted"; of a recording that
    is over "broken off" where its run did not come to its own end."""
    steps_done: int
    version: int  # newest complete weight version
    tokens_served: int
    losses: list[StepLoss] = field(default_factory=list)
    sweeps: list[SweepLoss] = field(default_factory=list)
    served: list[ServedToken] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    """New frames of game 0, oldest first; a reader that came late misses some (see Frame.number)."""
    others: list[Frame] = field(default_factory=list)
    """The newest frame of each other game that has drawn one."""
    commands: tuple[Commands, ...] = ()
    """New commands of each game. A reader that came very late misses some; then `first` is not where it stopped."""
    games_held: bool = False
    """Whether the games alone are held (Engine.hold_games)."""
    roles: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint32))  # u4 [n_sms], index into abi.ROLES
    sms: np.ndarray | None = None  # abi.SM_STATUS [n_sms]
    timeline: TimelinePart = field(default_factory=TimelinePart)
    applied: list[AppliedEvent] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    train_tokens_per_s: float = 0.0
    """Rates over the last second or so."""
    step_ms: float = 0.0
    served_per_s: float = 0.0
    frames_per_s: float = 0.0
    device: dict[str, float] = field(default_factory=dict)
    """Readings where the backend has them: cpu_percent, rss_bytes, power_w, clock_mhz, temperature_c."""
    message: str = ""  # why it stopped, for "aborted"


class Engine(Protocol):
    """A run. `start` returns when the kernel is resident; `poll` never blocks; `stop` is safe to call twice."""

    info: RunInfo

    def start(self) -> None: ...

    def poll(self) -> Snapshot: ...

    def post(self, event: Event) -> None:
        """Raises OfaError for an event that cannot be (unknown SM, a role left without an SM, a prompt too long)."""
        ...

    def pause(self, paused: bool) -> None: ...

    def hold_games(self, held: bool) -> None:
        """Holds every game before its next tic, and nothing else. Rewinds and maps are shown all the same."""
        ...

    def step_tics(self, count: int) -> None:
        """While the run is paused or the games are held, let every game run `count` tics."""
        ...

    def stop(self, timeout_s: float = 10.0) -> None: ...

    def weights(self) -> dict[str, np.ndarray]:
        """The newest complete version, f4, by parameter name. Only after `stop`."""
        ...
