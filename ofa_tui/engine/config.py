"""Everything an engine needs to know of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ofa_tui import abi
from ofa_tui.data.tokenizers import Tokenizer
from ofa_tui.engine.protocol import Event
from ofa_tui.errors import OfaError
from ofa_tui.presets import ModelConfig, TrainConfig

MOST_STEPS = 1 << 53
"""The optimiser computes with step numbers as doubles, which are exact up to here."""


@dataclass(frozen=True)
class Sampling:
    """How the next token is drawn."""

    temperature: float = 0.8
    """0 takes the likeliest."""
    top_k: int = 0
    """Sample among the k likeliest; 0 = all."""
    top_p: float = 0.95
    """Sample among the likeliest that make up this share; 1 = all."""


@dataclass(frozen=True, eq=False)
class DoomConfig:
    """A game to play. `blob` is the packed WAD (ofa_tui.doom.packer)."""

    blob: bytes
    palettes: np.ndarray
    """u1 [14, 256, 3]: the WAD's palettes, for the terminal."""
    wad: str = ""
    """Name of the WAD, for people."""
    episode: int = 1
    map: int = 1
    skill: int = 2
    """0-4."""
    behaviour: int = 0
    """Index into ofa_tui.doom.player.BEHAVIOURS."""
    games: int = 1
    levels: tuple[tuple[int, int], ...] = ()
    """(episode, map) of every level in the blob; empty = not known, then none is refused."""

    def first_level(self, game: int) -> tuple[int, int]:
        """(episode, map) where a game begins: the first as told, each other one a level further on."""
        if (self.episode, self.map) not in self.levels:
            return self.episode, self.map
        return self.levels[(self.levels.index((self.episode, self.map)) + game) % len(self.levels)]


@dataclass(frozen=True, eq=False)
class TrainState:
    """What training has come to after a whole step: f4 arrays by parameter name, shaped like the parameters."""

    weights: Mapping[str, np.ndarray]
    m: Mapping[str, np.ndarray]
    """AdamW's first moments."""
    v: Mapping[str, np.ndarray]
    """AdamW's second moments."""

    @staticmethod
    def fresh(weights: Mapping[str, np.ndarray]) -> TrainState:
        """These weights before their first step."""
        return TrainState(weights, *({name: np.zeros_like(array) for name, array in weights.items()} for _ in "mv"))


@dataclass(frozen=True, eq=False)
class StreamState:
    """What a stream has come to after a whole pass: its story so far, and how its next token is made."""

    token: int
    """Tokens of the stream so far."""
    story: int
    telling: bool
    """False where it rests."""
    tokens: np.ndarray
    """i4 [rows]: those of the current story."""
    versions: np.ndarray
    """u8 [rows]: the weight version that computed each token, and the cache row of the token before it."""
    keys: Mapping[str, np.ndarray]
    """By layer, [rows, width] in the target's storage: the cache. Row r is of token r - 1, row 0 of the end of text."""
    values: Mapping[str, np.ndarray]
    prompt: np.ndarray
    """i4 [n]: what is still to be read of a prompt."""
    seed: int
    """Token n is drawn with random numbers that are a function of the seed and n."""
    sampling: Sampling


@dataclass(frozen=True, eq=False)
class ServingState:
    """What serving has come to after a whole pass."""

    token: int
    """Tokens of all streams so far."""
    stories: int
    """Stories begun so far, so the number of the next one."""
    streams: tuple[StreamState, ...]


@dataclass(frozen=True, eq=False)
class RunState:
    """A whole run but for its games, between two steps and between two tokens."""

    step: int
    """Steps done, so the weight version."""
    sweep_due: bool
    """Whether the held-out sweep after the last of them is still to come."""
    train: TrainState
    serving: ServingState


@dataclass(frozen=True, eq=False)
class RunConfig:
    """A run, complete: the engine reads nothing else."""

    preset: str
    model: ModelConfig
    """With the vocabulary of the tokenizer in use."""
    train: TrainConfig
    """With the number of steps in use, those before `first_step` included."""
    train_tokens: np.ndarray
    """i4 [n]"""
    valid_tokens: np.ndarray
    """i4 [n], held out"""
    tokenizer: Tokenizer
    sms: tuple[int, int, int] = (2, 1, 1)
    """Virtual SMs that begin as train, serve, Doom."""
    seed: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    prompt: str = ""
    """What the first story begins with."""
    tokens_per_s: float = 40.0
    """Pace of each stream, so of passes; 0 = as fast as it goes."""
    streams: int = 1
    """Stories that can be told at the same time, 1 to abi.MAX_STREAMS."""
    telling: int = 0
    """The first so many streams begin a story when one ends, the others rest until a prompt comes. 0: all of them."""
    tics_per_s: float = 35.0
    """Pace of Doom; 0 = as fast as it goes."""
    doom: DoomConfig | None = None
    doom_missing: str = ""
    """Why there is no Doom and how to change it, for people."""
    events: tuple[Event, ...] = ()
    """Steering to play back."""
    deadline_s: float = 0.0
    """Longest wait of a task before the run is taken for stuck; 0 = chosen from the size of the model."""
    jitter_seed: int = 0
    """Tests: random delays in the scheduler; 0 = none."""
    first_step: int = 0
    """Training goes on from here: the steps and the sweeps before it count as done, and version `first_step` is the
    one that `initial` holds. The step clock, the learning rate and the order of the data are those of one whole run."""
    first_token: int = 0
    """The token clock begins here. A new story begins with the run."""
    first_story: int = 0
    first_tic: int = 0
    """The tic clock of every game begins here. The games themselves are new."""
    initial: TrainState | None = None
    """Weights and moments to begin with; without them weights are drawn from `seed` and moments are 0."""
    sweep_due: bool = False
    """The held-out sweep after the step before `first_step` is still to come. Then `first_step` may be the number of
    steps: such a run is nothing but that sweep."""
    serving: ServingState | None = None
    """The stories that serving goes on with. `first_token`, `first_story` and `streams` have to agree with it; each
    stream keeps its own sampling."""
    timeline_entries: int = 0
    """Tasks of each SM that the kernel keeps the times of; 0 = none, else a power of two."""
    copies_state: bool = False
    """The state may be copied out while the kernel runs: an engine on a GPU keeps pinned memory ready for it."""

    @property
    def n_sms(self) -> int:
        return sum(self.sms)

    @property
    def streams_telling(self) -> int:
        return self.telling or self.streams

    @property
    def games(self) -> int:
        return self.doom.games if self.doom and self.sms[2] else 0

    def check(self) -> None:
        """Raises OfaError with the first thing that cannot be."""
        train, serve, doom = self.sms
        if train < 1:
            raise OfaError("training needs at least one SM; use --sms train=1,...")
        if min(serve, doom) < 0 or self.n_sms > abi.MAX_SMS:
            raise OfaError(f"a split into {self.sms} SMs cannot be; the limit is {abi.MAX_SMS} in all")
        if self.train.steps < 1:
            raise OfaError(f"{self.train.steps} training steps were asked for; at least 1 is needed")
        for name, value, low, high in self._ranges():
            if not low <= value <= high:
                raise OfaError(f"{name} {value} cannot be; use {low} to {high}")
        if self.first_step >= self.train.steps + (self.sweep_due and len(self.valid_tokens) > 1):
            raise OfaError(f"training ends with step {self.train.steps - 1}, so that it cannot go on from step "
                           f"{self.first_step}; use more steps")
        if self.timeline_entries and self.timeline_entries not in abi.TIMELINE_SIZES:
            raise OfaError(f"a timeline of {self.timeline_entries} tasks an SM cannot be; use a power of two from "
                           f"{abi.TIMELINE_SIZES[0]} to {abi.TIMELINE_SIZES[-1]:,}")
        for name, rate in (("token", self.tokens_per_s), ("tic", self.tics_per_s)):
            if rate != 0 and not 1e-9 <= rate <= 1e9:
                raise OfaError(f"{rate:g} {name}s a second cannot be; use 1e-9 to 1e9, or 0 for as fast as it goes")
        if self.tokenizer.size > self.model.vocab:
            raise OfaError(f"the tokenizer has {self.tokenizer.size} ids, the model only {self.model.vocab}")
        for name, tokens in (("training", self.train_tokens), ("held-out", self.valid_tokens)):
            if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < self.model.vocab:
                raise OfaError(f"the {name} text has ids outside 0-{self.model.vocab - 1}; prepare it again")
        if len(self.train_tokens) <= self.model.context:
            raise OfaError(
                f"the training text has {len(self.train_tokens)} tokens; "
                f"one sequence of {self.model.context} needs at least {self.model.context + 1}"
            )

    def _ranges(self) -> Iterator[tuple[str, float, float, float]]:
        """(what, value, lowest, highest) of the numbers that the kernel's structs must hold."""
        train, sampling = self.train, self.sampling
        for name in ("steps", "warmup_steps", "sweep_every", "sweep_batches"):
            yield f"training with {name}", getattr(train, name), 0, MOST_STEPS
        yield "a batch of", train.batch, 1, abi.NONE_U32 - 1
        for name in ("first_step", "first_token", "first_story", "first_tic"):
            yield f"a run with {name}", getattr(self, name), 0, MOST_STEPS
        yield "a number of streams of", self.streams, 1, abi.MAX_STREAMS
        yield "a number of streams that tell stories of", self.telling, 0, self.streams
        yield "seed", self.seed, 0, abi.NONE_U32 - abi.MAX_GAMES
        yield "jitter seed", self.jitter_seed, 0, abi.NONE_U64
        yield "temperature", sampling.temperature, 0, 100
        yield "top-k", sampling.top_k, 0, (1 << 31) - 1
        yield "top-p", sampling.top_p, 0, 1
        yield "a deadline in seconds of", self.deadline_s, 0, 1e9


def deadline_s(config: RunConfig) -> float:
    """The wait after which a run counts as stuck: a whole step at a twentieth of a GFLOP/s, at least a minute."""
    if config.deadline_s > 0:
        return config.deadline_s
    step_flops = 6.0 * config.model.parameter_count() * config.train.batch * config.model.context
    return max(60.0, step_flops / 5e7)
