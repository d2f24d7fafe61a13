"""Small runs for the engine's tests."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ofa_tui import abi
from ofa_tui.data.tokenizers import ByteTokenizer
from ofa_tui.doom import packed
from ofa_tui.engine.config import DoomConfig, RunConfig, TrainState
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.library import KernelLibrary
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs
from tests.wads import freedoom

MODEL = ModelConfig(layers=2, width=32, heads=2, feed_forward=96, context=24, vocab=320)
TARGETS = ("host", "sm90")
TRAIN = TrainConfig(batch=3, steps=6, learning_rate=3e-3, warmup_steps=3, sweep_every=2, sweep_batches=1)


def text_tokens(count: int, seed: int = 0) -> np.ndarray:
    """i4 [count] of letters that follow a noisy pattern."""
    rng = np.random.default_rng(seed)
    return ((np.arange(count) * 7 % 26 + rng.integers(0, 3, count)) + 97).astype(np.int32)


def config(**changes) -> RunConfig:
    """Training alone unless told otherwise; fields of the model and of the training may be given by name."""
    model = replace(MODEL, **{name: changes.pop(name) for name in list(changes) if hasattr(MODEL, name)})
    train = replace(TRAIN, **{name: changes.pop(name) for name in list(changes) if hasattr(TRAIN, name)})
    base = RunConfig(
        "small", model, train, text_tokens(500), text_tokens(200, 1), ByteTokenizer(), sms=(1, 0, 0),
        tokens_per_s=0, deadline_s=60,
    )
    return replace(base, **changes)


def a_game(games: int) -> DoomConfig:
    """The first map of Freedoom 1."""
    wad = freedoom("freedoom1")
    palettes = np.stack([wad.palette(index) for index in range(packed.PALETTES)])
    return DoomConfig(wad.blob.tobytes(), palettes, Path(wad.path).name, games=games)


def engine(kernel: KernelLibrary, run: RunConfig, target: str = "host") -> HostEngine:
    """An engine that runs the programs of `target`, with all matrices in f4."""
    programs = compile_programs(run.model, run.train, games=run.games, streams=run.streams, target=target,
                                storage="f4")
    return HostEngine(programs, run, library=kernel)


def wait_for(running: HostEngine, condition, timeout_s: float = 60.0) -> list[Snapshot]:
    """Polls until condition(snapshot) holds or the run ends; returns every snapshot."""
    snapshots = [running.poll()]
    give_up = time.monotonic() + timeout_s
    while not condition(snapshots[-1]) and snapshots[-1].state not in ("aborted", "stopped"):
        assert time.monotonic() < give_up, f"still {snapshots[-1].state} at step {snapshots[-1].steps_done}"
        time.sleep(0.005)
        snapshots.append(running.poll())
    return snapshots


def pause(running: HostEngine) -> None:
    """Pauses the run and returns once no block runs a task and none has finished any for a while."""
    running.pause(True)
    done = -1
    while True:
        sms = running.poll().sms
        rests, now = bool((sms["phase"] != abi.PHASE_RUNNING).all()), int(sms["tasks_done"].sum())
        if rests and now == done:
            return
        done = now
        time.sleep(0.1)


def start_slowly(running: HostEngine) -> None:
    """Starts a run whose first step begins a little later: what is asked for at once is there before it."""
    running.pause(True)
    running.start()
    threading.Timer(0.2, running.pause, [False]).start()


def finish(running: HostEngine) -> list[Snapshot]:
    """Runs to the end of training, stops, and returns every snapshot."""
    running.start()
    snapshots = wait_for(running, lambda s: s.state == "finished")
    running.stop()
    snapshots.append(running.poll())
    assert snapshots[-1].state == "stopped", snapshots[-1].message
    return snapshots


def same(one: TrainState, other: TrainState) -> bool:
    """Weights and moments, to the last bit."""
    return all(
        np.array_equal(getattr(one, part)[name], getattr(other, part)[name])
        for part in ("weights", "m", "v") for name in one.weights
    )  # fmt: skip


def sweeps(snapshots) -> dict[int, tuple[float, int, bool]]:
    """Loss, tokens and whether all were measured, by step."""
    return {sweep.step: (sweep.loss, sweep.tokens, sweep.complete) for s in snapshots for sweep in s.sweeps}
