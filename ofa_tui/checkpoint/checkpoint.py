"""A run's state as a safetensors file, and back: which run it is of, what it holds, whether it may go on here."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers as hf

from ofa_tui import __version__, abi
from ofa_tui.checkpoint.header import Fields, brief
from ofa_tui.checkpoint.names import EXP_AVG, EXP_AVG_SQ, cache_name, serving_name, tensor_name
from ofa_tui.checkpoint.tensors import HASH, Tensor, TensorFile, kind_of
from ofa_tui.data.tokenizers import ByteTokenizer, FileTokenizer, Tokenizer
from ofa_tui.engine.config import RunConfig, RunState, Sampling, ServingState, StreamState, TrainState
from ofa_tui.engine.layouts import from_bf16
from ofa_tui.engine.telemetry import learning_rate
from ofa_tui.errors import OfaError
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.graph import matrix_shapes

FORMAT = "ofa-tui 2"
TOKENIZER = "tokenizer.json"
FREE = ("steps", "sweep_every", "sweep_batches")
"""Of a training's settings: they do not change a step, but for the learning rate."""
NAME = re.compile(r"step-([0-9]+)\.safetensors")
GIVE = "give a checkpoint, or the folder that holds some"
MOST_STEP_TOKENS = 1 << 22
"""Far more than any preset has: what a step of more needs, memory and time, is never there."""
MOST_I32, MOST_OPTION, MOST_U64 = (1 << 31) - 1, (1 << 40) - 1, (1 << 64) - 1
STORAGE_NAMES = {"f4": "fp32", "bf16": "bf16"}


def file_name(step: int) -> str:
    return f"step-{step:08}.safetensors"


# --- which run ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Identity:
    """What must be equal for a run to go on from another's state. Texts are what a person reads in a refusal."""

    preset: str
    tokenizer: str
    model: dict[str, Any]
    train: dict[str, Any]
    """All but FREE, which may change."""
    train_text: str
    held_out_text: str
    seed: int
    target: str

    @staticmethod
    def of(config: RunConfig, target: str, storage: str) -> Identity:
        train = {name: value for name, value in dataclasses.asdict(config.train).items() if name not in FREE}
        return Identity(
            config.preset, describe_tokenizer(config.tokenizer), dataclasses.asdict(config.model), train,
            describe_tokens(config.train_tokens), describe_tokens(config.valid_tokens), config.seed,
            f"{target} ({STORAGE_NAMES[storage]})",
        )

    def check_preset(self, path: Path, ours: str) -> None:
        """`check` of what is known before a text is read."""
        self.check(path, dataclasses.replace(self, preset=ours))

    def check(self, path: Path, ours: Identity) -> None:
        """Raises OfaError with both sides of the first difference between this, of the file at `path`, and `ours`."""
        for name, what, way_out in (
            ("preset", "preset", f"use --preset {self.preset}"),
            ("tokenizer", "tokenizer", "use the same --tokenizer and --data"),
            ("train_text", "training text", "use the same --data"),
            ("held_out_text", "held-out text", "use the same --data and --valid"),
            ("seed", "seed", f"use --seed {self.seed}"),
            ("model", "model", "use the version of ofa-tui that wrote it"),
            ("train", "training", "use the version of ofa-tui that wrote it"),
            ("target", "target", "use the same --backend, or take its weights alone with --init"),
        ):
            theirs, here = getattr(self, name), getattr(ours, name)
            if theirs != here:
                raise OfaError(f"{path} has the {what} {_brief(theirs, here)} and this run {_brief(here, theirs)}; "
                               f"{way_out}")


def _brief(one: Any, other: Any) -> str:
    """`one`, or of two tables what differs."""
    if not isinstance(one, dict):
        return str(one)
    return ", ".join(f"{name} {value}" for name, value in one.items() if other.get(name) != value)


def describe_tokens(tokens: np.ndarray) -> str:
    digest = hashlib.sha256(np.ascontiguousarray(tokens, np.int32).data).hexdigest()
    return f"of {len(tokens):,} tokens (sha256 {digest[:16]})"


def describe_tokenizer(tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256(_tokenizer_json(tokenizer)).hexdigest()
    return f"{tokenizer.name} of {tokenizer.size:,} ids (sha256 {digest[:16]})"


def _tokenizer_json(tokenizer: Tokenizer) -> bytes:
    return tokenizer.to_json().encode() if isinstance(tokenizer, FileTokenizer) else b""


# --- to a file ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Described:
    """What every checkpoint of one run says beside the state."""

    identity: Identity
    train: TrainConfig
    tokenizer: Tokenizer
    settings: Mapping[str, object]
    """Plain values: the options of the run."""


def tensors_of(state: RunState, run: Described) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The arrays of a checkpoint, not copied, and its metadata."""
    arrays: dict[str, np.ndarray] = {}
    for prefix, group in (("", state.train.weights), (EXP_AVG, state.train.m), (EXP_AVG_SQ, state.train.v)):
        for name, array in group.items():
            arrays[prefix + tensor_name(name)] = array[0] if array.shape[0] == 1 else array
    for number, stream in enumerate(state.serving.streams):
        for which, caches in (("key", stream.keys), ("value", stream.values)):
            for layer, cache in enumerate(caches.values()):
                arrays[cache_name(number, layer, which)] = cache
        arrays[serving_name(number, "tokens")] = stream.tokens
        arrays[serving_name(number, "versions")] = stream.versions
        arrays[serving_name(number, "prompt")] = stream.prompt
    if vocabulary := _tokenizer_json(run.tokenizer):
        arrays[TOKENIZER] = np.frombuffer(vocabulary, np.uint8)
    position = {
        "step": state.step,
        "steps": run.train.steps,
        "sweep_due": state.sweep_due,
        "sequences_seen": state.step * run.train.batch,
        "learning_rate": learning_rate(state.step, run.train),
        "token": state.serving.token,
        "stories": state.serving.stories,
        "streams": [_stream_entry(stream) for stream in state.serving.streams],
    }
    metadata = {
        "format": FORMAT,
        "written_by": f"ofa-tui {__version__}",
        "run": json.dumps(dataclasses.asdict(run.identity)),
        "state": json.dumps(position),
        "settings": json.dumps(run.settings),
    }
    return {name: Tensor(kind_of(array), array) for name, array in arrays.items()}, metadata


def _stream_entry(stream: StreamState) -> dict[str, object]:
    return {"token": stream.token, "story": stream.story, "telling": stream.telling, "seed": stream.seed,
            "sampling": dataclasses.asdict(stream.sampling)}


# --- from a file ----------------------------------------------------------------------------------------------------


class Checkpoint:
    """A checkpoint's file. What is asked of it is read then."""

    def __init__(self, path: Path) -> None:
        """Raises OfaError for a file that is not a whole checkpoint."""
        self.path = path
        self._file = TensorFile(path)
        found = self._file.metadata.get("format", "")
        if found != FORMAT:
            raise OfaError(f"{path} is not a checkpoint of this version of ofa-tui ({brief(found) if found else 'no'} "
                           f"format and not {FORMAT!r}); --init takes weights from any safetensors file")
        self.settings: dict[str, Any] = self._fields("settings").values
        self._read_position(self._fields("state"))
        self._read_run(self._fields("run"))

    def _read_position(self, state: Fields) -> None:
        self.step, self.steps = state.integer("step"), state.integer("steps", 1)
        self._sweep_due = state.flag("sweep_due")
        self._token, self._stories = state.integer("token"), state.integer("stories")
        self._streams = state.inners("streams", abi.MAX_STREAMS)

    def _read_run(self, run: Fields) -> None:
        model, train = run.inner("model"), run.inner("train")
        self.identity = Identity(
            run.text("preset"), run.text("tokenizer"), model.values, train.values, run.text("train_text"),
            run.text("held_out_text"), run.integer("seed"), run.text("target"),
        )
        self.model = model.build(ModelConfig, least=1)
        self.train = train.build(TrainConfig, steps=self.steps, sweep_every=0, sweep_batches=TrainConfig.sweep_batches)
        if self.model.layers > len(self._file.entries):
            raise model.fail("layers")
        if self.model.width % self.model.heads or self.model.head_dim % 2:
            raise model.fail("heads")
        if self.model.rope_base < 1:
            raise model.fail("rope_base")
        if not 1 <= self.train.batch * self.model.context <= MOST_STEP_TOKENS:
            raise train.fail("batch")

    def _fields(self, name: str) -> Fields:
        return Fields.read(self.path, name, self._file.metadata.get(name, ""))

    def options(self) -> dict[str, Any]:
        """The options of its run that a run which goes on from it takes over, by their names in Settings."""
        settings = Fields(self.path, "settings", self.settings)
        return {
            "preset": settings.inner("preset").text("name"),
            "data": [Path(path) for path in settings.texts("data")],
            "valid": [Path(path) for path in settings.texts("valid")],
            "tokenizer": settings.text("tokenizer"),
            "steps": settings.integer("steps", 1, MOST_OPTION),
            "seed": settings.integer("seed", 0, MOST_I32),
            "streams": len(self._streams),
            "sweep_every": settings.integer("sweep_every", 0, MOST_OPTION),
            "sweep_batches": settings.integer("sweep_batches", 1),
            "checkpoint_every": settings.integer("checkpoint_every", 0, MOST_OPTION),
            "checkpoint_at_end": settings.flag("checkpoint_at_end"),
            "keep": settings.integer("keep", 1, MOST_I32),
        }

    def check(self) -> None:
        """Raises OfaError where something is not as it was written."""
        if HASH not in self._file.metadata:
            raise OfaError(f"{self.path} is damaged: its header has lost its hash; take another checkpoint")
        self._file.check()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        if TOKENIZER not in self._file.entries:
            return ByteTokenizer()
        text = self._file.array(TOKENIZER).tobytes()
        name = self.identity.tokenizer.rpartition(" of ")[0]
        try:
            return FileTokenizer(name, hf.Tokenizer.from_str(text.decode()))
        except Exception as error:  # the library raises bare Exception
            raise OfaError(f"{self.path} has a tokenizer that cannot be read ({type(error).__name__}); "
                           "take another checkpoint") from None

    def weights(self) -> dict[str, np.ndarray]:
        """f4, by our names."""
        return _parameters(self._file, self.model, "")

    def state(self) -> RunState:
        """Raises OfaError where something is missing or cannot be."""
        file = self._file
        train = TrainState(*(_parameters(file, self.model, prefix) for prefix in ("", EXP_AVG, EXP_AVG_SQ)))
        streams = tuple(self._stream(number, entry) for number, entry in enumerate(self._streams))
        if sum(stream.token for stream in streams) != self._token:
            raise OfaError(f"{self.path} has streams with other numbers of tokens than {self._token} in all; take "
                           "another checkpoint")
        return RunState(self.step, self._sweep_due, train, ServingState(self._token, self._stories, streams))

    def _stream(self, number: int, entry: Fields) -> StreamState:
        token = entry.integer("token")
        tokens, prompt = (self._served(serving_name(number, name), "I32", self.model.context, self.model.vocab)
                          for name in ("tokens", "prompt"))
        versions = self._served(serving_name(number, "versions"), "U64", self.model.context)
        if len(versions) != len(tokens) or len(tokens) > token:
            raise OfaError(f"{self.path} has a served text that cannot be this model's: {len(tokens)} tokens, "
                           f"{len(versions)} versions, {token} tokens of its stream; take another checkpoint")
        layers = range(self.model.layers)
        keys, values = ({f"layers.{layer}": self._cache(cache_name(number, layer, which), len(tokens))
                         for layer in layers} for which in ("key", "value"))
        drawn = entry.inner("sampling")
        return StreamState(
            token=token, story=entry.integer("story"), telling=entry.flag("telling"), tokens=tokens,
            versions=versions, keys=keys, values=values, prompt=prompt, seed=entry.integer("seed", 0, MOST_U64),
            sampling=Sampling(drawn.number("temperature", 0, 100), drawn.integer("top_k", 0, MOST_I32),
                              drawn.number("top_p", 0, 1)),
        )

    def _served(self, name: str, kind: str, most: int, below: int | None = None) -> np.ndarray:
        """[n], n at most `most`, of numbers from 0 up to `below`."""
        array = self._file.array(name)
        if self._file.entries[name].kind != kind or array.ndim != 1 or len(array) > most or (
            below is not None and len(array) and not 0 <= int(array.min()) <= int(array.max()) < below
        ):
            raise OfaError(f"{self.path} has a served text that cannot be this model's ({name}); take another "
                           "checkpoint")
        return array

    def _cache(self, name: str, rows: int) -> np.ndarray:
        array = self._file.array(name)
        if self._file.entries[name].kind not in ("F32", "BF16") or array.shape != (rows, self.model.width):
            raise OfaError(f"{self.path} has a cache that cannot be of its served text: {name} is "
                           f"{_shape(array.shape)} and should be {rows} x {self.model.width}; take another checkpoint")
        return array


def going_on(config: RunConfig, checkpoint: Checkpoint, target: str, storage: str, *, resample: bool,
             streams: int | None = None) -> RunConfig:
    """The run `config` from where the checkpoint left it. `resample`: with config's sampling, not the checkpoint's.
    `streams`: how many were asked for, if any were.

    Its events are those that are still to come. Raises OfaError for another run's checkpoint, and for one at the end.
    """
    checkpoint.identity.check(checkpoint.path, Identity.of(config, target, storage))
    if checkpoint.step >= config.train.steps:
        raise OfaError(f"{checkpoint.path} has all {checkpoint.step} of {config.train.steps} steps done; train on with "
                       "--steps, or measure it with ofa-tui eval")
    state = checkpoint.state()
    told = len(state.serving.streams)
    if streams not in (None, told):
        raise OfaError(f"{checkpoint.path} has {told} streams of text and not {streams}; leave out --streams")
    if resample:
        state = dataclasses.replace(state, serving=dataclasses.replace(state.serving, streams=tuple(
            dataclasses.replace(stream, sampling=config.sampling) for stream in state.serving.streams)))
    clocks = {"step": state.step, "token": state.serving.token, "tic": 0}
    return dataclasses.replace(
        config,
        initial=state.train,
        first_step=state.step,
        sweep_due=state.sweep_due,
        serving=state.serving,
        first_token=state.serving.token,
        first_story=state.serving.stories,
        sampling=state.serving.streams[0].sampling,
        streams=told,
        telling=min(config.telling, told),
        events=tuple(event for event in config.events if event.when >= clocks[event.clock]),
    )


def initial_weights(path: Path, model: ModelConfig) -> dict[str, np.ndarray]:
    """f4 weights of any safetensors file with our tensor names, by our own. Raises OfaError for another model's."""
    file = TensorFile(path)
    file.check()
    return _parameters(file, model, "")


def _parameters(file: TensorFile, model: ModelConfig, prefix: str) -> dict[str, np.ndarray]:
    parameters = {}
    for name, shape in matrix_shapes(model).items():
        tensor = prefix + tensor_name(name)
        array = file.array(tensor)
        wanted = shape[1:] if shape[0] == 1 else shape
        if array.shape != wanted:
            raise OfaError(f"{file.path} is of another model: {tensor} is {_shape(array.shape)} and should be "
                           f"{_shape(wanted)}")
        parameters[name] = _as_f4(file, tensor, array).reshape(shape)
        if not np.isfinite(parameters[name]).all():
            raise OfaError(f"{file.path} has numbers that are not finite in {tensor}; take another checkpoint")
    return parameters


def _as_f4(file: TensorFile, tensor: str, array: np.ndarray) -> np.ndarray:
    kind = file.entries[tensor].kind
    if kind == "BF16":
        return from_bf16(array)
    if kind not in ("F32", "F16", "F64"):
        raise OfaError(f"{file.path} has {tensor} as {kind}, which weights cannot be; save it as F32 or BF16")
    return array.astype(np.float32, copy=False)


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "one number"


# --- finding one ----------------------------------------------------------------------------------------------------


def checkpoint_files(folder: Path) -> list[tuple[int, Path]]:
    """(step, file) of what has a checkpoint's name, the newest first. Raises OfaError for a folder that cannot be
    read."""
    try:
        names = os.listdir(folder)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OfaError(f"cannot read the folder {folder} ({reason}); {GIVE}") from None
    found = [(int(match[1]), folder / name) for name in names if (match := NAME.fullmatch(name))]
    return sorted(found, reverse=True)


def find_checkpoint(path: Path) -> tuple[Checkpoint, list[str]]:
    """The checkpoint at `path`, or the newest whole one of a folder (or of a record's folder), and a sentence for each
    one that was passed over. Raises OfaError where there is none."""
    if not os.path.isdir(path):
        checkpoint = Checkpoint(path)
        checkpoint.check()
        return checkpoint, []
    folder = path / "checkpoints" if os.path.isdir(path / "checkpoints") else path
    broken: list[str] = []
    for _, candidate in checkpoint_files(folder):
        try:
            checkpoint = Checkpoint(candidate)
            checkpoint.check()
            return checkpoint, broken
        except OfaError as error:
            broken.append(str(error))
    if broken:
        raise OfaError(f"the folder {folder} holds no checkpoint that can be used; {broken[0]}")
    raise OfaError(f"the folder {folder} holds no checkpoint, such as {file_name(200)}{_elsewhere(path)}; {GIVE}")


def _elsewhere(record: Path) -> str:
    """Where the run of a record kept its checkpoints, if that was not in there."""
    try:
        folder = json.loads((record / "run.json").read_bytes())["settings"]["checkpoints"]
    except (OSError, ValueError, RecursionError, TypeError, KeyError):
        return ""
    return f", since its run wrote them into {folder}" if isinstance(folder, str) else ""
