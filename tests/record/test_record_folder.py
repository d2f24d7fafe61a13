"""A run folder holds what the engine said, bit for bit, and reads whatever became of it."""

import json
import shutil

import numpy as np
import pytest
from fake_engine import WORDS, FakeEngine, frame_of, loss_of, record_fake
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ofa_tui import abi
from ofa_tui.engine.protocol import Event, ServedToken, Snapshot, StepLoss
from ofa_tui.errors import OfaError
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.summary import SAMPLE_CHARACTERS, Tally
from ofa_tui.record.writer import RunWriter, claim_folder

EVENT = Event("set_role", "step", 12, 2, (2,))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    engine = record_fake(folder, events=[EVENT])
    return folder, engine


def test_everything_comes_back(recorded):
    folder, engine = recorded
    run = RecordedRun(folder)
    assert run.info == engine.info
    assert run.run["settings"] == {"seed": 7} and run.run["machine"]["cores"] >= 1
    assert [entry.step for entry in run.losses] == list(range(40))
    assert all(np.float32(entry.loss) == loss_of(entry.step) for entry in run.losses)
    assert [token.index for token in run.served] == list(range(19)) or len(run.served) == 20
    assert run.served[4].text == " 狐" and run.served[0].first and run.served[2].from_prompt
    assert [(applied.event.action, applied.at >= 12) for applied in run.events] == [("set_role", True)]
    assert [sweep.step for sweep in run.sweeps] == [10, 20, 30, 40]
    busy = np.array([sample["busy"] for sample in run.samples[1:]])
    assert np.allclose(busy, [0.75, 0.25, 0.1], atol=0.02)


def test_frames_come_back_exactly_with_their_palettes(recorded):
    frames = list(RecordedRun(recorded[0]).frames())
    assert [timed.frame.number for timed in frames] == list(range(1, len(frames) + 1)) and len(frames) >= 139
    for timed in frames:
        expected = frame_of(timed.frame.number)
        assert np.array_equal(timed.frame.pixels, expected.pixels)
        assert np.array_equal(timed.frame.palette, expected.palette)
        assert timed.frame.status == expected.status
    pictures = sorted((recorded[0] / "frames").glob("*.png"))
    assert len(pictures) == 5
    number = int(pictures[2].stem)
    shown = np.asarray(Image.open(pictures[2]).convert("RGB"))
    assert np.array_equal(shown, frame_of(number).palette[frame_of(number).pixels])


def test_summary(recorded):
    summary = json.loads((recorded[0] / "summary.json").read_text())
    losses = [float(loss_of(step)) for step in range(40)]
    assert summary["first_loss"] == losses[0] and summary["last_loss"] == losses[-1]
    assert summary["mean_last_20"] == pytest.approx(sum(losses[-20:]) / 20)
    assert summary["held_out_loss"] == pytest.approx(losses[-1], abs=0.5) and summary["held_out_complete"]
    assert summary["frames_per_s"] == pytest.approx(35.0, abs=0.3)
    assert summary["tokens_per_s"] == pytest.approx(10_240)
    assert "狐" in summary["served_text"] and summary["exit_reason"] == "finished"


def test_several_streams_come_back_and_the_summary_has_each_story_whole(tmp_path):
    """Tokens of several stories are written in turns; a text must not be made of them in that order."""
    engine = record_fake(tmp_path / "run", streams=3)
    run = RecordedRun(tmp_path / "run")
    assert run.info == engine.info and (run.info.streams, run.info.telling) == (3, 2)
    assert [token.stream for token in run.served[:6]] == [0, 1, 2, 0, 1, 2]
    stories = {}
    for token in run.served:
        stories[token.story] = stories.get(token.story, "") + token.text
    whole = "".join(WORDS)
    assert len(stories) >= 3 and all(whole.startswith(text) for text in stories.values())
    assert run.summary["served_text"] == "\n\n".join(stories.values())
    (tmp_path / "run" / "summary.json").unlink()
    assert RecordedRun(tmp_path / "run").summary["served_text"] == "\n\n".join(stories.values())


@given(st.lists(st.tuples(st.integers(0, abi.MAX_STREAMS - 1), st.integers(0, 400), st.booleans()), max_size=80))
def test_the_summary_keeps_the_newest_text_of_the_newest_stories(tokens):
    """As much as there is room for, whatever was forgotten on the way, and not much more."""
    tally, told, stories = Tally(1), {}, []
    for index, (stream, length, ends) in enumerate(tokens):
        if stream not in told:
            told[stream] = len(stories)
            stories.append("")
        story = told[stream]
        text = chr(97 + index % 26) * length
        tally.add_served(ServedToken(index, 1, text, 0, story, 0, False, not stories[story], 0.0, stream))
        stories[story] += text
        if ends:
            del told[stream]
    assert tally.served_text == "\n\n".join(text for text in stories if text)[-SAMPLE_CHARACTERS:]


def test_the_summary_forgets_old_stories():
    tally = Tally(1)
    for index in range(1000):
        tally.add_served(ServedToken(index, 1, "x" * 50, 0, index, 0, False, True, 0.0, index % 4))
    assert len(tally.stories) < 2 * SAMPLE_CHARACTERS / 50


def test_records_from_before_there_were_several_streams_have_one(recorded, tmp_path):
    folder = shutil.copytree(recorded[0], tmp_path / "old")
    run = json.loads((folder / "run.json").read_text())
    for name in ("streams", "telling"):
        del run["run"][name]
    (folder / "run.json").write_text(json.dumps(run))
    served = [json.loads(line) for line in (folder / "served.jsonl").read_text().splitlines()]
    lines = [json.dumps({name: value for name, value in token.items() if name != "stream"}) for token in served]
    wrong = json.dumps({**served[0], "stream": abi.MAX_STREAMS})
    (folder / "served.jsonl").write_text("\n".join([*lines, wrong, ""]))
    old = RecordedRun(folder)
    assert old.info == RecordedRun(recorded[0]).info and old.served == RecordedRun(recorded[0]).served
    assert "a line of served.jsonl" in old.damage


def test_loss_column_is_exact_for_every_float32(tmp_path):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2**32, 400, np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    engine = FakeEngine()
    writer = RunWriter(tmp_path / "run", {}, engine.info)
    writer.write(Snapshot(1.0, "running", len(values), 0, 0,
                          losses=[StepLoss(i, float(v), 0.001, 0.5) for i, v in enumerate(values)]))
    back = np.array([entry.loss for entry in RecordedRun(tmp_path / "run").losses], np.float32)
    assert back.tobytes() == values.tobytes()


def test_a_killed_run_reads_the_same_as_a_finished_one(recorded, tmp_path):
    folder = tmp_path / "killed"
    shutil.copytree(recorded[0], folder)
    written = json.loads((folder / "summary.json").read_text())
    (folder / "summary.json").unlink()
    run = RecordedRun(folder)
    assert run.exit_reason == "killed" and not run.complete
    assert {**run.summary, "exit_reason": "finished", "seconds": 0} == {**written, "seconds": 0}


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_file_may_be_cut_anywhere(recorded, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cut") / "run"
    shutil.copytree(recorded[0], folder)
    whole = RecordedRun(recorded[0])
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(0, len(content)), label=path.name)])
    run = RecordedRun(folder)
    for name in ("losses", "sweeps", "served", "events", "samples"):
        part = getattr(run, name)
        assert part == getattr(whole, name)[: len(part)], name
    numbers = [timed.frame.number for timed in run.frames()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert run.summary["steps"] in (len(run.losses), 40) and run.info.n_sms in (0, 3)


def test_a_cut_frame_file_loses_one_block_at_most(recorded, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(recorded[0], folder)
    path = folder / "frames.zst"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert len(list(RecordedRun(folder).frames())) >= 139 // 2 - 36


def test_folders_that_cannot_be(tmp_path, recorded):
    file = tmp_path / "file"
    file.write_text("")
    for folder, said in ((file, "is a file"), (file / "below", "cannot write into"), (recorded[0], "already holds")):
        with pytest.raises(OfaError, match=said):
            claim_folder(folder)
    for folder, said in ((tmp_path / "none", "no folder"), (tmp_path, "no recorded run")):
        with pytest.raises(OfaError, match=said):
            RecordedRun(folder)
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "loss.csv").touch()
    with pytest.raises(OfaError, match=r"already holds a loss\.csv"):
        claim_folder(tmp_path / "begun")
    (tmp_path / "new" / "deep").parent.mkdir()
    claim_folder(tmp_path / "new" / "deep")
    assert (tmp_path / "new" / "deep" / "frames").is_dir()
