"""From settings to an engine that is ready to start: text, WAD, programs, kernel."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from ofa_tui import abi
from ofa_tui.checkpoint.checkpoint import Checkpoint, Described, Identity, going_on, initial_weights
from ofa_tui.data.prepare import Prepared, corpus_spec, model_for, prepare
from ofa_tui.doom import search as wad_search
from ofa_tui.doom.packed import PALETTES, PackedWad
from ofa_tui.doom.packed import load as load_wad
from ofa_tui.doom.players import BEHAVIOURS
from ofa_tui.engine import cuda_doctor, cuda_nvml
from ofa_tui.engine.config import DoomConfig, RunConfig, Sampling, TrainState
from ofa_tui.engine.cuda import open_engine
from ofa_tui.engine.cuda_compiler import Cubin, Variant, choose_variant, cubin_for, find_nvcc, nvcc_version
from ofa_tui.engine.cuda_library import DriverLibrary, GpuFacts
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.library import KernelLibrary, load_kernel
from ofa_tui.engine.limits import check_steps
from ofa_tui.engine.protocol import Event
from ofa_tui.engine.resident import ResidentEngine
from ofa_tui.engine.steering import sampling_event
from ofa_tui.errors import OfaError
from ofa_tui.installation import command
from ofa_tui.presets import ModelConfig
from ofa_tui.program.lowering import compile_programs
from ofa_tui.program.proved import proof_of
from ofa_tui.program.targets import target_called
from ofa_tui.progress import Progress
from ofa_tui.record.events import read_events
from ofa_tui.settings import Settings
from ofa_tui.signals import signals_raise

AT_ONCE_S = 0.2


@dataclass(frozen=True)
class Assembled:
    engine: ResidentEngine
    facts: dict[str, Any]
    """What run.json keeps beside the options: corpus, input hashes, WAD. Plain values."""
    events: int
    """Steering that the run is to take, from --events and --prompt."""
    describe: Callable[[], Described]
    """What every checkpoint of the run says of it. Takes a moment: texts are hashed."""
    sampling: tuple[Event, ...]
    """How each stream draws its tokens at the beginning."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Files for a record beside its own, by name."""


def check(settings: Settings, *, doom_required: bool) -> None:
    """The quick checks, before a folder is made or a minute is spent. Raises OfaError."""
    gpu = choose_backend(settings.backend).gpu
    if settings.resume is None:
        available = gpu.memory_bytes if gpu else psutil.virtual_memory().available
        check_steps(settings.steps, settings.preset.train.batch, available)
    if settings.player not in BEHAVIOURS:
        raise OfaError(f"there is no scripted player {settings.player!r}; choose {', '.join(BEHAVIOURS)}")
    _events(settings)
    if settings.sms[2]:
        _find_wad(settings, required=doom_required)


def assemble(settings: Settings, *, doom_required: bool) -> Assembled:
    """Builds everything, with progress on stderr. `doom_required`: a missing WAD is an error, not a note."""
    backend = choose_backend(settings.backend)
    if backend.note:
        Progress("backend").message(backend.note)
    variant = backend.variant(settings.preset.model, settings.kernel)
    target = variant.target if variant else "host"
    sms = _split(settings, backend)
    compiling = _CompileProgress("some minutes" if backend.gpu else "about half a minute")
    with signals_raise(), ThreadPoolExecutor(1) as pool, compiling.given_up_on_error():
        # The compiler is another process: it runs while the text is prepared.
        kernel = pool.submit(_compile, backend, variant, compiling)
        with contextlib.suppress(TimeoutError):
            kernel.result(AT_ONCE_S)  # where nothing can be compiled, say so before the rest takes its time
        events = _events(settings)
        # The record of a run that had a --prompt has it as an event too.
        prompt = "" if any(event.action == "prompt" and event.when == 0 for event in events) else settings.prompt
        doom, doom_missing = _doom(settings, doom_required)
        prepared = _prepare(settings)
        train = dataclasses.replace(settings.preset.train, steps=settings.steps, sweep_every=settings.sweep_every,
                                    sweep_batches=settings.sweep_batches)
        config = RunConfig(
            preset=settings.preset.name,
            model=model_for(settings.preset, prepared),
            train=train,
            train_tokens=prepared.train_tokens,
            valid_tokens=prepared.valid_tokens,
            tokenizer=prepared.tokenizer,
            sms=sms if doom else (sms[0], sms[1], 0),
            seed=settings.seed,
            sampling=Sampling(settings.temperature, settings.top_k, settings.top_p),
            prompt=prompt,
            tokens_per_s=settings.tokens_per_s,
            streams=settings.streams,
            telling=settings.telling,
            tics_per_s=settings.tics_per_s,
            doom=doom[0] if doom else None,
            doom_missing=doom_missing,
            events=tuple(events),
            timeline_entries=settings.timeline,
            copies_state=settings.writes_checkpoints or backend.gpu is None,
        )
        storage = target_called(target).storage
        config, begins = _beginning(settings, config, target, storage)
        config.check()
        programs = compile_programs(config.model, train, games=config.games, streams=config.streams, target=target)
        proof = proof_of(programs)
        notes = (backend.note,) if backend.note else ()
        built = kernel.result()
        engine: ResidentEngine
        if isinstance(built, Cubin):
            engine = open_engine(programs, config, built, notes)
        else:
            engine = HostEngine(programs, config, library=built, notes=notes)
    facts: dict[str, Any] = {
        "corpus": prepared.as_dict(),
        "model": dataclasses.asdict(config.model) | {"parameters": config.model.parameter_count()},
        "train": dataclasses.asdict(train),
        "program": proof,
        **begins,
    }
    if doom:
        facts["wad"] = {"path": doom[1].path, "sha256": doom[1].sha256}
    texts = {}
    if backend.gpu and isinstance(built, Cubin):
        facts["gpu"] = _describe_gpu(backend.gpu, built)
        texts["ptxas.txt"] = built.report
    def describe() -> Described:
        return Described(Identity.of(config, target, storage), train, config.tokenizer, _repeatable(settings))

    return Assembled(engine, facts, len(config.events) + bool(prompt), describe, _sampling(config), texts)


def _sampling(config: RunConfig) -> tuple[Event, ...]:
    drawn = [(config.sampling, config.seed)] * config.streams
    if config.serving:
        drawn = [(stream.sampling, stream.seed & abi.NONE_U32) for stream in config.serving.streams]
    return tuple(sampling_event(sampling.temperature, sampling.top_p, sampling.top_k, seed, stream=stream)
                 for stream, (sampling, seed) in enumerate(drawn))


def _beginning(settings: Settings, config: RunConfig, target: str, storage: str) -> tuple[RunConfig, dict[str, Any]]:
    """The run with the state that it is to begin with, and what its record says of that."""
    if settings.resume:
        checkpoint = Checkpoint(settings.resume)
        config = going_on(config, checkpoint, target, storage, resample=settings.sampling_asked,
                          streams=settings.streams)
        if checkpoint.steps != config.train.steps:
            Progress("resume").message(f"{checkpoint.path} was to have {checkpoint.steps} steps and this run "
                                       f"{config.train.steps}: its learning rates are other ones from here on")
        return config, {"resumed": {"path": str(checkpoint.path), "step": checkpoint.step}}
    if settings.init:
        weights = initial_weights(settings.init, config.model)
        return dataclasses.replace(config, initial=TrainState.fresh(weights)), {"init": str(settings.init)}
    return config, {}


def _repeatable(settings: Settings) -> dict[str, object]:
    """The options with paths that hold in another working directory."""
    plain = settings.as_dict()
    plain["data"] = [str(path.absolute()) for path in settings.data]
    plain["valid"] = [str(path.absolute()) for path in settings.valid]
    return plain


def _describe_gpu(gpu: GpuFacts, cubin: Cubin) -> dict[str, Any]:
    """What a record says of the GPU and of what ran on it."""
    nvcc = find_nvcc()
    return {
        "name": gpu.name,
        "sms": gpu.n_sms,
        "capability": list(gpu.capability),
        "memory_bytes": gpu.memory_bytes,
        "driver": cuda_nvml.Monitor(gpu.index).driver_version(),
        "cuda": list(DriverLibrary().version()),
        "nvcc": nvcc_version(nvcc) if nvcc else "",
        "kernel": cubin.variant.name,
        "architecture": cubin.architecture,
        "cubin_sha256": cubin.sha256,
    }


class _CompileProgress:
    """Tells the person what the wait of the first run is; ends the compiler when nobody waits for it any more."""

    def __init__(self, duration: str) -> None:
        self._duration = duration
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
            self._progress = Progress(f"compiling the kernel (first run only, {self._duration})")
        self._progress.update(seconds, f"{seconds:.0f} s")


@dataclass(frozen=True)
class Backend:
    """Where the kernel runs. `gpu`: the one it runs on; `note`: why not on one, where nobody chose."""

    gpu: GpuFacts | None
    note: str = ""

    def variant(self, model: ModelConfig, wanted: str = "auto") -> Variant | None:
        """The form of the GPU kernel that trains a model; None on the CPU. Raises OfaError where it cannot be."""
        return choose_variant(wanted, self.gpu, model) if self.gpu else None


def choose_backend(wanted: str) -> Backend:
    """`auto` takes a GPU where all is there that it needs. Raises OfaError for `cuda` where something is missing."""
    if wanted == "host":
        return Backend(None)
    lack = cuda_doctor.missing()
    if not lack:
        return Backend(DriverLibrary().gpus()[0])
    if wanted == "cuda":
        raise OfaError(f"--backend cuda cannot run ({lack}); {command()} doctor says more, --backend host needs "
                       "none of it")
    return Backend(None, f"running on the CPU, since no GPU can be used ({lack})")


def divide_sms(count: int) -> tuple[int, int, int]:
    """SMs of a GPU for train, serve, Doom: 96, 28 and 8 of 132, and about these shares of another number."""
    serve, doom = max(1, round(count * 28 / 132)), max(1, round(count * 8 / 132))
    return max(1, count - serve - doom), serve, doom


def _split(settings: Settings, backend: Backend) -> tuple[int, int, int]:
    if backend.gpu is None or settings.sms_asked:
        return settings.sms
    return divide_sms(min(backend.gpu.n_sms, abi.MAX_SMS))


def _compile(backend: Backend, variant: Variant | None, on_compile: _CompileProgress) -> KernelLibrary | Cubin:
    if backend.gpu is None or variant is None:
        return load_kernel(on_compile)
    return cubin_for(variant, backend.gpu.architecture, on_compile, through_pycuda=True)


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
