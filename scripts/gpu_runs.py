"""The runs that gpu_suite.py makes on a GPU: their settings, their engines, and how they are followed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.data.prepare import corpus_spec, model_for, prepare
from ofa_tui.data.tokenizers import ByteTokenizer
from ofa_tui.doom import packed, search
from ofa_tui.engine import cuda_compiler
from ofa_tui.engine.config import DoomConfig, RunConfig
from ofa_tui.engine.cuda import CudaEngine, open_engine
from ofa_tui.engine.cuda_compiler import VARIANTS, Cubin
from ofa_tui.engine.cuda_library import DriverLibrary
from ofa_tui.engine.protocol import Snapshot
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.errors import OfaError
from ofa_tui.presets import ModelConfig, preset
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.types import ProgramSet
from ofa_tui.progress import Progress

HELD_OUT_WINDOWS = 8


@dataclass(frozen=True)
class Options:
    out: Path
    cubin: Path | None
    sm90_cubin: Path | None
    sm80_cubin: Path | None
    demos_cubin: Path | None
    golden: Path


Result = dict[str, Any]
"""What a part found: `ok`, `line` for the table, and figures."""


# --- runs ---------------------------------------------------------------------------------------------------------


def tiny(steps: int, sms: tuple[int, int, int], **changes: Any) -> RunConfig:
    """Preset tiny on generated stories, without pace."""
    chosen = preset("tiny")
    prepared = prepare(corpus_spec(chosen, (), (), chosen.tokenizer, chosen.train.steps), Progress("text"))
    config = RunConfig(
        "tiny", model_for(chosen, prepared), replace(chosen.train, steps=steps), prepared.train_tokens,
        prepared.valid_tokens[: HELD_OUT_WINDOWS * chosen.model.context], prepared.tokenizer, sms=sms,
        tokens_per_s=0.0,
    )
    return replace(config, **changes)


def doom_config() -> DoomConfig | None:
    """The first WAD that is found."""
    for path in search.by_sha256().values():
        wad = packed.load(path)
        palettes = np.stack([wad.palette(index) for index in range(packed.PALETTES)])
        episode, number = wad.episode_and_map(wad.maps[0])
        return DoomConfig(wad.blob.tobytes(), palettes, path.name, episode=episode, map=number)
    return None


SMALL = ModelConfig(layers=2, width=128, heads=2, feed_forward=512, context=128, vocab=512)
"""For the Hopper kernel, whose heads have 64 columns."""


def made_up(count: int, ids: int) -> np.ndarray:
    """i4 [count]: tokens of a made-up language, in which every second one follows from the one before."""
    rng = np.random.default_rng(5)
    picks = np.minimum(rng.zipf(1.3, count) - 1, ids - 1)
    picks[1::2] = (picks[0::2][: len(picks[1::2])] * 7 + 3) % ids
    return picks.astype(np.int32)


def hopper_config(model: ModelConfig, steps: int, sms: tuple[int, int, int], **changes: Any) -> RunConfig:
    """A run of the Hopper program on made-up tokens, without pace and sweeps."""
    small = model is SMALL
    train = replace(preset("model-s").train, steps=steps, sweep_every=0, warmup_steps=10)
    if small:
        train = replace(train, batch=4, learning_rate=3e-3, init_std=0.05)
    ids = min(model.vocab, 4096) if small else 4096
    tokens = made_up(40_000 if small else 4_000_000, ids)
    config = RunConfig("small" if small else "model-s", model, train, tokens, tokens[:0], ByteTokenizer(), sms=sms,
                       tokens_per_s=0.0)
    return replace(config, **changes)


def programs_of(config: RunConfig, target: str = "host") -> ProgramSet:
    return compile_programs(config.model, config.train, games=config.games, streams=config.streams, target=target)


def architecture() -> str:
    return DriverLibrary().gpus()[0].architecture


def read_cubin(path: Path | None, variant: cuda_compiler.Variant) -> Cubin:
    """The file, or the one of these sources: from the cache, or compiled now."""
    if path is None:
        return cuda_compiler.cubin_for(variant, architecture())
    return Cubin(path.read_bytes(), "", variant, architecture())


def engine(options: Options, config: RunConfig, programs: ProgramSet | None = None) -> CudaEngine:
    return open_engine(programs or programs_of(config), config, read_cubin(options.cubin, VARIANTS["portable"]))


def hopper_engine(options: Options, config: RunConfig, variant: str = "sm90") -> CudaEngine:
    """The Hopper program, run by the kernel for Hopper or, `sm80`, by the one for Ampere and newer."""
    cubin = options.sm90_cubin if variant == "sm90" else options.sm80_cubin
    return open_engine(programs_of(config, "sm90"), config, read_cubin(cubin, VARIANTS[variant]))


def follow(running: ResidentEngine, until: Callable[[Snapshot], bool], limit_s: float) -> list[Snapshot]:
    """Every snapshot until the condition holds or the run ends. Raises OfaError past the limit."""
    snapshots = [running.poll()]
    give_up = time.monotonic() + limit_s
    while not until(snapshots[-1]) and snapshots[-1].state not in ("aborted", "stopped"):
        if time.monotonic() > give_up:
            raise OfaError(f"still at step {snapshots[-1].steps_done} after {limit_s:g} s:\n"
                           + "\n".join(_sm_lines(snapshots[-1])))
        time.sleep(0.01)
        snapshots.append(running.poll())
    if snapshots[-1].state == "aborted":
        raise OfaError(snapshots[-1].message)
    return snapshots


def _sm_lines(snapshot: Snapshot) -> list[str]:
    assert snapshot.sms is not None
    return [f"SM {i} role {row['role']} op {row['opcode']} task {row['task']} phase {row['phase']} @{row['iteration']}"
            for i, row in enumerate(snapshot.sms)]


def losses_of(snapshots: list[Snapshot]) -> list[float]:
    return [loss.loss for snapshot in snapshots for loss in snapshot.losses]


def run_to_end(running: ResidentEngine, limit_s: float) -> list[Snapshot]:
    running.start()
    try:
        snapshots = follow(running, lambda s: s.state == "finished", limit_s)
    finally:
        running.stop()
    return [*snapshots, running.poll()]
