#!/usr/bin/env python3
"""Trains a preset in PyTorch from ofa-tui's initial weights, on its windows in their order, and compares the losses.

    scripts/compare_training.py train OUT [--preset model-s] [--data FILE ...] [--valid FILE ...] [--tokenizer T]
    scripts/compare_training.py compare RECORD OUT [--plot FILE.png]

`train` needs a GPU, PyTorch (`pip install torch==2.13.0`) and ofa-tui's own packages in one interpreter. It writes
OUT/loss.csv and OUT/held_out.json: bf16 autocast over f4 weights, compiled, fused AdamW. `compare` needs no GPU:
RECORD is the folder of `ofa-tui --record` with the same options. Its plot needs `pip install matplotlib`.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ofa_tui.data.prepare import corpus_spec, model_for, prepare
from ofa_tui.engine.memory import initial_weights
from ofa_tui.engine.telemetry import learning_rate
from ofa_tui.engine.windows import train_windows, valid_windows
from ofa_tui.errors import OfaError
from ofa_tui.presets import preset
from ofa_tui.program.lowering import compile_programs
from ofa_tui.progress import Progress

SMOOTHED_OVER = 50
FROM_STEP = 200
"""Before it two runs that differ only in rounding may be further apart."""
TOLERANCE, HELD_OUT_TOLERANCE = 0.005, 0.02
"""Of smoothed losses, as a share; of held-out losses, in nats."""


def train(options: argparse.Namespace) -> int:
    import torch
    from bench_peer import Model

    chosen = preset(options.preset)
    corpus = prepare(corpus_spec(chosen, options.data, options.valid, options.tokenizer, options.steps),
                     Progress("preparing the text"))
    model_config = model_for(chosen, corpus)
    settings = dataclasses.replace(chosen.train, steps=options.steps or chosen.train.steps)
    context = model_config.context
    windows = train_windows(len(corpus.train_tokens), context, settings.batch, settings.steps, options.seed)

    programs = compile_programs(model_config, settings, games=0)
    shapes = {name: programs.buffers[name].shape for name in programs.parameters}
    file: dict[str, Any] = dict(initial_weights(shapes, settings.init_std, options.seed))
    file["config"] = json.dumps(dataclasses.asdict(model_config))
    model = Model(file).cuda()
    loss_of = torch.compile(model, dynamic=False)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    rate = torch.zeros((), device="cuda")
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, {"params": gains, "weight_decay": 0.0}], lr=rate, betas=(settings.beta1, settings.beta2),
        eps=settings.epsilon, weight_decay=settings.weight_decay, fused=True)
    tokens = torch.from_numpy(corpus.train_tokens.astype(np.int64)).cuda()
    places = torch.from_numpy(windows).cuda()[:, :, None] + torch.arange(context + 1, device="cuda")
    losses = torch.zeros(settings.steps, device="cuda")

    progress = Progress("training in PyTorch")
    began = time.monotonic()
    for step in range(settings.steps):
        rate.fill_(learning_rate(step, settings))
        rows = tokens[places[step]]
        with torch.autocast("cuda", torch.bfloat16):
            loss = loss_of(rows[:, :-1], rows[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        losses[step] = loss.detach()
        if step % 100 == 99:
            progress.update((step + 1) / settings.steps, f"step {step + 1}, loss {float(loss.detach()):.3f}")
    seconds = time.monotonic() - began
    progress.close(f"{settings.steps} steps in {seconds:.1f} s")

    options.out.mkdir(parents=True, exist_ok=True)
    with open(options.out / "loss.csv", "w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(("step", "loss"))
        writer.writerows(enumerate(losses.tolist()))
    held_out = held_out_loss(model, corpus.valid_tokens, context, settings.batch) if len(corpus.valid_tokens) else None
    facts = {"torch": torch.__version__, "gpu": torch.cuda.get_device_name(), "seconds": seconds, "held_out": held_out}
    (options.out / "held_out.json").write_text(json.dumps(facts) + "\n")
    print(f"{settings.steps} steps in {seconds:.1f} s, compiling included; held out {held_out}")
    return 0


def held_out_loss(model: Any, tokens: np.ndarray, context: int, batch: int) -> float:
    """Mean loss in nats of every token of every non-overlapping window of `tokens` i4 [n]."""
    import torch
    import torch.nn.functional as F

    ignored = -100
    padded = np.concatenate([tokens.astype(np.int64), np.full(context, ignored)])
    total, count = 0.0, 0
    for row in valid_windows(len(tokens), context, batch):
        at = row[row >= 0][:, None] + np.arange(context + 1)
        rows = torch.from_numpy(padded[at]).cuda()
        targets = rows[:, 1:].reshape(-1)
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
            logits = model.all_logits(rows[:, :-1].clamp(min=0)).float()
        total += float(F.cross_entropy(logits.flatten(0, 1), targets, ignore_index=ignored, reduction="sum"))
        count += int((targets != ignored).sum())
    return total / count


def read_losses(folder: Path) -> np.ndarray:
    """f8 [steps] of a folder's loss.csv."""
    with open(folder / "loss.csv", newline="") as file:
        return np.array([float(row["loss"]) for row in csv.DictReader(file)])


def smoothed(losses: np.ndarray) -> np.ndarray:
    """Mean over SMOOTHED_OVER steps up to each."""
    sums = np.cumsum(np.concatenate([[0.0], losses]))
    return (sums[SMOOTHED_OVER:] - sums[:-SMOOTHED_OVER]) / SMOOTHED_OVER


def compare(options: argparse.Namespace) -> int:
    ours, theirs = read_losses(options.record), read_losses(options.out)
    if len(ours) != len(theirs):
        raise OfaError(f"{len(ours)} losses are in {options.record}, {len(theirs)} in {options.out}; "
                       "compare runs of one length")
    if not np.isfinite(ours).all():
        raise OfaError(f"{options.record} has losses that are not finite")
    smooth, peer = smoothed(ours), smoothed(theirs)
    apart = np.abs(smooth / peer - 1)[max(0, FROM_STEP - SMOOTHED_OVER + 1):]
    held_out = json.loads((options.record / "summary.json").read_text()).get("held_out_loss")
    peer_held_out = json.loads((options.out / "held_out.json").read_text())["held_out"]
    ok = bool(apart.max() <= TOLERANCE)
    print(f"losses: first {ours[0]:.4f} and {theirs[0]:.4f}; smoothed over {SMOOTHED_OVER}, from step {FROM_STEP} on "
          f"{apart.max():.3%} apart at most, {apart.mean():.3%} on average (limit {TOLERANCE:.1%}); "
          f"mean of the last {SMOOTHED_OVER} {smooth[-1]:.4f} and {peer[-1]:.4f}")
    if held_out is not None and peer_held_out is not None:
        ok = ok and abs(held_out - peer_held_out) <= HELD_OUT_TOLERANCE
        print(f"held out: {held_out:.4f} and {peer_held_out:.4f} (limit {HELD_OUT_TOLERANCE} apart)")
    if options.plot:
        plot(options.plot, smooth, peer)
    return 0 if ok else 1


def plot(path: Path, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Both smoothed losses, and below them how far they are apart."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise OfaError("the plot needs matplotlib: pip install matplotlib") from None
    steps = np.arange(SMOOTHED_OVER - 1, SMOOTHED_OVER - 1 + len(ours))
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), height_ratios=(3, 1))
    above.plot(steps, theirs, label="PyTorch", linewidth=2.5, color="#bbbbbb")
    above.plot(steps, ours, label="ofa-tui", linewidth=1, color="#0055aa")
    above.set_ylabel(f"loss, nats a token, mean over {SMOOTHED_OVER} steps")
    above.legend()
    later = steps >= FROM_STEP
    below.plot(steps[later], 100 * (ours / theirs - 1)[later], linewidth=1, color="#0055aa")
    below.axhline(0, color="#bbbbbb", linewidth=0.8)
    below.set_ylabel("apart, %")
    below.set_xlabel("step")
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train", help="trains the preset in PyTorch")
    training.add_argument("out", type=Path)
    training.add_argument("--preset", default="model-s")
    training.add_argument("--data", type=Path, action="append", default=[])
    training.add_argument("--valid", type=Path, action="append", default=[])
    training.add_argument("--tokenizer", default="")
    training.add_argument("--steps", type=int, default=0)
    training.add_argument("--seed", type=int, default=1)
    comparing = commands.add_parser("compare", help="compares a record with it")
    comparing.add_argument("record", type=Path)
    comparing.add_argument("out", type=Path)
    comparing.add_argument("--plot", type=Path)
    options = parser.parse_args()
    try:
        return {"train": train, "compare": compare}[options.command](options)
    except OfaError as error:
        print(f"compare_training: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    raise SystemExit(main())
