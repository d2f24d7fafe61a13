#!/usr/bin/env python3
"""Measures ofa-tui on two cores: products, training, decoding and drawing, against NumPy and PyTorch.

usage: bench_host.py [--torch-python PATH] [--rounds N] [--patience SECONDS] [--only tile,train,decode,doom]
                     [--wad FILE]

What is compared takes turns, round by round, and a turn in which other processes used the two cores is repeated while
--patience lasts. A figure is the median of the rounds with the slowest and the fastest; a ratio, above 1 where ofa-tui
is the faster, is the median of each round's own ratio.
PyTorch is no dependency: its part, bench_peer.py, runs in the interpreter named by --torch-python, or in this one where
it has torch.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.util
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import bench_tile
import numpy as np
import psutil

from ofa_tui import presets
from ofa_tui.data.prepare import corpus_spec, model_for, prepare
from ofa_tui.doom import packed, search
from ofa_tui.engine.config import DoomConfig, RunConfig, Sampling
from ofa_tui.engine.host import HostEngine
from ofa_tui.engine.library import load_kernel
from ofa_tui.engine.protocol import Frame, ServedToken, Snapshot
from ofa_tui.engine.telemetry import learning_rate
from ofa_tui.errors import OfaError
from ofa_tui.program.lowering import compile_programs

PARTS = ("tile", "train", "decode", "doom")
CORES = 2
PRODUCT_SHAPES = ((256, 256, 256), (1024, 768, 768))
"""(m, n, k)"""
MOST_BY_OTHERS = 0.05
"""Share of the cores' time that other processes may use in a turn."""
QUIET_WINDOW_S = 0.25
TILE_GOAL, TRAIN_GOAL = 0.85, 1.5
PRESETS = ("shakespeare-char", "tiny")
WARM_STEPS = 5
TURN_STEPS = 40
WARM_TOKENS = 100
TURN_TOKENS = 960
"""Whole contexts of every preset."""
TURN_FRAMES = 1200
SECONDS_BETWEEN_LOOKS = 0.1
"""At a run whose steps are timed by the kernel: a look takes a core for some 0.4 ms, and PyTorch has no onlooker."""
FRAMES_AT_A_TIME = 60
"""Fewer than abi.FRAME_SLOTS."""
LARGEST_LOSS_DIFFERENCE = 1e-4
FEWEST_EQUAL_TOKENS = 16
HOW_TO_GET_PEER = """\
PyTorch was not found; its rows are left out. To have them, install it apart from ofa-tui:
    python3 -m venv torch-venv && torch-venv/bin/pip install torch numpy
and give --torch-python torch-venv/bin/python"""

Turn = Callable[[], float]
"""Measures once: milliseconds of a unit of work."""


@dataclasses.dataclass(frozen=True)
class Ratio:
    what: str
    value: float
    low: float
    high: float
    of_best: float
    """The fastest round of each side against the other's."""
    goal: float | None
    peer: str

    def line(self) -> str:
        verdict = "won" if self.value >= 1 else "lost"
        line = (f"{self.what:34} {self.value:5.2f} ({self.low:.2f}-{self.high:.2f}), best rounds {self.of_best:.2f}: "
                f"{verdict} against {self.peer}")
        if self.goal is None:
            return line
        return f"{line}; goal {self.goal:.2f} {'reached' if self.value >= self.goal else 'missed'}"


class Machine:
    """Who uses the cores that this process may run on. The system counts in hundredths of a second."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._self = psutil.Process()
        self._cores = self._self.cpu_affinity() if hasattr(self._self, "cpu_affinity") else range(CORES)

    def _used_s(self) -> tuple[float, float]:
        """Processor seconds so far: of everybody on the cores, of this process and its children."""
        every = psutil.cpu_times(percpu=True)
        busy = sum(sum(every[core]) - every[core].idle - getattr(every[core], "iowait", 0.0) for core in self._cores)
        own = 0.0
        for process in (self._self, *self._self.children(recursive=True)):
            with contextlib.suppress(psutil.NoSuchProcess):  # it may have ended since it was listed
                times = process.cpu_times()
                own += times.user + times.system
        return busy, own

    def watch(self, work: Callable[[], float]) -> tuple[float, float]:
        """What `work` returns, and the share of the cores' time that others used meanwhile."""
        busy, own = self._used_s()
        started = time.monotonic()
        result = work()
        seconds = time.monotonic() - started
        busy_now, own_now = self._used_s()
        return result, min(1.0, max(0.0, (busy_now - busy) - (own_now - own)) / (seconds * CORES))

    def turn(self, turn: Turn) -> tuple[float, float]:
        """The turn's milliseconds and the share of others; the quietest of several while patience lasts."""
        tries: list[tuple[float, float]] = []
        while True:
            started = time.monotonic()
            while self._patience_s > time.monotonic() - started and self._others_now() > MOST_BY_OTHERS:
                pass
            tries.append(self.watch(turn))
            self._patience_s -= time.monotonic() - started
            if tries[-1][1] <= MOST_BY_OTHERS or self._patience_s <= 0:
                return min(tries, key=lambda tried: tried[1])

    def _others_now(self) -> float:
        def rest() -> float:
            time.sleep(QUIET_WINDOW_S)
            return 0.0

        return self.watch(rest)[1]


def compare(
    machine: Machine, what: str, unit: str, work: float, turns: dict[str, Turn], rounds: int
) -> dict[str, list[float]]:
    """Prints what each of `turns` does of `work` in a second; returns their milliseconds, one for each round."""
    times: dict[str, list[float]] = {name: [] for name in turns}
    shares = []
    for _ in range(rounds):
        for name, turn in turns.items():
            milliseconds, share = machine.turn(turn)
            times[name].append(milliseconds)
            shares.append(share)
    for name, all_of_it in times.items():
        middle, fastest, slowest = (1e3 * work / f(all_of_it) for f in (statistics.median, min, max))
        print(f"{what:34} {name:20} {middle:10,.1f} {unit} ({slowest:,.1f}-{fastest:,.1f})")
    print(f"{what:34} other processes used {max(shares):.0%} of the cores at most", flush=True)
    return times


def ratio(what: str, times: dict[str, list[float]], goal: float | None = None) -> Ratio:
    """Of the first of `times` to the fastest of the others."""
    (_, ours), *others = times.items()
    name, theirs = min(others, key=lambda item: statistics.median(item[1]))
    values = [b / a for a, b in zip(ours, theirs, strict=True)]
    return Ratio(what, statistics.median(values), min(values), max(values), min(theirs) / min(ours), goal, name)


# --- products ---------------------------------------------------------------------------------------------------------


def bench_products(machine: Machine, rounds: int) -> list[Ratio]:
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        library = bench_tile.compile_products(Path(folder))
        for m, n, k in PRODUCT_SHAPES:
            for kind, name in enumerate(bench_tile.KINDS):
                what, product = f"{name}, {m} x {n} x {k}", bench_tile.Product(library, kind, m, n, k)
                turns: dict[str, Turn] = {
                    "ofa-tui": lambda p=product: p.milliseconds("ofa-tui"),
                    "NumPy": lambda p=product: p.milliseconds("NumPy"),
                }
                times = compare(machine, what, "GFLOP/s", 2e-9 * m * n * k, turns, rounds)
                ratios.append(ratio(what, times, TILE_GOAL))
    return ratios


# --- the peer ---------------------------------------------------------------------------------------------------------


class Peer:
    """bench_peer.py as a process of another interpreter."""

    def __init__(self, python: str) -> None:
        script = Path(__file__).with_name("bench_peer.py")
        threads = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
        environment = {name: value for name, value in os.environ.items() if name not in threads}
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log,
            text=True, env=environment)

    def ask(self, **request: Any) -> dict[str, Any]:
        """See bench_peer.JOBS. Raises OfaError when the peer has ended."""
        assert self._process.stdin and self._process.stdout
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        except (BrokenPipeError, json.JSONDecodeError):
            self._log.seek(0)
            last = (self._log.read().strip().splitlines() or ["it printed nothing"])[-1]
            raise OfaError(f"the PyTorch part has ended: {last}") from None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def find_peer(python: str) -> str:
    """The interpreter with PyTorch, or "" where none is known. Raises OfaError for a `python` without it."""
    if not python:
        return sys.executable if importlib.util.find_spec("torch") else ""
    try:
        found = subprocess.run([python, "-c", "import numpy, torch"], capture_output=True).returncode == 0
    except OSError as error:
        raise OfaError(f"{python} cannot be run: {error.strerror}; name an interpreter with --torch-python") from None
    if not found:
        raise OfaError(f"{python} has no PyTorch and NumPy; install them there, or name another interpreter")
    return python


# --- training ---------------------------------------------------------------------------------------------------------


def run_config(name: str, steps: int, sms: tuple[int, int, int], doom: DoomConfig | None = None) -> RunConfig:
    """Training on the preset's stories, without sweeps; served tokens are the likeliest, nothing is paced."""
    preset = presets.preset(name)
    prepared = prepare(corpus_spec(preset))
    train = dataclasses.replace(preset.train, steps=steps)
    return RunConfig(
        name, model_for(preset, prepared), train, prepared.train_tokens, prepared.valid_tokens[:0],
        prepared.tokenizer, sms=sms, sampling=Sampling(temperature=0.0), tokens_per_s=0, tics_per_s=0, doom=doom)


def engine_for(config: RunConfig) -> HostEngine:
    programs = compile_programs(config.model, config.train, games=config.games, streams=config.streams)
    return HostEngine(programs, config, library=load_kernel())


def save_model(path: Path, config: RunConfig, weights: dict[str, np.ndarray], **more: Any) -> None:
    np.savez(path, config=json.dumps(dataclasses.asdict(config.model)), **more, **weights)


def run_until(engine: HostEngine, done: Callable[[Snapshot], bool], pause_s: float = 0.02) -> list[Snapshot]:
    """Starts the run and stops it once `done`; returns every snapshot. Raises OfaError when the run ends by itself."""
    engine.start()
    snapshots = [engine.poll()]
    while not done(snapshots[-1]):
        if snapshots[-1].state in ("aborted", "stopped"):
            raise OfaError(f"the run ended too early: {snapshots[-1].message or snapshots[-1].state}")
        time.sleep(pause_s)
        snapshots.append(engine.poll())
    engine.stop()
    return snapshots


class OurTraining:
    """Training alone, from the initial weights on in every turn."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self.losses: list[float] = []
        self.wait_shares: list[float] = []

    def turn(self) -> float:
        engine, steps = engine_for(self._config), self._config.train.steps
        run_until(engine, lambda snapshot: snapshot.steps_done == steps, SECONDS_BETWEEN_LOOKS)
        self.losses = engine.memory["losses"].tolist()
        ends_ns = engine.memory["step_end_ns"].astype(np.int64)
        sms = engine.poll().sms
        assert sms is not None
        self.wait_shares.append(int(sms["wait_ns"].sum()) / (CORES * int(ends_ns[-1])))
        return float(np.median(np.diff(ends_ns)[WARM_STEPS - 1 :])) / 1e6


def bench_training(machine: Machine, peer: Peer, folder: Path, rounds: int) -> list[Ratio]:
    return [_bench_training_of(machine, name, peer, folder / f"{name}.npz", rounds) for name in PRESETS]


def _bench_training_of(machine: Machine, name: str, peer: Peer, file: Path, rounds: int) -> Ratio:
    config = run_config(name, WARM_STEPS + TURN_STEPS, (CORES, 0, 0))
    what, tokens = f"{name}, training", config.train.batch * config.model.context
    memory, rates = engine_for(config).memory, [learning_rate(s, config.train) for s in range(config.train.steps)]
    save_model(file, config, memory.weights(0), train=json.dumps(dataclasses.asdict(config.train)),
               train_tokens=config.train_tokens, windows=memory["train_windows"], rates=rates)
    ours = OurTraining(config)
    ours.turn()
    turns: dict[str, Turn] = {"ofa-tui": ours.turn}
    for compiled in (False, True):
        job, losses = _open_faster_optimizer(peer, file, compiled)
        _check_losses(what, job, ours.losses, losses)
        turns[job] = lambda job=job: statistics.median(peer.ask(run=job, count=TURN_STEPS)["ms"])
    times = compare(machine, what, "tokens/s", tokens, turns, rounds)
    print(f"{what:34} of a step its {CORES} SMs wait {100 * statistics.median(ours.wait_shares):.1f} %", flush=True)
    for job in list(turns)[1:]:
        peer.ask(close=job)
    return ratio(what, times, TRAIN_GOAL)


def _open_faster_optimizer(peer: Peer, file: Path, compiled: bool) -> tuple[str, list[float]]:
    """Opens training with the form of AdamW that is faster here; returns its name and its losses from step 0 on."""
    tried = {}
    for optimizer in ("fused", "foreach"):
        job = f"{'compiled' if compiled else 'eager'}, {optimizer}"
        peer.ask(**{"open": "train", "as": job}, path=str(file), compiled=compiled, threads=CORES,
                 optimizer=optimizer)
        tried[job] = peer.ask(run=job, count=WARM_STEPS + TURN_STEPS)
    best, worst = sorted(tried, key=lambda job: statistics.median(tried[job]["ms"]))
    peer.ask(close=worst)
    return best, tried[best]["losses"]


def _check_losses(what: str, job: str, ours: Sequence[float], theirs: Sequence[float]) -> None:
    """Raises OfaError unless the first losses are those of one and the same model."""
    first, most = abs(ours[0] - theirs[0]), max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    print(f"{what:34} {job:20} first loss {theirs[0]:.6f}, ofa-tui's {ours[0]:.6f}; "
          f"largest difference in {len(ours)} steps {most:.1e}", flush=True)
    if first > LARGEST_LOSS_DIFFERENCE:
        raise OfaError(f"{what}: the first losses differ by {first:.1e}, so that it is not the same model")


# --- decoding ---------------------------------------------------------------------------------------------------------


class OurDecoding:
    """CORES serving SMs at the weights of one training step, from the start of a story on."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self.tokens: list[int] = []
        self.weights: dict[str, np.ndarray] = {}

    def turn(self) -> float:
        engine = engine_for(self._config)
        served: list[ServedToken] = []

        def served_enough(snapshot: Snapshot) -> bool:
            new = [token for token in snapshot.served if token.version == 1]
            # Keys and values of the story that training found open are those of older weights.
            first = next((i for i, token in enumerate(new) if token.first), len(new))
            served.extend(new if served else new[first:])
            return len(served) > WARM_TOKENS + TURN_TOKENS

        run_until(engine, served_enough)
        self.tokens, self.weights = [token.token for token in served], engine.weights()
        return 1e3 * (served[WARM_TOKENS + TURN_TOKENS].seconds - served[WARM_TOKENS].seconds) / TURN_TOKENS


def bench_decoding(machine: Machine, peer: Peer, folder: Path, rounds: int) -> list[Ratio]:
    return [_bench_decoding_of(machine, name, peer, folder / f"{name}-decode.npz", rounds) for name in PRESETS]


def _bench_decoding_of(machine: Machine, name: str, peer: Peer, file: Path, rounds: int) -> Ratio:
    what = f"{name}, decoding"
    config = run_config(name, 1, (1, CORES, 0))
    ours = OurDecoding(config)
    ours.turn()
    save_model(file, config, ours.weights, end_of_text=config.tokenizer.end_of_text, vocab_used=config.tokenizer.size)
    turns: dict[str, Turn] = {"ofa-tui": ours.turn}
    for compiled, threads in itertools.product((False, True), range(1, CORES + 1)):
        job = f"{'compiled' if compiled else 'eager'}, {threads} thread{'s' * (threads > 1)}"
        peer.ask(**{"open": "decode", "as": job}, path=str(file), compiled=compiled, threads=threads)
        _check_tokens(what, job, ours.tokens, peer.ask(run=job, count=TURN_TOKENS)["tokens"])
        turns[job] = lambda job=job: peer.ask(run=job, count=TURN_TOKENS)["ms"] / TURN_TOKENS
    times = compare(machine, what, "tokens/s", 1, turns, rounds)
    for job in list(turns)[1:]:
        peer.ask(close=job)
    return ratio(what, times)


def _check_tokens(what: str, job: str, ours: Sequence[int], theirs: Sequence[int]) -> None:
    """Raises OfaError unless both begin with the same tokens: rounding may part them once two are equally likely."""
    equal = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(theirs))
    print(f"{what:34} {job:20} the first {equal} of {len(theirs)} tokens are the same as ofa-tui's", flush=True)
    if equal < FEWEST_EQUAL_TOKENS:
        raise OfaError(f"{what}: token {equal} differs, so that it is not the same model")


# --- drawing ----------------------------------------------------------------------------------------------------------


def bench_drawing(machine: Machine, asked: str | None, rounds: int) -> None:
    """Frames/s of view, status bar and text, with the copy of the frame before, while the scripted player plays."""
    found = search.search(asked)
    if not found.found:
        print(f"Doom, drawing: left out. {found.missing()}")
        return
    path = search.choose(found)
    wad = packed.load(path)
    palettes = np.stack([wad.palette(index) for index in range(packed.PALETTES)])
    episode, number = wad.episode_and_map(wad.maps[0])
    doom = DoomConfig(wad.blob.tobytes(), palettes, path.name, episode=episode, map=number)
    engine = engine_for(run_config(PRESETS[0], 1, (1, 0, 1), doom))
    engine.pause(True)  # training waits; tics run one by one as they are asked for
    engine.start()

    def turn() -> float:
        frames: list[Frame] = []
        while len(frames) < TURN_FRAMES:
            engine.step_tics(FRAMES_AT_A_TIME)
            wanted = len(frames) + FRAMES_AT_A_TIME
            while len(frames) < wanted:
                frames += engine.poll().frames
                time.sleep(0.005)
        return statistics.median(int(frame.status["render_ns"]) for frame in frames) / 1e6

    compare(machine, f"Doom, drawing {path.stem} {wad.maps[0]}", "frames/s", 1, {"ofa-tui": turn}, rounds)
    engine.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch-python", default="", metavar="PATH", help="an interpreter with PyTorch and NumPy")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each side")
    parser.add_argument("--patience", type=float, default=120, metavar="SECONDS", help="for quiet, in all")
    parser.add_argument("--only", default=",".join(PARTS), help="which parts, with commas between them")
    parser.add_argument("--wad", help="a WAD file, or the name of one in the usual places")
    options = parser.parse_args()
    if unknown := set(options.only.split(",")) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; the parts are {', '.join(PARTS)}")
    if options.rounds < 1:
        parser.error("at least one round is needed")
    if not 0 <= options.patience < float("inf"):
        parser.error(f"--patience {options.patience} is no number of seconds from 0 on")
    try:
        measure(options)
    except OfaError as error:
        raise SystemExit(f"bench_host.py: {error}") from None


def measure(options: argparse.Namespace) -> None:
    parts = options.only.split(",")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    machine = Machine(options.patience)
    python = find_peer(options.torch_python)
    ratios: list[Ratio] = []
    if "tile" in parts:
        ratios += bench_products(machine, options.rounds)
    if {"train", "decode"} & set(parts) and python:
        with tempfile.TemporaryDirectory() as folder, Peer(python) as peer:
            if "train" in parts:
                ratios += bench_training(machine, peer, Path(folder), options.rounds)
            if "decode" in parts:
                ratios += bench_decoding(machine, peer, Path(folder), options.rounds)
    elif {"train", "decode"} & set(parts):
        print(HOW_TO_GET_PEER)
    if "doom" in parts:
        bench_drawing(machine, options.wad, options.rounds)
    print()
    for each in ratios:
        print(each.line())


if __name__ == "__main__":
    main()
