"""An engine that invents a plausible run: a corridor to walk through, a falling loss, stories, busy SMs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import (
    AppliedEvent,
    Commands,
    Event,
    Frame,
    RunInfo,
    ServedToken,
    Snapshot,
    StepLoss,
    SweepLoss,
    TimelinePart,
)
from ofa_tui.errors import OfaError
from ofa_tui.program.ops import OPCODES

END_OF_TEXT = 1024
STORY = (
    "The old mill stood at the edge of the river, its wheel turning slowly in the cold morning light. Nobody in the"
    " village could remember who had built it, or why the grain it ground always came out a little sweeter than it"
    ' went in. One day Tim took his kite to the hill behind it. The wind was strong. "Hold on," said his sister, and'
    " they both laughed until the sun went down."
)


def card_palette() -> np.ndarray:
    """u1 [256, 3]: greys, browns, reds, greens, blues, each a ramp of 32 or more."""
    palette = np.zeros((256, 3), np.uint8)
    hues = (
        (1, 1, 1), (1, 0.75, 0.5), (1, 0.2, 0.15), (0.4, 0.9, 0.3),
        (0.3, 0.4, 1), (1, 0.9, 0.3), (0.7, 0.5, 0.35), (0.5, 0.55, 0.6),
    )  # fmt: skip
    for index, hue in enumerate(hues):
        ramp = np.linspace(8, 250, 32)[:, None] * np.array(hue)
        palette[index * 32 : index * 32 + 32] = ramp.astype(np.uint8)
    return palette


class Corridor:
    """A textured corridor in perspective, with a status bar: 320x200 palette indices at any moment."""

    def __init__(self) -> None:
        y, x = np.mgrid[0:168, 0:320]
        self._dx, self._dy = (x - 160) / 160.0, (y - 84) / 160.0
        rng = np.random.default_rng(3)
        self._texture = rng.integers(0, 9, (64, 64))
        self._bar = np.full((32, 320), 12, np.uint8)
        self._bar[:2] = 20
        self._bar[4:28, 6:60] = 4
        self._bar[4:28, 140:180] = 40
        self._bar[10:16, 148:156] = self._bar[10:16, 164:172] = 30
        self._bar[8:24, 16:24] = self._bar[8:24, 32:40] = 64 + 28

        self._made: dict[int, np.ndarray] = {}

    def frame(self, seconds: float) -> np.ndarray:
        """The walk repeats every four seconds, so its 140 pictures are drawn once."""
        number = int(seconds * 35) % 140
        if number not in self._made:
            self._made[number] = self._draw(number / 35)
        return self._made[number]

    def draw_all(self) -> None:
        for number in range(140):
            self.frame(number / 35 + 0.001)

    def _draw(self, seconds: float) -> np.ndarray:
        sway = 0.35 * math.sin(seconds * math.tau / 4)
        dx, dy = self._dx + sway, self._dy
        wall = 1.0 / np.maximum(np.abs(dx), 1e-3)
        floor = 0.62 / np.maximum(np.abs(dy), 1e-3)
        depth = np.minimum(np.minimum(wall, floor), 14.0)
        forward = depth + seconds * 2.0
        across = np.where(wall < floor, dy * depth, dx * depth)
        noise = self._texture[(forward * 16).astype(int) % 64, (across * 24).astype(int) % 64]
        light = np.clip(30 - depth * 2.1, 3, 30)
        light = np.where((np.floor(forward) % 4 == 0) & (dy < 0) & (wall > floor), 31, light)
        shade = np.clip(light - noise, 0, 31)
        ramp = np.where(wall < floor, 1, np.where(dy < 0, 7, 6))
        picture = (ramp * 32 + shade).astype(np.uint8)
        centre = 84 + int(10 * math.sin(seconds * math.tau / 2))
        imp = int(160 - sway * 160 + 50 * math.sin(seconds * math.tau / 4))
        picture[centre - 18 : centre + 20, max(0, imp - 9) : imp + 9] = 2 * 32 + 18
        picture[centre - 26 : centre - 18, max(0, imp - 5) : imp + 5] = 32 + 22
        picture[140:168, 146:174] = 6 * 32 + 20
        picture[132:140, 155:165] = 25
        return np.vstack((picture, self._bar))


class FakeEngine:
    """Engine protocol without a kernel. `clock` gives seconds; with `frozen_frame` Doom shows that frame only.

    Of several streams those from `telling` (0: all) on rest between the prompts of invented clients.
    """

    def __init__(
        self,
        n_sms: int = 4,
        *,
        steps: int = 3000,
        games: int = 1,
        streams: int = 1,
        telling: int = 0,
        clock: Callable[[], float] = time.monotonic,
        frozen_frame: np.ndarray | None = None,
        start_at_s: float = 0.0,
    ) -> None:
        cuda = n_sms > 16
        self.info = RunInfo(
            backend="cuda" if cuda else "host",
            device="NVIDIA H200" if cuda else "AMD EPYC 9B14 (2 cores)",
            n_sms=n_sms,
            preset="model-s" if cuda else "tiny",
            parameters=162_417_408 if cuda else 1_050_000,
            steps=steps,
            tokens_per_step=4096 if cuda else 1024,
            context=512 if cuda else 128,
            games=games,
            streams=streams,
            telling=telling or streams,
            end_of_text=END_OF_TEXT,
            seed=7,
            doom_missing="" if games else "No WAD was found; install the package vizdoom or give one with --wad FILE.",
        )
        self._clock, self.corridor, self._palette = clock, Corridor(), card_palette()
        self._frozen = frozen_frame
        self._offset = start_at_s
        self._started = self._now = self._paused_at = 0.0
        self.posted: list[Event] = []
        self.paused = self.stopped = self.held = False
        self.stepped = 0
        self.ahead = 0
        """Snapshots ahead of the game, as its frames say."""
        self.abort: str = ""
        self.timeline: Callable[[float, float], TimelinePart] = lambda after_s, until_s: TimelinePart()
        self.refuse = ""
        self.on_stop: Callable[[], object] = lambda: None
        roles = [abi.TRAIN] * n_sms
        share = (20, 8, 4) if cuda else (1, 1, 0)
        if not games:
            share = (share[0], 0, share[2])
        for index in range(share[0]):
            roles[n_sms - 1 - share[1] - share[2] - index] = abi.SERVE
        for index in range(share[1]):
            roles[n_sms - 1 - share[2] - index] = abi.DOOM
        for index in range(share[2]):
            roles[n_sms - 1 - index] = abi.IDLE
        self._roles = np.array(roles, np.uint32)
        self._applied: list[AppliedEvent] = []
        self._steps = self._tokens = self._passes = self._frames = self._swept = 0
        self._telling = 1
        self._sms = np.zeros(n_sms, abi.SM_STATUS)
        self._behaviour = 0
        self._keys = (0, 0, 0, 0)
        self._rng = np.random.default_rng(1)

    def start(self) -> None:
        self._started = self._clock() - self._offset

    def post(self, event: Event) -> None:
        if self.refuse:
            raise OfaError(self.refuse)
        self.posted.append(event)
        if event.action == "set_role":
            self._roles[event.target] = event.args[0]
        elif event.action == "behaviour":
            self._behaviour = event.args[0]
        elif event.action == "keys":
            self._keys = event.args  # type: ignore[assignment]
        self._applied.append(AppliedEvent(event, self._steps))

    def pause(self, paused: bool) -> None:
        if paused and not self.paused:
            self._paused_at = self._clock()
        elif self.paused and not paused:
            self._started += self._clock() - self._paused_at
        self.paused = paused

    def hold_games(self, held: bool) -> None:
        self.held = held

    def step_tics(self, count: int) -> None:
        self.stepped += count

    def stop(self, timeout_s: float = 10.0) -> None:
        if not self.stopped:
            self.on_stop()
        self.stopped = True

    def weights(self) -> dict[str, np.ndarray]:
        return {}

    def poll(self) -> Snapshot:
        before = self._now
        if not self.paused:
            self._now = self._clock() - self._started
        seconds = self._now
        drawn = self._frames
        frames = self._new_frames(seconds)
        snapshot = Snapshot(
            seconds=seconds,
            state=self._state(),
            steps_done=self._steps,
            version=self._steps,
            tokens_served=self._tokens,
            losses=self._new_losses(seconds),
            served=self._new_tokens(seconds),
            frames=frames[:1],
            others=frames[1:],
            commands=tuple(self._new_commands(drawn) for _ in range(self.info.games)),
            games_held=self.held,
            roles=self._roles.copy(),
            sms=self._sm_status(seconds, seconds - before),
            timeline=self.timeline(before, seconds),
            applied=self._applied,
            train_tokens_per_s=self.info.tokens_per_step * 18.0 * (1 + 0.03 * math.sin(seconds * 3)),
            step_ms=54.2 + 2 * math.sin(seconds * 2),
            served_per_s=self._telling * 40.0 + 3 * math.sin(seconds),
            frames_per_s=35.0 if self.info.games else 0.0,
            device=self._device(seconds),
            message=self.abort,
        )
        self._applied = []
        sweeps = self._new_sweeps()
        return replace(snapshot, sweeps=sweeps, steps_done=self._steps, version=self._steps)

    def _state(self) -> str:
        if self.abort:
            return "aborted"
        if self.paused:
            return "paused"
        return "finished" if self._steps >= self.info.steps else "running"

    def _device(self, seconds: float) -> dict[str, float]:
        if self.info.backend == "cuda":
            return {"power_w": 612 + 10 * math.sin(seconds), "temperature_c": 61.0, "rss_bytes": 31.2 * 2**30}
        return {"cpu_percent": 188 + 8 * math.sin(seconds), "rss_bytes": 0.41 * 2**30}

    def loss_at(self, step: int) -> float:
        return 1.45 + 5.5 * math.exp(-step / 120) + 1.2 * math.exp(-step / 900)

    def _new_losses(self, seconds: float) -> list[StepLoss]:
        target = min(self.info.steps, int(seconds * 18))
        out = []
        for step in range(self._steps, target):
            loss = self.loss_at(step) * (1 + 0.04 * self._rng.standard_normal())
            out.append(StepLoss(step, loss, 1e-3, seconds))
        self._steps = max(self._steps, target)
        return out

    def _new_sweeps(self) -> list[SweepLoss]:
        out = []
        while self._swept + 100 <= self._steps:
            self._swept += 100
            out.append(SweepLoss(self._swept, self.loss_at(self._swept) * 1.02, 8192, False))
        return out

    def _new_tokens(self, seconds: float) -> list[ServedToken]:
        """A token of each stream that tells, 40 times a second."""
        target = int(seconds * 40)
        out: list[ServedToken] = []
        for number in range(max(self._passes, target - 400), target):
            told = [self._token_of(stream, number) for stream in range(self.info.streams)]
            out += [token for token in told if token is not None]
        self._passes = max(self._passes, target)
        if out:
            self._telling = len({token.stream for token in out[-self.info.streams :]})
        return out

    def _token_of(self, stream: int, number: int) -> ServedToken | None:
        pieces = STORY.replace(" ", "\0 ").split("\0")
        by_itself = stream < self.info.telling
        pause = 0 if by_itself else 30 + 20 * stream
        story, position = divmod(number + 29 * stream, len(pieces) + pause)
        if position >= len(pieces):
            return None
        index, self._tokens = self._tokens, self._tokens + 1
        ends = self.info.streams > 1 and position == len(pieces) - 1
        return ServedToken(
            index, END_OF_TEXT if ends else index % 1024, pieces[position], self._steps,
            story * self.info.streams + stream, position, not by_itself and position < 6, position == 0, number / 40,
            stream,
        )  # fmt: skip

    def _new_frames(self, seconds: float) -> list[Frame]:
        if not self.info.games:
            return []
        target = 1 if self._frozen is not None else int(seconds * 35)
        if target <= self._frames:
            return []
        self._frames = target
        status = np.zeros(1, abi.DOOM_STATUS)[0]
        status["tic"], status["seed"], status["episode"], status["map"] = target, 7, 1, 1
        status["health"] = 70 + int(25 * math.sin(seconds / 3))
        status["weapon"], status["kills"], status["total_kills"] = 1, 3, 24
        status["ammo"][0], status["x"], status["y"], status["angle"] = 45, 1056 << 16, -3616 << 16, 0x41000000
        status["sectors_seen"], status["sectors_total"] = 34, 120
        status["render_ns"], status["think_ns"], status["behaviour"] = 410_000, 200_000, self._behaviour
        status["forward"], status["turn"], status["buttons"] = 50, -640 if target // 20 % 2 else 0, target // 30 % 2
        if any(self._keys):
            status["forward"], status["side"], status["turn"], status["buttons"] = self._keys
        status["behind"], status["ahead"] = min(60, int(seconds)), self.ahead
        frames = []
        for game in range(self.info.games):
            pixels = self._frozen if self._frozen is not None else self.corridor.frame(seconds + game)
            status["seed"], status["map"] = 7 + game, 1 + game
            frames.append(Frame(target, pixels, self._palette, 0, status.copy(), game))
        return frames

    def _new_commands(self, first: int) -> Commands:
        rows = np.zeros(self._frames - first, abi.DOOM_COMMAND)
        rows["forward"], rows["episode"], rows["map"], rows["skill"] = 50, 1, 1, 2
        rows["starts"][: first == 0] = 1
        return Commands(first, rows)

    def _sm_status(self, seconds: float, elapsed: float) -> np.ndarray:
        work = {
            abi.TRAIN: (("matmul", 0.5), ("matmul_dw", 0.2), ("attention", 0.12), ("adamw", 0.1)),
            abi.SERVE: (("decode_norm_matmul", 0.35), ("decode_attention", 0.1), ("sample", 0.03)),
            abi.DOOM: (("doom_tic", 0.3),),
            abi.IDLE: (),
        }
        sms = self._sms
        number = np.arange(self.info.n_sms)
        sms["role"], sms["phase"], sms["opcode"] = self._roles, np.where(self._roles > 0, 2, 0), abi.NONE_U32
        pulse = 0.85 + 0.15 * np.sin(seconds * (1 + number % 5) + number % 15)
        for role, ops in work.items():
            for place, (op, share) in enumerate(ops):
                mine = self._roles == role
                sms["op_ns"][mine, OPCODES[op]] += (share * pulse[mine] * elapsed * 1e9).astype(np.uint64)
                now = mine & ((int(seconds * 4) + number) % len(ops) == place)
                sms["opcode"][now] = OPCODES[op]
        sms["task"], sms["iteration"] = (number * 37 + int(seconds * 30)) % 400, self._steps
        sms["tasks_done"], sms["wait_ns"] = int(seconds * 900) + number, int(seconds * 5e7)
        return self._sms.copy()
