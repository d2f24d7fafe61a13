"""Pane 6: what is written down of a run, and how it is looked through."""

from __future__ import annotations

from dataclasses import replace

import pytest
from app_session import session, steady  # noqa: F401

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event, Saved, Snapshot, SweepLoss
from ofa_tui.engine.steering import float_bits
from ofa_tui.tui.run_log import MOST_ENTRIES, RunLog, event_text

pytestmark = pytest.mark.usefixtures("steady")

SAMPLING = (float_bits(0.5), float_bits(0.25), 40, abi.ALL_STREAMS)
ACTS = {
    "set_role": (Event("set_role", "step", 0, 5, (abi.SERVE,)), "SM 5 → serve", "SM 5 → serve"),
    "prompt": (Event("prompt", "token", 0, 1, (3, 0), "a\n  b"), "prompt “a b”", "stream 1: prompt “a b”"),
    "sampling": (Event("sampling", "token", 0, 7, SAMPLING), *["temperature 0.5, top-p 0.25, top-k 40, seed 7"] * 2),
    "end_story": (Event("end_story", "token", 0, 1), "the story ends", "stream 1: the story ends"),
    "behaviour": (Event("behaviour", "tic", 0, 1, (1,)), "the player is to hunt", "game #1: the player is to hunt"),
    "keys": (Event("keys", "tic", 0, 1, (50, 0, 0, 0)), "a person plays", "game #1: a person plays"),
    "new_game": (Event("new_game", "tic", 0, 1, (1, 2, 3, 4)), "a new game", "game #1: a new game"),
    "rewind": (Event("rewind", "tic", 0, 1, (-5,)), "5 s forward", "game #1: 5 s forward"),
    "automap": (Event("automap", "tic", 0, 1, (0, 1, 0, 0)), "no automap", "game #1: no automap"),
}  # fmt: skip


def snapshot(state: str = "running", seconds: float = 0.0, **what: object) -> Snapshot:
    return Snapshot(seconds, state, 0, 0, 0, **what)  # type: ignore[arg-type]


@pytest.mark.parametrize("action", abi.ACTIONS)
async def test_every_action_has_its_words(action: str) -> None:
    event, alone, among_others = ACTS[action]
    async with session() as run:
        one = replace(run.engine.info, games=1, streams=1)
    assert event_text(one, event) == alone
    assert event_text(replace(one, games=2, streams=2), event) == among_others


async def test_a_run_is_written_down_in_its_order() -> None:
    async with session() as run:
        info = run.engine.info
    log, first = RunLog(), snapshot()
    second = snapshot(
        "paused", 3725.0,
        sweeps=[SweepLoss(1200, 2.5, 8192, False), SweepLoss(1300, 2.25, 9000, True)],
        applied=[AppliedEvent(replace(ACTS["set_role"][0], source="HTTP"), 1250)],
        saved=[Saved(1300, "kept/1300", 2_000_000, 1.5, 0.25), Saved(-1, "", error="the disk is full")],
    )
    third = snapshot("aborted", 3726.0, games_held=True, message="no signal\nSM 0")
    for before, now in ((None, first), (first, first), (first, second), (second, third)):
        log.absorb(info, before, now)
    assert [(entry.when, entry.kind, entry.text) for entry in log.entries] == [
        ("00:00:00", "state", "the run is running"),
        ("step 1,200", "measured", "held-out loss 2.5000 over 8,192 tokens"),
        ("step 1,300", "measured", "held-out loss 2.2500 over every held-out window"),
        ("step 1,250", "steered", "SM 5 → serve (HTTP)"),
        ("step 1,300", "saved",
         "checkpoint of step 1300: kept/1300, 2.0 MB, written in 0.25 s, training stood still for 1.5 ms"),
        ("", "failed", "the disk is full"),
        ("01:02:05", "state", "the run is paused"),
        ("01:02:06", "failed", "the run is aborted: no signal"),
        ("01:02:06", "state", "the games are held"),
    ]


async def test_held_keys_are_one_line_and_old_lines_go() -> None:
    async with session() as run:
        info = run.engine.info
    log, before = RunLog(), snapshot()
    keys = ACTS["keys"][0]
    log.absorb(info, before, snapshot(applied=[AppliedEvent(keys, at) for at in range(70, 90)]))
    assert [entry.when for entry in log.entries] == ["tic 89"]
    moves = [AppliedEvent(Event("set_role", "step", 0, sm, (abi.TRAIN,)), sm) for sm in range(MOST_ENTRIES + 9)]
    log.absorb(info, before, snapshot(applied=moves))
    assert [entry.when for entry in log.entries] == [f"step {n}" for n in range(9, MOST_ENTRIES + 9)]


@pytest.mark.parametrize(("columns", "rows"), [(120, 40), (60, 20), (24, 8)])
async def test_it_is_looked_through(columns: int, rows: int) -> None:
    async with session(columns, rows) as run:
        for number in range(100):
            run.app.say(f"line {number}")
        await run.press("6")
        shown = run.text("log")
        assert "6 log" in shown and "line 99" in shown and "line 5" not in shown.split("line 5")[0]
        await run.press(*["up"] * 3)
        shown = run.text("log")
        assert "line 96" in shown and "line 97" not in shown
        run.app.say("one more")
        await run.press(*["up"] * 200)
        assert "the run is running" in run.text("log"), "the oldest line, and no further"
        await run.press("escape")
        assert "one more" in run.text("log")
        await run.press("6")
        assert columns < 80 or "1 doom" in run.text()


@pytest.mark.parametrize(("columns", "rows"), [(120, 1), (1, 1), (120, 2), (3, 40), (120, 6)])
async def test_it_is_drawn_at_any_size(columns: int, rows: int) -> None:
    async with session(columns, rows) as run:
        for number in range(100):
            run.app.say(f"line {number}")
        await run.press("6", "up", "down")
