"""A thinned record shows what the whole one does, but for the frames that it has not."""

import contextlib
import dataclasses
import json
import math

import numpy as np
import pytest
from fake_engine import FakeEngine, FrozenClock, record_fake
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_states import absorb, shown

from ofa_tui import abi
from ofa_tui.engine.protocol import Event, Frame, ServedToken
from ofa_tui.engine.replay import ReplayEngine
from ofa_tui.errors import OfaError
from ofa_tui.record import served_pack
from ofa_tui.record.frame_log import NO_PALETTE, NO_PICTURE, FrameFile, TimedFrame
from ofa_tui.record.reader import RecordedRun, ordinal
from ofa_tui.record.thin import LEFT_OUT, thin_record, thinned, without_folders
from ofa_tui.record.writer import RunWriter
from ofa_tui.tui.model import RunModel

EVERY = 4
STATUS = np.zeros(1, abi.DOOM_STATUS)[0]
SECRETS = {
    "machine": {"system": "Linux 6.1.2-of-acme"}, "wad": {"path": "/home/ann/wads/one.wad"},
    "settings": {"data": ["data/a.txt", "/home/ann/my texts/b.txt"], "why": "no nvcc in /opt/ann/bin, is it there?"},
}


@pytest.fixture(scope="module", params=[1, 3])
def folders(request, tmp_path_factory):
    """A record, with steering and places in it, and what is left of it."""
    folder = tmp_path_factory.mktemp("runs")
    whole, thin = folder / "whole", folder / "thin"
    record_fake(whole, events=[Event("set_role", "step", 12, 2, (2,)), Event("prompt", "token", 9, text="so")],
                streams=request.param)
    told = json.loads((whole / "run.json").read_text())
    (whole / "run.json").write_text(json.dumps(told | SECRETS))
    with (whole / "kernel.log").open("a") as log:
        log.write("4.000 s: checkpoint of step 40: /home/ann/kept/40.safetensors\n")
    (whole / "timeline.bin").write_bytes(b"1")
    thin_record(RecordedRun(whole), thin, EVERY)
    return whole, thin


def test_all_but_frames_comes_back(folders):
    whole, thin = map(RecordedRun, folders)
    for name in ("losses", "sweeps", "served", "events", "samples", "role_changes", "sweep_seconds", "seconds"):
        assert getattr(thin, name) == getattr(whole, name), name
    assert thin.served and thin.events and thin.role_changes and not thin.damage
    assert dataclasses.replace(thin.info, notes=()) == whole.info
    assert thin.summary == whole.summary | {"frames_kept": len(list(thin.frames()))}


def test_the_frames_that_are_left_are_those_that_were_there_then(folders):
    whole, thin = (list(RecordedRun(folder).frames()) for folder in folders)
    assert [timed.frame.number for timed in thin] == [timed.frame.number for timed in whole][::EVERY]
    for left, was in zip(thin, whole[::EVERY], strict=True):
        assert left.seconds == was.seconds and left.frame.status == was.frame.status
        assert (left.frame.palette[left.frame.pixels] == was.frame.palette[was.frame.pixels]).all()


@settings(max_examples=25, deadline=None)
@given(share=st.floats(0, 1))
def test_it_shows_the_same_at_any_time(folders, share):
    panes = []
    for folder in folders:
        engine = ReplayEngine(folder, clock=FrozenClock())
        model = RunModel(engine.info)
        engine.start()
        engine.seek(engine.begin + share * (engine.end - engine.begin))
        absorb(model, engine)
        panes.append(shown(model))
        for pane in ("frames", "health"):
            del panes[-1][pane]
    assert panes[0] == panes[1]


def test_it_says_what_it_is_and_names_no_places(folders):
    _, thin = folders
    run = RecordedRun(thin)
    assert run.frames_every == EVERY and RecordedRun(folders[0]).frames_every == 1
    assert run.run["thinned"] == {"frames_every": EVERY, "left_out": ["timeline.bin"]}
    assert run.info.notes == (f"thinned: every {EVERY}th frame of Doom is kept, no timeline.bin",)
    assert not any((thin / name).exists() for name in LEFT_OUT)
    assert not any(b"/home" in path.read_bytes() or b"acme" in path.read_bytes() for path in thin.glob("*.*"))
    assert "checkpoint of step 40: 40.safetensors" in (thin / "kernel.log").read_text()
    assert run.run["wad"]["path"] == "one.wad" and run.run["settings"]["data"] == ["data/a.txt", "b.txt"]
    assert run.run["settings"]["why"] == "no nvcc in bin, is it there?"
    assert ReplayEngine(thin).origin == (run.run["started"][:10], f"every {EVERY}th frame")


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 5))), st.integers(2, 9))
def test_of_each_game_the_first_frames_that_are_so_far_apart(steps, every):
    numbers, frames = [0, 0, 0], []
    for game, step in steps:
        numbers[game] += step
        frames.append(TimedFrame(0.0, Frame(numbers[game], NO_PICTURE, NO_PALETTE, 0, STATUS, game)))
    kept = list(thinned(iter(frames), every))
    for game in range(3):
        there = [timed.frame.number for timed in frames if timed.frame.game == game]
        left = [timed.frame.number for timed in kept if timed.frame.game == game]
        assert left[:1] == there[:1]
        for before, after in zip(left, (*left[1:], math.inf), strict=False):
            assert after == min((number for number in there if number >= before + every), default=math.inf)


tokens = st.lists(st.builds(
    ServedToken, *[st.integers(0, 2**40)] * 2, st.text(), *[st.integers(0, 2**40)] * 3, st.booleans(), st.booleans(),
    st.floats(0, 1e6).map(lambda seconds: round(seconds, 6)), st.integers(0, abi.MAX_STREAMS - 1),
), max_size=5)  # fmt: skip


@given(tokens)
def test_served_text_comes_back_from_its_file(told):
    assert served_pack.unpack_served(served_pack.pack_served(told)) == told


@given(tokens, st.data())
def test_a_damaged_file_of_served_text_is_told_from_a_whole_one(told, data):
    packed = bytearray(served_pack.pack_served(told))
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(ValueError):
        assert served_pack.unpack_served(bytes(packed)) == told
    with pytest.raises(ValueError):
        served_pack.unpack_served(bytes(packed[:-1]))


# A zstd frame (RFC 8878) of one raw block that says that it holds 2^40 bytes.
VAST = b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + (5 << 3 | 1).to_bytes(3, "little") + b"hello"


def test_damage_does_not_say_how_much_memory_is_taken(tmp_path):
    with pytest.raises(ValueError):
        served_pack.unpack_served(VAST)
    (tmp_path / "frames.zst").write_bytes(VAST)
    frames = FrameFile(tmp_path / "frames.zst")
    frames.refresh()
    assert not list(frames) and frames.damage == "1 of 1 blocks of frames.zst"


@pytest.mark.parametrize("change", [
    {"stream": [abi.MAX_STREAMS]}, {"seconds": [math.nan]}, {"seconds": ["0"]}, {"index": [1, 2]}, {"text": [3]},
    {"first": [1]}, {"version": 3}, {"story": [None]},
])  # fmt: skip
def test_columns_that_cannot_be_are_refused(change):
    token = ServedToken(1, 2, "so", 3, 4, 5, False, True, 0.5)
    columns = {name: [value] for name, value in dataclasses.asdict(token).items()}
    compress = served_pack.zstandard.ZstdCompressor().compress
    assert served_pack.unpack_served(compress(json.dumps(columns).encode())) == [token]
    with pytest.raises(ValueError):
        served_pack.unpack_served(compress(json.dumps(columns | change).encode()))


def test_a_record_whose_served_text_is_damaged_shows_the_rest(folders, tmp_path):
    thin_record(RecordedRun(folders[0]), tmp_path / "thin", EVERY)
    (tmp_path / "thin" / served_pack.NAME).write_bytes(b"no zstd")
    run = RecordedRun(tmp_path / "thin")
    assert run.damage == f"damaged and left out: {served_pack.NAME}; the rest is shown"
    assert len(run.losses) == 40 and not run.served


def test_a_run_that_was_killed_stays_so(tmp_path):
    clock = FrozenClock()
    engine = FakeEngine(clock=clock)
    writer = RunWriter(tmp_path / "whole", {}, engine.info)
    engine.start()
    for _ in range(100):
        clock.sleep(1 / 70)
        writer.write(engine.poll())
    thin_record(RecordedRun(tmp_path / "whole"), tmp_path / "thin", EVERY)
    whole, thin = (RecordedRun(tmp_path / name).summary for name in ("whole", "thin"))
    assert thin["exit_reason"] == "killed" and thin == whole | {"frames_kept": thin["frames_kept"]}


def test_what_cannot_be_thinned_is_said(folders, tmp_path):
    whole, thin = folders
    (tmp_path / "loss.csv").write_text("step,loss,lr,seconds\n")
    for folder, target, said in ((thin, "new", "was thinned before"), (tmp_path, "new", "no run.json"),
                                 (whole, thin, "already holds")):
        with pytest.raises(OfaError, match=said):
            thin_record(RecordedRun(folder), tmp_path / target, EVERY)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(("text", "left"), [
    ("/a/b.txt", "b.txt"), ("in /a/b/c and '/d/e'", "in c and 'e'"), ("tokens/s, 1/2 /", "tokens/s, 1/2 /"),
    ("./a/b ../c ~/d e/f http://g.h/i/j", "./a/b ../c ~/d e/f http://g.h/i/j"), ("/top", "/top"),
])
def test_only_absolute_folders_go(text, left):
    assert without_folders(text) == left


def test_ordinals():
    assert [ordinal(n) for n in (2, 3, 4, 11, 12, 13, 21, 22, 103, 111)] == [
        "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "22nd", "103rd", "111th"]
