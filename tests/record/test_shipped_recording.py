"""The recording that ships is small, whole, what it says it is, and tells nothing of the machine that made it."""

import json

import pytest

from ofa_tui import locations
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.summary import Tally, summarise

MOST_BYTES = 5_000_000
STEPS = 4000


@pytest.fixture(scope="module")
def run():
    return RecordedRun(locations.recording())


def test_it_is_small_and_names_no_place(run):
    files = [path for path in run.folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    for path in files:
        if path.suffix in (".json", ".jsonl", ".csv", ".log"):
            text = path.read_text(encoding="utf-8")
            assert not any(place in text for place in ("/work", "/tmp", "/home", "/root")), path
    assert "Freedoom" in (run.folder / "README.md").read_text(encoding="utf-8")


def test_its_figures_follow_from_its_lines(run):
    """All that summary.json says but what only the frames that are not kept could tell."""
    assert not run.damage and run.complete and run.info.device == "NVIDIA H200" and run.frames_every == 9
    assert [entry.step for entry in run.losses] == list(range(STEPS))
    assert [token.index for token in run.served] == list(range(run.summary["tokens_served"]))
    tally = Tally(run.info.tokens_per_step, sweeps=run.sweeps, seconds=run.summary["seconds"])
    tally.add_losses(run.losses)
    for token in run.served:
        tally.add_served(token)
    for timed in run.frames():
        tally.add_frame(timed.frame.number, timed.seconds)
    told = summarise(tally, "finished")
    assert told.pop("frames_per_s") == pytest.approx(run.summary["frames_per_s"], rel=0.01)
    last = told.pop("frames")
    assert last <= run.summary["frames"] < last + run.frames_every
    for name in ("first_loss", "last_loss", "mean_last_20"):  # loss.csv has the kernel's f4 in the fewest digits
        assert told.pop(name) == pytest.approx(run.summary[name], rel=1e-7)
    assert told == {name: run.summary[name] for name in told}


@pytest.mark.parametrize("step", [0, 1, 1234, STEPS])
def test_a_replay_goes_to_any_step(step):
    engine = ReplayEngine(locations.recording(), clock=lambda: 0.0)
    engine.start()
    engine.seek_step(step)
    snapshot = engine.passage()[-1]
    assert snapshot.steps_done == step and len(snapshot.losses) <= STEPS
    if step == 1234:
        assert snapshot.train_tokens_per_s > 300_000 and snapshot.served_per_s > 2_000 and snapshot.frames


def test_its_frames_go_by_as_in_the_game(run):
    frames = list(run.frames())
    elapsed = (frames[-1].frame.number - frames[0].frame.number) / 35
    assert frames[-1].seconds - frames[0].seconds == pytest.approx(elapsed, rel=0.01)
    assert len(frames) == run.summary["frames_kept"]
    assert json.loads((run.folder / "run.json").read_text())["thinned"]["frames_every"] == 9
