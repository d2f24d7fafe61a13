"""From settings to an engine that is ready to start: text, WAD, programs, kernel."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui.data.prepare import Prepared, corpus_spec, model_for, prepare
from ofa_tui.doom import search as wad_search
from ofa_tui.doom.packer import PALETTES, PackedWad
from ofa_tui.doom.packer import load as load_wad
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine.config import DoomConfig, RunConfig, Sampling
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.library import load_kernel
from ofa_tui.engine.protocol import Engine, Event
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.validate import validate
from ofa_tui.progress import Progress
from ofa_tui.record.events import read_events
from ofa_tui.settings import Settings
from ofa_tui.signals import signals_raise


@dataclass(frozen=True)
class Assembled:
    engine: Engine
    facts: dict[str, Any]
    """What run.json keeps beside the options: corpus, input hashes, WAD. Plain values."""
    events: int
    """Steering that the run is to take, from --events and --prompt."""


def check(settings: Settings, *, doom_required: bool) -> None:
    """The quick checks, before a folder is made or a minute is spent. Raises OfaError."""
    _check_backend(settings.backend)
    if settings.player not in BEHAVIOURS:
        raise OfaError(f"there is no scripted player {settings.player!r}; choose {', '.join(BEHAVIOURS)}")
    _events(settings)
    if settings.sms[2]:
        _find_wad(settings, required=doom_required)


def assemble(settings: Settings, *, doom_required: bool) -> Assembled:
    """Builds everything, with progress on stderr. `doom_required`: a missing WAD is an error, not a note."""
    compiling = _CompileProgress()
    with signals_raise(), ThreadPoolExecutor(1) as pool, compiling.given_up_on_error():
        # The compiler is another process: it runs while the text is prepared.
        kernel = pool.submit(load_kernel, compiling)
        events = _events(settings)
        # The record of a run that had a --prompt has it as an event too.
        prompt = "" if any(event.action == "prompt" and event.when == 0 for event in events) else settings.prompt
        doom, doom_missing = _doom(settings, doom_required)
        prepared = _prepare(settings)
        train = dataclasses.replace(settings.preset.train, steps=settings.steps)
        config = RunConfig(
            preset=settings.preset.name,
            model=model_for(settings.preset, prepared),
            train=train,
            train_tokens=prepared.train_tokens,
            valid_tokens=prepared.valid_tokens,
            tokenizer=prepared.tokenizer,
            sms=settings.sms if doom else (settings.sms[0], settings.sms[1], 0),
            seed=settings.seed,
            sampling=Sampling(settings.temperature, settings.top_k, settings.top_p),
            prompt=prompt,
            tokens_per_s=settings.tokens_per_s,
            tics_per_s=settings.tics_per_s,
            doom=doom[0] if doom else None,
            doom_missing=doom_missing,
            events=tuple(events),
        )
        config.check()
        programs = compile_programs(config.model, train, games=config.games)
        report = validate(programs)
        engine = HostEngine(programs, config, library=kernel.result())
    facts: dict[str, Any] = {
        "corpus": prepared.as_dict(),
        "model": dataclasses.asdict(config.model) | {"parameters": config.model.parameter_count()},
        "train": dataclasses.asdict(train),
        "program": report.lines(),
    }
    if doom:
        facts["wad"] = {"path": doom[1].path, "sha256": doom[1].sha256}
    return Assembled(engine, facts, len(events) + bool(prompt))


class _CompileProgress:
    """Tells the person what the wait of the first run is; ends the compiler when nobody waits for it any more."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        self._given_up = False

    @contextlib.contextmanager
    def given_up_on_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self._given_up = True
            raise
        finally:
            if self._progress is not None:
                self._progress.end()

    def __call__(self, seconds: float) -> None:
        if self._given_up:
            raise OfaError("compiling was given up")
        if self._progress is None:
            self._progress = Progress("compiling the kernel (first run only, about half a minute)")
        self._progress.update(seconds, f"{seconds:.0f} s")


def _check_backend(backend: str) -> None:
    if backend == "cuda":
        gpus = Path("/proc/driver/nvidia/gpus")
        found = gpus.is_dir() and any(gpus.iterdir())
        missing = "this version runs on the CPU only" if found else "no NVIDIA driver with a GPU was found here"
        raise OfaError(f"--backend cuda cannot run: {missing}; use --backend host")


def _prepare(settings: Settings) -> Prepared:
    spec = corpus_spec(settings.preset, settings.data, settings.valid, settings.tokenizer, settings.steps)
    with Progress("preparing the text") as progress:
        prepared = prepare(spec, progress)
    if prepared.source == "stories" and settings.preset.text_hint:
        progress.message(settings.preset.text_hint)
    return prepared


def _events(settings: Settings) -> list[Event]:
    return read_events(settings.events) if settings.events else []


def _find_wad(settings: Settings, required: bool) -> Path | None:
    """The WAD to play, or None where there is none and none is required. Raises OfaError."""
    found = wad_search.search(str(settings.wad) if settings.wad else None)
    if not found.found and not required and settings.wad is None:
        return None
    return wad_search.choose(found, settings.map or None)


def _doom(settings: Settings, required: bool) -> tuple[tuple[DoomConfig, PackedWad] | None, str]:
    """The game and its WAD; or None and why there is no game."""
    if not settings.sms[2]:
        return None, "No SM plays Doom in this run; give it one with --sms doom=1."
    path = _find_wad(settings, required)
    if path is None:
        return None, wad_search.search(None).missing()
    started, progress = time.monotonic(), Progress("packing the WAD")
    wad = load_wad(path)
    if time.monotonic() - started > 1:
        progress.close(path.name)
    episode, number = wad.episode_and_map(settings.map or wad.maps[0])
    return (
        DoomConfig(
            blob=wad.blob.tobytes(),
            palettes=_palettes(wad),
            wad=path.name,
            episode=episode,
            map=number,
            skill=settings.skill - 1,
            behaviour=BEHAVIOURS.index(settings.player),
            games=settings.dooms,
            levels=tuple(wad.episode_and_map(name) for name in wad.maps),
        ),
        wad,
    ), ""


def _palettes(wad: PackedWad) -> np.ndarray:
    """u1 [14, 256, 3]"""
    return np.stack([wad.palette(index) for index in range(PALETTES)])
