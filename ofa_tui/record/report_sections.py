"""The sections of a report: each takes a recorded run and gives a heading and HTML."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui import abi
from ofa_tui.engine.protocol import ServedToken
from ofa_tui.progress import duration
from ofa_tui.record.events import to_line
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report_html import Html, element, joined, picture, table
from ofa_tui.record.report_plots import READINGS, Plot, reading_names, readings_of, roles_of, svg_of

TEXTS, TEXT_CHARACTERS = 6, 700
PICTURES, PICTURE_BYTES = 12, 1 << 20
EVENTS, TASK_TYPES = 100, 12
PNG_MARK = b"\x89PNG\r\n\x1a\n"

FIGURES: tuple[tuple[str, str, str], ...] = (
    ("steps", "steps", ",d"),
    ("tokens_trained", "tokens trained", ",d"),
    ("tokens_per_s", "training tokens/s, from the launch to the last step", ",.0f"),
    ("first_loss", "first loss", ".4f"),
    ("last_loss", "last loss", ".4f"),
    ("mean_last_20", "mean of the last 20 losses", ".4f"),
    ("held_out_loss", "held-out loss", ".4f"),
    ("held_out_step", "measured after step", ",d"),
    ("tokens_served", "tokens served", ",d"),
    ("frames", "Doom frames drawn", ",d"),
    ("frames_per_s", "Doom frames/s, from the first frame to the last", ".2f"),
    ("seconds", "seconds", ",.1f"),
)
"""Of summary.json: key, label, format."""


@dataclass(frozen=True)
class Section:
    heading: str
    content: Html


def sections(run: RecordedRun, plots: Sequence[Plot], reference: RecordedRun | None) -> Iterator[Section]:
    """All that the record has something for, in the order of the page."""
    parts: list[tuple[str, Callable[[], Html]]] = [
        ("What ran", lambda: what_ran(run)),
        ("Figures", lambda: figures(run, reference)),
        ("Partition of the SMs", lambda: joined([partition(run), drawn(plots, "roles", "busy")])),
        ("Loss", lambda: joined([drawn(plots, "loss"), comparison(run, reference) if reference else Html("")])),
        ("Throughput", lambda: drawn(plots, "tokens", "served", "frames")),
        ("What the model wrote", lambda: texts(run)),
        ("Doom", lambda: doom_strip(run)),
        ("Telemetry", lambda: joined([drawn(plots, "reading-"), task_times(run)])),
        ("Steering", lambda: steering(run)),
        ("Environment", lambda: environment(run)),
        ("Inputs", lambda: inputs(run)),
        ("What was measured, and what was not", lambda: measured(run)),
    ]
    for heading, content in parts:
        if html := content():
            yield Section(heading, html)


def drawn(plots: Sequence[Plot], *names: str) -> Html:
    """The plots of these names, or whose names begin so."""
    return joined(Html(svg_of(plot)) for plot in plots if plot.name.startswith(names))


# --- what ran -------------------------------------------------------------------------------------------------------


def what_ran(run: RecordedRun) -> Html:
    info = run.info
    rows = [
        ("preset", info.preset),
        ("parameters", _format(info.parameters, ",d")),
        ("on", f"{info.device}, {info.n_sms} SMs, {info.backend}"),
        ("steps", f"{_format(info.steps, ',d')} of {_format(info.tokens_per_step, ',d')} tokens"),
        ("context", f"{_format(info.context, ',d')} tokens"),
        ("seed", info.seed),
        ("games of Doom", f"{info.games}, {info.wad}" if info.games else f"none; {info.doom_missing}"),
        ("started", run.run.get("started", "")),
        ("took", duration(run.seconds) if math.isfinite(run.seconds) else "unknown"),
        ("the record ends", run.ending),
        *(("note", note) for note in info.notes),
    ]
    return joined([table([], rows), _details("all settings", run.run.get("settings"))])


def _details(label: str, values: Any) -> Html:
    rows = list(flat(values))
    return element("details", element("summary", label), table([], rows)) if rows else Html("")


def flat(values: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, text) of every plain value inside objects and lists, and of empty ones.

    Of an absolute path it is the last name: a page that is passed on need not tell where its owner keeps things.
    """
    inner = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, value in inner:
        dotted = f"{name}.{key}" if name else str(key)
        if isinstance(value, dict | list) and value:
            yield from flat(value, dotted)
        else:
            yield dotted, _plain_text(value)


def _plain_text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, int) and abs(value) >= 100_000:
        return f"{value:,}"
    return Path(value).name if _is_place(value) else str(value)


def _is_place(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("/")


def figures(run: RecordedRun, reference: RecordedRun | None) -> Html:
    runs = [run] if reference is None else [run, reference]
    rows = [(label, *(_format(each.summary.get(key), form) for each in runs)) for key, label, form in FIGURES]
    return table(["", "this run", *(["reference"] if reference else [])], rows)


def _format(value: Any, form: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    return format(int(value) if form.endswith("d") and math.isfinite(value) else float(value), form) \
        if math.isfinite(value) else str(value)


# --- partition and telemetry ----------------------------------------------------------------------------------------


def partition(run: RecordedRun) -> Html:
    """A row for every time that the split changed, as far as the samples show it."""
    rows: list[list[str]] = []
    for sample in run.samples:
        roles = roles_of(sample)
        counts = [str(roles.count(role)) for role in abi.ROLES]
        if roles and (not rows or rows[-1][2:] != counts):
            rows.append([f"{float(sample['seconds']):,.1f}", _format(sample.get("step"), ",d"), *counts])
    return table(["from second", "step", *abi.ROLES], rows) if rows else Html("")


def task_times(run: RecordedRun) -> Html:
    """Seconds of all SMs together, by task type."""
    totals: dict[str, float] = {}
    for sample in run.samples:
        spent = sample.get("op_seconds")
        for name, seconds in spent.items() if isinstance(spent, dict) else ():
            if isinstance(seconds, int | float) and math.isfinite(seconds):
                totals[str(name)] = totals.get(str(name), 0.0) + seconds
    whole = sum(totals.values())
    order = sorted(totals, key=lambda name: -totals[name])[:TASK_TYPES]
    rows = [(name, f"{totals[name]:,.3f}", f"{100 * totals[name] / whole:.1f} %") for name in order if whole > 0]
    return table(["task type", "seconds of all SMs", "share"], rows) if rows else Html("")


def steering(run: RecordedRun) -> Html:
    lines = [to_line(applied) for applied in run.events]
    left = len(lines) - EVENTS
    note = [element("small", f"and {left:,} more in events.jsonl")] if left > 0 else []
    return joined([element("pre", "\n".join(lines[:EVENTS])), *note]) if lines else Html("")


# --- comparison -----------------------------------------------------------------------------------------------------


def comparison(run: RecordedRun, reference: RecordedRun) -> Html:
    """Losses at the same steps, and the settings that differ."""
    ours, theirs = ({entry.step: entry.loss for entry in each.losses} for each in (run, reference))
    steps = sorted(ours.keys() & theirs.keys())
    settings = [dict(flat(each.run.get("settings"))) for each in (run, reference)]
    names = [name for name in settings[0] | settings[1] if settings[0].get(name) != settings[1].get(name)]
    name = reference.folder.resolve().name
    parts = [element("p", f"The reference is {name}. ", _loss_differences(steps, ours, theirs))]
    if names:
        rows = [(name, *(each.get(name, "–") for each in settings)) for name in names]
        parts.append(table(["setting that differs", "this run", "reference"], rows))
    else:
        parts.append(element("p", "All settings are the same."))
    return joined(parts)


def _loss_differences(steps: list[int], ours: dict[int, float], theirs: dict[int, float]) -> str:
    if not steps:
        return "No step is in both."
    equal = sum(ours[step] == theirs[step] for step in steps)
    if equal == len(steps):
        return f"All {len(steps):,} losses of the steps in both are bit for bit equal."
    apart = np.array([abs(ours[step] - theirs[step]) / abs(theirs[step]) for step in steps if theirs[step]])
    apart = apart[np.isfinite(apart)]
    said = f"Of {len(steps):,} steps in both, {equal:,} have bit for bit equal losses"
    if not len(apart):
        return f"{said}."
    return f"{said}; they are {100 * apart.mean():.2f} % apart on average, {100 * apart.max():.2f} % at most."


# --- texts and pictures ---------------------------------------------------------------------------------------------


def evenly(values: Sequence[Any], most: int) -> list[Any]:
    """At most so many of them, the first and the last among them."""
    if len(values) <= most:
        return list(values)
    return [values[round(index * (len(values) - 1) / (most - 1))] for index in range(most)]


def texts(run: RecordedRun) -> Html:
    """Stories from the first weights to the last, each as it was served."""
    stories: dict[int, list[ServedToken]] = {}
    for token in run.served:
        stories.setdefault(token.story, []).append(token)
    written = [tokens for tokens in stories.values() if any(str(token.text).strip() for token in tokens)]
    return joined(_story(tokens, run.info.streams) for tokens in evenly(written, TEXTS))


def _story(tokens: list[ServedToken], streams: int) -> Html:
    first, last = tokens[0], tokens[-1]
    weights = f"weights v{first.version}" + (f" to v{last.version}" if last.version != first.version else "")
    pieces, length = [], 0
    for token in tokens:
        piece = str(token.text)[: TEXT_CHARACTERS - length]
        length += len(piece)
        pieces.append(element("b", piece) if token.from_prompt else piece)
    cut = "…" if length >= TEXT_CHARACTERS else ""
    stream = f" of stream {first.stream}" if streams > 1 else ""
    label = f"{weights} · story {first.story}{stream} · {len(tokens):,} tokens"
    return joined([element("small", label), element("pre", *pieces, cut)])


def doom_strip(run: RecordedRun) -> Html:
    """Frames of the first game, from the first kept to the last."""
    files = sorted(path for path in (run.folder / "frames").glob("*.png") if path.stem.isdigit())
    figures = [picture(data, f"tic {int(path.stem):,}") for path in evenly(files, PICTURES) if (data := _png(path))]
    return element("div", *figures, class_="strip") if figures else Html("")


def _png(path: Path) -> bytes:
    """The file; nothing where it is not a whole small PNG."""
    try:
        data = path.read_bytes() if path.stat().st_size <= PICTURE_BYTES else b""
    except OSError:
        return b""
    return data if data.startswith(PNG_MARK) else b""


# --- where, from what, and what is known ----------------------------------------------------------------------------


def environment(run: RecordedRun) -> Html:
    rows = [("ofa-tui", str(run.run.get("version", "unknown")))]
    for part in ("machine", "gpu"):
        rows += [(f"{part} {name}", value) for name, value in flat(run.run.get(part))]
    return table([], rows)


def inputs(run: RecordedRun) -> Html:
    """Hashes and sizes of all that went in, and what was made of it."""
    rows = [(f"{part} {name}", value) for part in ("corpus", "wad", "resumed") for name, value in
            flat(run.run.get(part))]
    if "init" in run.run:
        rows.append(("init", str(run.run["init"])))
    programs = run.run.get("program")
    rows += [("program", str(line)) for line in (programs if isinstance(programs, list) else [])]
    return table([], rows) if rows else Html("")


def measured(run: RecordedRun) -> Html:
    has, lacks = _known(run), _unknown(run)
    return joined([
        element("h3", "Measured"), element("ul", *(element("li", line) for line in has)),
        element("h3", "Not measured"), element("ul", *(element("li", line) for line in lacks)),
    ])


def _known(run: RecordedRun) -> list[str]:
    summary, complete = run.summary, [sweep for sweep in run.sweeps if sweep.complete]
    lines = [
        (len(run.losses), "training losses, one a step, as the kernel computed them"),
        (len(run.sweeps), f"held-out losses, {len(complete):,} of them over every held-out window"),
        (len(run.samples), "samples of throughput and of the SMs, about one a second; rates are of the last second"),
        (len(run.served), "served tokens, each with the version of the weights that made it"),
        (summary.get("frames_kept") or 0, "frames of the first game"),
        (len(run.events), "event, with the step, token or tic at which it took effect" if len(run.events) == 1
         else "events, with the step, token or tic at which they took effect"),
    ]
    readings = ", ".join(READINGS.get(name, (name,))[0] for name in reading_names(run))
    known = [f"{_format(count, ',d')} {what}" for count, what in lines if count]
    return [*known, *([f"readings of the machine: {readings}"] if readings else [])] or ["nothing"]


def _unknown(run: RecordedRun) -> Iterator[str]:
    if not run.complete:
        yield f"the rest of the run: the record ends {run.ending}"
    if run.damage:
        yield f"all of the record: {run.damage}"
    if not any(sweep.complete for sweep in run.sweeps):
        yield "held-out loss over every window: " + (
            "the sweeps took a part of the held-out text each" if run.sweeps else "no sweep was finished")
    if wrong := sum(not math.isfinite(entry.loss) for entry in run.losses):
        yield f"{wrong:,} losses are not finite numbers and are in no plot"
    if not run.served:
        yield "serving: no token was served"
    if not run.info.games:
        yield "Doom: no game ran"
    elif missed := _missed_frames(run):
        yield f"{missed:,} frames of the first game, which were drawn but not kept"
    if run.info.games > 1:
        yield "most frames of the other games: one a second of each is kept"
    lacking = [label for name, (label, _, _) in READINGS.items()
               if not any(name in readings_of(sample) for sample in run.samples)]
    if lacking:
        yield f"readings that this machine did not give: {', '.join(lacking)}"
    yield "what another program on the machine did meanwhile, and how the figures vary from run to run: this is one run"


def _missed_frames(run: RecordedRun) -> int:
    kept, drawn = run.summary.get("frames_kept"), run.summary.get("frames")
    return max(0, drawn - kept) if isinstance(kept, int) and isinstance(drawn, int) else 0
