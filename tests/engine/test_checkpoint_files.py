"""Checkpoints as files: what is written reads back, and what is cut, damaged or another run's is refused."""

import errno
import json
import os
import resource
import shutil
import struct
import time
from dataclasses import replace

import numpy as np
import pytest
from engine_runs import TARGETS, config, engine, finish, start_slowly, text_tokens, wait_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ofa_tui.checkpoint.checkpoint import (
    Checkpoint,
    Described,
    Identity,
    file_name,
    find_checkpoint,
    going_on,
    initial_weights,
    tensors_of,
)
from ofa_tui.checkpoint.names import tensor_name
from ofa_tui.checkpoint.saver import Saver
from ofa_tui.checkpoint.tensors import DTYPES, HASH, Tensor, TensorFile, scratch_name, write_tensors
from ofa_tui.data.tokenizers import train_bpe
from ofa_tui.engine.config import TrainState
from ofa_tui.engine.layouts import to_bf16
from ofa_tui.errors import OfaError

FOREVER = 100_000


def described(run, target="host", storage="f4") -> Described:
    return Described(Identity.of(run, target, storage), run.train, run.tokenizer, {"note": "made in a test"})


def saver_of(running, folder, target="host", **options) -> Saver:
    return Saver(running, folder, lambda: described(running._config, target), **options)


def written(snapshots):
    return [saved for s in snapshots for saved in s.saved]


@pytest.fixture(scope="module")
def checkpoint(kernel, tmp_path_factory):
    """Of a run with a little of everything, at its end."""
    running = engine(kernel, config(sms=(2, 1, 0)))
    saver = saver_of(running, tmp_path_factory.mktemp("one"), at_end=True)
    running.start()
    wait_for(running, lambda s: s.state == "finished" and s.tokens_served > 5)
    running.stop()
    saver.close()
    return next(saver.folder.iterdir())


# --- the format -----------------------------------------------------------------------------------------------------


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_tensors_read_back_as_they_were_written(tmp_path, data):
    names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda name: name != "__metadata__")
    shapes = st.lists(st.integers(0, 4), max_size=3)
    wanted = data.draw(st.dictionaries(names, st.tuples(st.sampled_from(sorted(DTYPES)), shapes), max_size=4))
    metadata = data.draw(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])).filter(
        lambda name: name != "sha256"), st.text(st.characters(exclude_categories=["Cs"])), max_size=3))
    rng = np.random.default_rng(len(wanted))
    tensors = {}
    for name, (kind, shape) in wanted.items():
        raw = rng.integers(0, 256, int(np.prod(shape, dtype=int)) * DTYPES[kind].itemsize, np.uint8)
        tensors[name] = Tensor(kind, raw.view(DTYPES[kind]).reshape(shape))
    path = tmp_path / "some.safetensors"
    assert write_tensors(path, tensors, metadata) == path.stat().st_size
    file = TensorFile(path)
    file.check()
    assert {**file.metadata, "sha256": ""} == {**metadata, "sha256": ""} and file.entries.keys() == tensors.keys()
    for name, tensor in tensors.items():
        read = file.array(name)
        assert read.dtype == tensor.array.dtype and read.shape == tensor.array.shape
        assert read.tobytes() == tensor.array.tobytes()


def test_the_file_is_laid_out_as_the_format_says(tmp_path):
    """Byte for byte by hand: length, JSON, arrays; nothing of ours is needed to read it."""
    path = tmp_path / "some.safetensors"
    write_tensors(path, {"a": Tensor("F32", np.array([[1, 2, 3]], "<f4")), "b": Tensor("BF16", to_bf16(np.ones(2)))},
                  {"format": "pt"})
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert length % 8 == 0 and header.pop("__metadata__")["format"] == "pt"
    assert header == {"a": {"dtype": "F32", "shape": [1, 3], "data_offsets": [0, 12]},
                      "b": {"dtype": "BF16", "shape": [2], "data_offsets": [12, 16]}}
    assert raw[8 + length :] == struct.pack("<3f", 1, 2, 3) + b"\x80\x3f\x80\x3f"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_cut_or_damaged_file_is_one_sentence(checkpoint, tmp_path, data):
    raw = bytearray(checkpoint.read_bytes())
    header = 8 + int.from_bytes(raw[:8], "little")
    at = data.draw(st.one_of(st.integers(0, len(raw) - 1), st.integers(0, header - 1)))
    if data.draw(st.booleans()):
        raw = raw[:at]
    else:
        if raw[at : at + 1].isspace() and at < header:
            return  # the padding of the header says nothing
        raw[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "step-00000001.safetensors"
    path.write_bytes(raw)
    with pytest.raises(OfaError) as caught:
        found = Checkpoint(path)
        found.check()
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.one_of(
    st.binary(max_size=64),
    st.recursive(st.none() | st.integers() | st.text(max_size=4) | st.floats(),
                 lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                     st.sampled_from(["dtype", "shape", "data_offsets", "__metadata__", "x"]), inner, max_size=4))
    .map(lambda value: json.dumps(value).encode()).map(lambda text: len(text).to_bytes(8, "little") + text),
))  # fmt: skip
def test_any_other_bytes_are_refused_or_hold_nothing_outside_themselves(tmp_path, raw):
    path = tmp_path / "some.safetensors"
    path.write_bytes(raw)
    try:
        file = TensorFile(path)
    except OfaError as error:
        assert "\n" not in str(error)
    else:
        assert all(file.array(name).nbytes <= len(raw) for name in file.entries)


# --- a run's ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tensor", "change", "words"),
    [
        ("serving.0.tokens", lambda a: a + 1_000_000, "served text"),
        ("serving.0.tokens", lambda a: -1 - a, "served text"),
        ("serving.0.tokens", lambda a: a[:-1], "served text"),
        ("serving.0.prompt", lambda a: np.zeros((2, 2), a.dtype), "served text"),
        ("lm_head.weight", lambda a: a * np.float32("nan"), "not finite"),
        ("lm_head.weight", lambda a: a / np.float32(0), "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_a_whole_file_with_a_state_that_cannot_be_is_refused(checkpoint, tmp_path, tensor, change, words):
    file = TensorFile(checkpoint)
    arrays = {name: file.array(name) for name in file.entries}
    arrays[tensor] = change(arrays[tensor])
    path = tmp_path / file_name(1)
    write_tensors(path, {name: Tensor(file.entries[name].kind, array) for name, array in arrays.items()},
                  {key: text for key, text in file.metadata.items() if key != HASH})
    found, _ = find_checkpoint(path)
    with pytest.raises(OfaError, match=words):
        found.state()


@pytest.mark.parametrize("target", TARGETS)
def test_a_run_goes_on_from_its_file(kernel, tmp_path, target):
    """Through the file, with a learned vocabulary in it: state equal to the last bit, losses those of one run."""
    tokenizer = train_bpe(300, ["once there was a fox " * 50])
    run = config(steps=9, train_tokens=text_tokens(200), sms=(2, 1, 0), tokenizer=tokenizer)
    whole = engine(kernel, run, target)
    finish(whole)
    running = engine(kernel, run, target)
    saver = saver_of(running, tmp_path, target, every=4, keep=10)
    saver.start()
    start_slowly(running)
    wait_for(running, lambda s: s.state == "finished")
    running.stop()
    saver.close()
    assert {file_name(4), file_name(9)} <= {path.name for path in tmp_path.iterdir()}
    found, broken = find_checkpoint(tmp_path / file_name(4))
    assert not broken and found.step == 4 and found.settings == {"note": "made in a test"}
    assert found.tokenizer.encode("a fox was") == tokenizer.encode("a fox was")
    assert found.tokenizer.size == tokenizer.size
    state = found.state()
    (stream,) = state.serving.streams
    assert len(stream.keys["layers.1"]) == len(stream.tokens)
    again = engine(kernel, going_on(replace(run, sms=(3, 1, 0)), found, target, "f4", resample=False), target)
    finish(again)
    assert again.memory["losses"].tobytes() == whole.memory["losses"][4:].tobytes()
    last = Checkpoint(tmp_path / file_name(9)).state().train
    expected = whole.train_state()
    for part in ("weights", "m", "v"):
        for name, array in getattr(expected, part).items():
            assert np.array_equal(getattr(last, part)[name], array), name


def test_the_last_ones_and_the_first_are_kept(kernel, tmp_path):
    running = engine(kernel, config(steps=40, sms=(2, 1, 0), jitter_seed=2))
    left = tmp_path / scratch_name(tmp_path / file_name(3)).name
    left.write_bytes(b"half of one, by a process that was killed")
    saver = saver_of(running, tmp_path, every=1, keep=2)
    saver.save_initial()
    saver.start()
    running.start()
    seen = [running.poll()]
    seen += wait_for(running, lambda s: s.state == "finished")
    running.stop()
    saver.close()
    seen.append(running.poll())
    steps = [saved.step for saved in written(seen)]
    assert steps[0] == 0 and steps == sorted(set(steps)) and steps[-1] == 40 and len(steps) > 3
    assert all(not saved.error and saved.bytes > 0 for saved in written(seen))
    assert sorted(path.name for path in tmp_path.iterdir()) == [file_name(step) for step in (0, *steps[-2:])]


def test_a_full_disk_ends_neither_the_run_nor_older_checkpoints(kernel, tmp_path):
    """The system itself refuses to write more than some bytes of a file."""
    running = engine(kernel, config(steps=FOREVER, sms=(2, 1, 0)))
    saver = saver_of(running, tmp_path)
    saver.start()
    running.start()

    def next_saved():
        saver.ask()
        return written(wait_for(running, lambda s: bool(s.saved)))[0]

    first = next_saved()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (first.bytes // 2, limits[1]))
        failed = next_saved()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    wait_for(running, lambda s: s.steps_done > failed.step)  # else it may be the same step, which is saved then
    last = next_saved()
    steps = running.poll().steps_done
    wait_for(running, lambda s: s.steps_done > steps)
    running.stop()
    saver.close()
    assert not first.error and not last.error and failed.step > first.step
    assert "cannot write" in failed.error and "goes on" in failed.error and "\n" not in failed.error
    assert failed.error.endswith("make room for the next one")
    assert saver.missed() == (f"the checkpoint of step {failed.step} could not be saved (File too large); "
                              f"the newest one is {last.path}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [file_name(saved.step) for saved in (first, last)]


def test_each_failure_says_what_helps_and_a_row_of_them_is_told_once(kernel, tmp_path, monkeypatch):
    """A folder that became read-only, for some steps; no end of the run is tried twice."""
    failing = {3, 4, 6}

    def write(path, *args):
        if int(path.stem.partition("-")[2]) in failing:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        return write_tensors(path, *args)

    monkeypatch.setattr("ofa_tui.checkpoint.saver.write_tensors", write)
    running = engine(kernel, config(steps=6))
    saver = saver_of(running, tmp_path, every=1)
    saver.start()
    start_slowly(running)
    seen = wait_for(running, lambda s: s.state == "finished")
    running.stop()
    saver.close()
    outcomes = written([*seen, running.poll()])
    steps = [saved.step for saved in outcomes]
    assert steps == sorted(set(steps)) and steps[-1] == 6
    failed = [saved for saved in outcomes if saved.error]
    assert {saved.step for saved in failed} == failing.intersection(steps)
    assert all("Read-only" in saved.error and "make room" not in saved.error for saved in failed)
    told = saver.news(outcomes)
    rows = [n for n, saved in enumerate(outcomes) if not saved.error or n == 0 or not outcomes[n - 1].error]
    assert told == [outcomes[n].text() for n in rows]
    assert all(str(saved.step) in saver.missed() for saved in failed) and "Read-only" in saver.missed()


def test_the_newest_whole_one_of_a_folder_is_taken(checkpoint, tmp_path):
    for step in (3, 5, 7):
        shutil.copy(checkpoint, tmp_path / file_name(step))
    os.truncate(tmp_path / file_name(7), 1000)
    raw = bytearray((tmp_path / file_name(5)).read_bytes())
    raw[-1] ^= 1
    (tmp_path / file_name(5)).write_bytes(raw)
    scratch_name(tmp_path / file_name(9)).write_bytes(b"")
    found, broken = find_checkpoint(tmp_path)
    assert found.path.name == file_name(3)
    assert ["not whole" in broken[0], "damaged" in broken[1], len(broken)] == [True, True, 2]
    (tmp_path / file_name(3)).unlink()
    with pytest.raises(OfaError, match=r"holds no checkpoint that can be used; .*not whole"):
        find_checkpoint(tmp_path)
    with pytest.raises(OfaError, match="there is no file"):
        find_checkpoint(tmp_path / "none")


@pytest.mark.parametrize(
    ("changes", "target", "words"),
    [
        ({"preset": "large"}, "host", ("preset small", "large")),
        ({"tokenizer": train_bpe(300, ["a fox " * 50])}, "host", ("tokenizer bytes of 257", "this run bpe:300 of")),
        ({"train_tokens": text_tokens(501)}, "host", ("training text of 500 tokens", "of 501 tokens")),
        ({"train_tokens": text_tokens(500, 9)}, "host", ("training text of 500 tokens", "--data")),
        ({"valid_tokens": text_tokens(99)}, "host", ("held-out text of 200 tokens", "of 99 tokens")),
        ({"seed": 2}, "host", ("seed 1", "2")),
        ({"layers": 3}, "host", ("model layers 2", "layers 3")),
        ({"batch": 2, "learning_rate": 1.0}, "host", ("batch 3, learning_rate 0.003", "batch 2, learning_rate 1.0")),
        ({}, "sm90", ("target host (fp32)", "sm90 (fp32)", "--init")),
        ({}, "host", ("all 6 of 6 steps", "--steps", "eval")),
    ],
)
def test_another_runs_checkpoint_is_refused_with_both_sides(checkpoint, changes, target, words):
    with pytest.raises(OfaError) as caught:
        going_on(config(**changes), Checkpoint(checkpoint), target, "f4", resample=False)
    said = str(caught.value)
    assert all(word in said for word in words) and "\n" not in said, said


def test_weights_come_from_anybodys_file(kernel, tmp_path):
    """Ours at step 0, written as a peer would, begin the same run; a peer's bf16 is taken, another model's refused."""
    run = config(sms=(2, 0, 0))
    plain = engine(kernel, run)
    state = plain.settled_state()
    finish(plain)
    weights = {tensor_name(name): array[0] if array.shape[0] == 1 else array
               for name, array in state.train.weights.items()}
    path = tmp_path / "peer.safetensors"
    write_tensors(path, {name: Tensor("F32", array) for name, array in weights.items()}, {})
    again = engine(kernel, replace(run, initial=TrainState.fresh(initial_weights(path, run.model))))
    finish(again)
    assert again.memory["losses"].tobytes() == plain.memory["losses"].tobytes()

    write_tensors(path, {name: Tensor("BF16", to_bf16(array)) for name, array in weights.items()}, {})
    rounded = initial_weights(path, run.model)
    assert all(np.allclose(rounded[name], array, rtol=2**-8) for name, array in state.train.weights.items())
    with pytest.raises(OfaError, match=r"transformer\.wte\.weight is 320 x 32 and should be 320 x 64"):
        initial_weights(path, replace(run.model, width=64))
    write_tensors(path, {name: Tensor("F32", array) for name, array in weights.items() if "ln_f" not in name}, {})
    with pytest.raises(OfaError, match=r"no array transformer\.ln_f\.weight"):
        initial_weights(path, run.model)
    with pytest.raises(OfaError, match="--init takes weights"):
        Checkpoint(path)


def test_names_and_shapes_are_those_of_gpt_2_as_linear_layers(checkpoint):
    file = TensorFile(checkpoint)
    shapes = {name: entry.shape for name, entry in file.entries.items() if name.startswith(("transformer", "lm_head"))}
    assert shapes["transformer.wte.weight"] == shapes["lm_head.weight"] == (320, 32)
    assert shapes["transformer.h.1.attn.c_attn.weight"] == (96, 32)
    assert shapes["transformer.h.0.mlp.c_fc.weight"] == (96, 32)
    assert shapes["transformer.h.0.mlp.c_proj.weight"] == (32, 96)
    assert shapes["transformer.h.0.ln_1.weight"] == shapes["transformer.ln_f.weight"] == (32,)
    assert len(shapes) == 2 * 6 + 3
    assert all(file.entries[f"optimizer.exp_avg_sq.{name}"].shape == shape for name, shape in shapes.items())


def test_writing_is_repeatable(kernel, tmp_path):
    """The same state is the same file, whatever ran beside it."""
    run = config(steps=5, sms=(2, 0, 0))
    files = []
    for sms in ((1, 0, 0), (3, 0, 0)):
        running = engine(kernel, replace(run, sms=sms))
        start_slowly(running)
        state = running.capture(3).state
        write_tensors(tmp_path / "one.safetensors", *tensors_of(state, described(run)))
        files.append((tmp_path / "one.safetensors").read_bytes())
        running.stop()
    assert files[0] == files[1]


def test_a_saver_that_nobody_asks_writes_nothing(kernel, tmp_path):
    running = engine(kernel, config())
    saver = saver_of(running, tmp_path / "none")
    saver.start()
    finish(running)
    time.sleep(0.2)
    saver.close()
    saver.close()
    assert not (tmp_path / "none").exists() and not written([running.poll()])
