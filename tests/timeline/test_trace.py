"""`ofa-tui trace` end to end on virtual SMs: the file, the table, the way through a record, what cannot be."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from ofa_tui.cli import main
from ofa_tui.record.timeline_log import NAME, ROW

RUN = ["--preset", "tiny", "--backend", "host", "--steps", "6", "--sms", "train=2,serve=1,doom=0"]


def check_trace(path: Path) -> dict[tuple[int, int], list[dict]]:
    """The slices of each track, after a look at everything that the format and we ask of them."""
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    tracks: dict[tuple[int, int], list[dict]] = defaultdict(list)
    names = {}
    for event in events:
        assert isinstance(event["pid"], int) and isinstance(event["tid"], int) and isinstance(event["name"], str)
        if event["ph"] == "X":
            assert event["ts"] >= 0 and event["dur"] >= 0 and isinstance(event["args"], dict)
            tracks[event["pid"], event["tid"]].append(event)
        elif event["name"] == "thread_name":
            names[event["pid"], event["tid"]] = event["args"]["name"]
    assert set(tracks) <= set(names)
    for slices in tracks.values():
        slices.sort(key=lambda event: (event["ts"], event["dur"]))
        for before, after in itertools.pairwise(slices):
            assert round(1000 * before["ts"]) + round(1000 * before["dur"]) <= round(1000 * after["ts"])
    assert [names[0, sm] for sm in range(3)] == ["SM 0 train", "SM 1 train", "SM 2 serve"]
    return tracks


def sums(text: str) -> dict[str, list[float]]:
    """By role: the shares of a printed table."""
    found: dict[str, list[float]] = {}
    for table in text.split("\n\n")[:-1]:
        role = table.partition(":")[0]
        found[role] = [float(share) for share in re.findall(r" ([\d.]+)%(?:\s|$)", "\n".join(
            re.sub(r"(%).*", r"\1", line) for line in table.splitlines()[2:]))]
    return found


def test_a_run_is_traced(tmp_path, capsys):
    out = tmp_path / "trace.json"
    assert main(["trace", *RUN, "--last", "4", "-o", str(out)]) == 0
    text = capsys.readouterr().out
    assert "train: 2 SMs, 4 steps in " in text and "limits: measured just now" in text
    for shares in sums(text).values():
        assert shares[-1] == 100.0 and sum(shares[:-1]) == pytest.approx(100, abs=0.05 * len(shares))
    tracks = check_trace(out)
    assert [event["name"] for event in tracks[1, 1]] == [f"step {step}" for step in range(2, 6)]
    tiles = [event["args"] for sm in (0, 1) for event in tracks[0, sm] if event["cat"] == "fc1"]
    assert len({(args["iteration"], args["task"]) for args in tiles}) == len(tiles) == 4 * 128
    assert all(len(args["tile"]) == 4 for args in tiles)


def test_a_record_keeps_its_timeline(tmp_path, capsys):
    record, out = tmp_path / "record", tmp_path / "trace.json"
    assert main([*RUN, "--sweep-batches", "1", "--timeline", "--record", str(record)]) == 0
    rows = (record / NAME).stat().st_size // ROW.itemsize
    assert main(["trace", str(record), "--last", "100", "-o", str(out)]) == 0
    tracks = check_trace(out)
    assert sum(event["cat"] != "waiting" for (pid, _), events in tracks.items() if pid == 0 for event in events) == rows
    with (record / NAME).open("ab") as file:
        file.write(b"half a row")
    assert main(["trace", str(record), "--last", "100", "-o", str(out)]) == 0
    (record / NAME).unlink()
    capsys.readouterr()
    assert main(["trace", str(record), "-o", str(out)]) == 2
    assert capsys.readouterr().err == f"ofa-tui: {record} holds no timeline; record one with --timeline\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--last", "0"], "--last 0 cannot be; show at least 1 step"),
        (["--timeline", "100"], "--timeline 100 cannot be; choose a power of two from 64 to 1048576"),
        (["nowhere"], "nowhere names no folder that is there; give the folder that --record wrote"),
        (["--checkpoint-at-end"], "trace writes no checkpoints; leave out the options that ask for them"),
        (["--steps", "0"], "--steps 0 cannot be; give at least 1"),
    ],
)
def test_what_cannot_be_is_one_sentence(arguments, sentence, capsys):
    assert main(["trace", *arguments]) == 2
    assert capsys.readouterr().err == f"ofa-tui: {sentence}\n"


def test_a_place_where_no_trace_can_be_is_refused_before_the_run(tmp_path, capsys) -> None:
    assert main(["trace", *RUN, "-o", str(tmp_path / "missing" / "trace.json")]) == 2
    said = capsys.readouterr().err
    assert "cannot write the trace" in said and "running" not in said
