"""The options of a run, as typed on the command line, checked before anything is built."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ofa_tui import abi
from ofa_tui.errors import OfaError
from ofa_tui.presets import ALL_BATCHES, PRESETS, Preset, preset

BACKENDS = ("auto", "host", "cuda")
KEEP = 3
HTTP_STREAMS = 4
"""With --http, where nothing else is said."""
TIMELINE_ENTRIES = 4096
KERNELS = ("auto", "portable", "sm80", "sm90")
TEXTS = {
    "--data": "a UTF-8 text (.txt, .txt.xz or .txt.zst), or a folder of such texts",
    "--valid": "a UTF-8 text (.txt, .txt.xz or .txt.zst)",
}
"""What the options that name text take."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides what a run does; written whole into run.json."""

    preset: Preset
    backend: str
    kernel: str
    """Form of the GPU kernel."""
    steps: int
    sweep_every: int
    """Steps between two held-out sweeps, 0 for none."""
    sweep_batches: int
    """Batches of each, or presets.ALL_BATCHES."""
    data: tuple[Path, ...]
    valid: tuple[Path, ...]
    tokenizer: str
    sms: tuple[int, int, int]
    """Blocks for train, serve, Doom."""
    sms_asked: bool
    """Whether they were given with --sms; else a GPU divides its own."""
    seed: int
    prompt: str
    temperature: float
    top_k: int
    top_p: float
    tokens_per_s: float
    """Pace of each stream, 0 for as fast as it goes."""
    streams: int
    """Stories that can be told at the same time."""
    telling: int
    """The first so many streams begin a story when one ends; the others rest until a prompt comes."""
    wad: Path | None
    map: str
    """`E1M1`, `MAP01`, or empty for the WAD's first."""
    skill: int
    player: str
    dooms: int
    """Games side by side."""
    tics_per_s: float
    """35, or 0 for as fast as it goes."""
    events: Path | None
    sampling_asked: bool
    """Whether one of temperature, top-k and top-p was given; else a run that is resumed keeps its own."""
    resume: Path | None
    """The checkpoint that the run goes on from."""
    init: Path | None
    """A safetensors file with the weights to begin with."""
    checkpoints: Path | None
    """Folder to write checkpoints to; None for one of the run's own."""
    checkpoint_every: int
    """Steps, 0 for none in between."""
    checkpoint_at_start: bool
    checkpoint_at_end: bool
    """Also without `checkpoint_every`, with which the end is always kept."""
    keep: int
    timeline: int
    """Tasks of each SM that the kernel keeps the times of, 0 for none."""

    @property
    def writes_checkpoints(self) -> bool:
        return bool(self.checkpoints or self.checkpoint_every or self.checkpoint_at_start or self.checkpoint_at_end)

    def as_dict(self) -> dict[str, object]:
        """Plain values, ready for JSON."""
        plain = dataclasses.asdict(self)
        for key in ("data", "valid"):
            plain[key] = [str(path) for path in plain[key]]
        for key in ("wad", "events", "resume", "init", "checkpoints"):
            plain[key] = str(plain[key]) if plain[key] else None
        return plain


def named_path(text: str) -> Path:
    """For argparse: an empty text would be the working directory."""
    if not text:
        raise argparse.ArgumentTypeError("an empty name is no path")
    return Path(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    run = parser.add_argument_group("the run")
    run.add_argument("--preset", metavar="P", help=f"model and training preset: {', '.join(PRESETS)}")
    run.add_argument("--steps", type=int, metavar="N", help="training steps (default: the preset's)")
    run.add_argument("--sweep-every", type=int, metavar="STEPS",
                     help="steps between two held-out sweeps (default: the preset's); 0 for none but the last")
    run.add_argument("--sweep-batches", metavar="N|all",
                     help="batches of each (default: the preset's); the last one is always over all")
    run.add_argument("--backend", default="auto", choices=BACKENDS, help="where the kernel runs (default: auto)")
    run.add_argument("--kernel", default="auto", choices=KERNELS,
                     help="form of the GPU kernel (default: the fastest that trains the model)")
    run.add_argument("--sms", metavar="train=2,serve=1,doom=1", help="SMs (on the host: threads) per role")
    run.add_argument("--seed", type=int, metavar="N",
                     help="weights, data order, sampling, Doom (default: 1)")
    run.add_argument("--events", type=named_path, metavar="FILE",
                     help="play back an events.jsonl: moves at their step, prompts at their token, Doom at its tic")

    run.add_argument("--timeline", type=int, nargs="?", const=TIMELINE_ENTRIES, default=0, metavar="TASKS",
                     help="keep when each SM ran which task, so many tasks of each until they are read (default: "
                          f"{TIMELINE_ENTRIES})")

    text = parser.add_argument_group("text")
    text.add_argument("--data", type=named_path, action="append", default=[], metavar="FILE|FOLDER",
                      help="train on this UTF-8 text (.txt, .xz, .zst), repeatable; default: generated stories")
    text.add_argument("--valid", type=named_path, action="append", default=[], metavar="FILE",
                      help="held-out text, repeatable; default: *.valid.* files of a folder, else the last 10 %%")
    text.add_argument("--tokenizer", metavar="T", help="bytes, bpe:N, gpt2 or a tokenizer JSON file")

    serve = parser.add_argument_group("serving")
    serve.add_argument("--prompt", default="", metavar="TEXT", help="what the first story begins with, and only it")
    serve.add_argument("--temperature", type=float, metavar="T", help="0 picks the likeliest (default: 0.8)")
    serve.add_argument("--top-k", type=int, metavar="K", help="sample among the K likeliest; 0 = all (default)")
    serve.add_argument("--top-p", type=float, metavar="P", help="nucleus sampling (default: 0.95)")
    serve.add_argument("--token-rate", default=None, metavar="N|max",
                       help="tokens per second of each stream (default on the host: 40)")
    serve.add_argument("--streams", type=int, metavar="N",
                       help=f"stories told at the same time, 1 to {abi.MAX_STREAMS} (default: 1; with --http "
                            f"{HTTP_STREAMS}, of which all but the first are for clients)")

    kept = parser.add_argument_group("checkpoints")
    kept.add_argument("--checkpoint-every", type=int, metavar="STEPS",
                      help="write one after every so many steps, and at the end; 0: no more of a run that is resumed")
    kept.add_argument("--checkpoint-at-end", action="store_true", help="write one at the end, also after a signal")
    kept.add_argument("--checkpoint-at-start", action="store_true", help="write one before the first step")
    kept.add_argument("--checkpoints", type=named_path, metavar="DIR",
                      help="where (default: checkpoints in the record's folder, or beside the one that is resumed); "
                           "alone: at the end")
    kept.add_argument("--keep", type=int, metavar="K",
                      help=f"newest ones of this run that stay, beside one of step 0 (default: {KEEP})")
    kept.add_argument("--resume", type=named_path, metavar="FILE|DIR",
                      help="go on from a checkpoint, or from the newest whole one of a folder, bit for bit; "
                           "checkpoints go on as before")
    kept.add_argument("--init", type=named_path, metavar="FILE", help="begin with the weights of any safetensors file")

    doom = parser.add_argument_group("Doom")
    doom.add_argument("--wad", type=named_path, metavar="FILE", help="IWAD to play (default: searched for)")
    doom.add_argument("--map", default="", metavar="E1M1",
                      help="first map (default: the WAD's first); each further game begins one later")
    doom.add_argument("--skill", type=int, default=3, metavar="1-5", help="difficulty (default: 3)")
    doom.add_argument("--player", default="explore", metavar="NAME", help="scripted player (default: explore)")
    doom.add_argument("--dooms", type=int, metavar="N",
                      help=f"games side by side, 1 to {abi.MAX_GAMES} (default: one per Doom SM)")
    doom.add_argument("--doom-speed", default="35", metavar="N|max", help="tics per second (default: 35)")


def parse_sms(text: str) -> tuple[int, int, int]:
    """`train=2,serve=1,doom=1` → (2, 1, 1). Roles left out get 1. Raises OfaError for a split that cannot be."""
    counts = {"train": 1, "serve": 1, "doom": 1}
    for part in text.split(","):
        role, _, number = part.partition("=")
        role = role.strip()
        if role not in counts or not (number.strip().isascii() and number.strip().isdigit()):
            raise OfaError(f"--sms {text!r} is not a split; write for example --sms train=2,serve=1,doom=1")
        counts[role] = int(number)
    if counts["train"] < 1:
        raise OfaError(f"--sms {text!r} leaves training without an SM; give it at least train=1")
    if sum(counts.values()) > abi.MAX_SMS:
        raise OfaError(f"--sms {text!r} asks for {sum(counts.values())} SMs; at most {abi.MAX_SMS} are possible")
    return counts["train"], counts["serve"], counts["doom"]


def _rate(option: str, text: str) -> float:
    if text == "max":
        return 0.0
    try:
        rate = float(text)
    except ValueError:
        rate = -1.0
    if not 0 < rate < 1e9:
        raise OfaError(f"{option} {text!r} is not a rate; write a number per second, or max")
    return rate


def _count(option: str, number: int | None, default: int) -> int:
    if number is not None and not 0 <= number < 2**40:
        raise OfaError(f"{option} {number} cannot be; give 0 or more")
    return default if number is None else number


def _sweep_batches(text: str | None, default: int) -> int:
    if text is None:
        return default
    if text == "all":
        return ALL_BATCHES
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= ALL_BATCHES:
        raise OfaError(f"--sweep-batches {text!r} cannot be; give at least 1, or all")
    return int(text)


def _with_those_of(args: argparse.Namespace, before: Mapping[str, Any]) -> argparse.Namespace:
    """The arguments, and in place of those not given the ones of the run that is resumed.

    It goes on writing checkpoints as that run did, into the folder of the one that it is resumed from.
    """
    every = before["checkpoint_every"] if args.checkpoint_every is None else args.checkpoint_every
    at_end = args.checkpoint_at_end or before["checkpoint_at_end"]
    writes = every or at_end or args.checkpoint_at_start
    return argparse.Namespace(**vars(args) | {
        "preset": args.preset or before["preset"],
        "steps": before["steps"] if args.steps is None else args.steps,
        "seed": before["seed"] if args.seed is None else args.seed,
        "streams": before.get("streams", 1) if args.streams is None else args.streams,
        "sweep_every": before["sweep_every"] if args.sweep_every is None else args.sweep_every,
        "sweep_batches": args.sweep_batches or str(before["sweep_batches"]),
        "tokenizer": args.tokenizer or before["tokenizer"],
        "data": args.data or before["data"],
        "valid": args.valid or ([] if args.data else before["valid"]),
        "checkpoints": args.checkpoints or (args.resume.parent if writes else None),
        "checkpoint_every": every,
        "checkpoint_at_end": at_end,
        "keep": args.keep or before["keep"],
    })


def _check_checkpoints(args: argparse.Namespace) -> None:
    least = 0 if args.resume else 1  # 0 ends what the run that is resumed did
    if args.checkpoint_every is not None and not least <= args.checkpoint_every < 2**40:
        raise OfaError(f"--checkpoint-every {args.checkpoint_every} cannot be; give at least 1 step")
    if args.keep is not None and not 1 <= args.keep < 2**31:
        raise OfaError(f"--keep {args.keep} cannot be; keep at least 1")
    if args.resume and args.init:
        raise OfaError("--resume and --init cannot both say with which weights to begin; leave one out")
    if args.checkpoints is not None and os.path.exists(args.checkpoints) and not os.path.isdir(args.checkpoints):
        raise OfaError(f"--checkpoints {args.checkpoints} is a file; give a folder")
    if args.init is not None and os.path.isdir(args.init):
        raise OfaError(f"--init {args.init} is a folder; name one of its safetensors files")
    if args.init is not None and not os.path.isfile(args.init):
        raise OfaError(f"there is no file {args.init}; give --init a safetensors file")


def from_arguments(
    args: argparse.Namespace, default_preset: str = "tiny", before: Mapping[str, Any] | None = None
) -> Settings:
    """Checked settings. `before`: those of the run that is resumed (Checkpoint.options).

    Raises OfaError with the first thing that cannot be.
    """
    _check_checkpoints(args)
    args.checkpoint_at_end |= args.checkpoints is not None and not args.checkpoint_at_start
    if before is not None:
        args = _with_those_of(args, before)
    sampling_asked = (args.temperature, args.top_k, args.top_p) != (None, None, None)
    args.seed = 1 if args.seed is None else args.seed
    args.temperature = 0.8 if args.temperature is None else args.temperature
    args.top_k = args.top_k or 0
    args.top_p = 0.95 if args.top_p is None else args.top_p
    chosen = preset(args.preset or default_preset)
    steps = chosen.train.steps if args.steps is None else args.steps
    if not 1 <= steps < 2**40:
        raise OfaError(f"--steps {steps} cannot be; give at least 1")
    if not 1 <= args.skill <= 5:
        raise OfaError(f"--skill {args.skill} cannot be; choose 1 (easiest) to 5 (nightmare)")
    if not 0 <= args.seed < 2**31:
        raise OfaError(f"--seed {args.seed} cannot be; choose 0 to {2**31 - 1}")
    if not 0 <= args.temperature <= 100:
        raise OfaError(f"--temperature {args.temperature} cannot be; choose 0 (greedy) to 100")
    if not 0 < args.top_p <= 1:
        raise OfaError(f"--top-p {args.top_p} cannot be; choose a number above 0, at most 1")
    if not 0 <= args.top_k < 2**31:
        raise OfaError(f"--top-k {args.top_k} cannot be; choose 0 (all) or a number of tokens")
    if args.timeline and args.timeline not in abi.TIMELINE_SIZES:
        raise OfaError(f"--timeline {args.timeline} cannot be; choose a power of two from {abi.TIMELINE_SIZES[0]} to "
                       f"{abi.TIMELINE_SIZES[-1]}")
    if args.dooms is not None and not 1 <= args.dooms <= abi.MAX_GAMES:
        raise OfaError(f"--dooms {args.dooms} cannot be; choose 1 to {abi.MAX_GAMES}, or none with --sms doom=0")
    http = getattr(args, "http", None) is not None
    streams = (HTTP_STREAMS if http else 1) if args.streams is None else args.streams
    if not 1 <= streams <= abi.MAX_STREAMS:
        raise OfaError(f"--streams {streams} cannot be; choose 1 to {abi.MAX_STREAMS}")
    sms = chosen.sms if args.sms is None else parse_sms(args.sms)
    for option, paths in (("--data", args.data), ("--valid", args.valid)):
        for path in paths:
            if not os.path.exists(path):
                raise OfaError(f"{option} {path} names no file or folder that is there; give {TEXTS[option]}")
    return Settings(
        preset=chosen,
        backend=args.backend,
        kernel=args.kernel,
        steps=steps,
        sweep_every=_count("--sweep-every", args.sweep_every, chosen.train.sweep_every),
        sweep_batches=_sweep_batches(args.sweep_batches, chosen.train.sweep_batches),
        data=tuple(args.data),
        valid=tuple(args.valid),
        tokenizer=args.tokenizer or chosen.tokenizer,
        sms=sms,
        sms_asked=args.sms is not None,
        seed=args.seed,
        prompt=args.prompt,
        temperature=args.temperature,
        top_k=args.top_k,
        top_p=args.top_p,
        tokens_per_s=40.0 if args.token_rate is None else _rate("--token-rate", args.token_rate),
        streams=streams,
        telling=1 if http else streams,
        wad=args.wad,
        map=args.map.upper(),
        skill=args.skill,
        player=args.player,
        dooms=max(1, min(sms[2], abi.MAX_GAMES)) if args.dooms is None else args.dooms,
        tics_per_s=_rate("--doom-speed", args.doom_speed),
        events=args.events,
        sampling_asked=sampling_asked,
        resume=args.resume,
        init=args.init,
        checkpoints=args.checkpoints,
        checkpoint_every=args.checkpoint_every or 0,
        checkpoint_at_start=args.checkpoint_at_start,
        checkpoint_at_end=args.checkpoint_at_end,
        keep=args.keep or KEEP,
        timeline=args.timeline,
    )
