"""Preparing a corpus: what is held out, what the cache keeps, and what happens when it is damaged."""

import hashlib
import lzma
from pathlib import Path

import numpy as np
import pytest

from ofa_tui import cli
from ofa_tui.data.prepare import CorpusSpec, corpus_spec, model_for, prepare
from ofa_tui.errors import OfaError
from ofa_tui.presets import preset

SHAKESPEARE = Path(__file__).parents[3] / "shared" / "corpus" / "tinyshakespeare.txt.xz"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("OFA_TUI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _spec(data=(), valid=(), tokenizer="bytes", batch_tokens=16):
    return CorpusSpec(tuple(data), tuple(valid), tokenizer, story_tokens=100_000, batch_tokens=batch_tokens)


def test_without_held_out_text_the_last_tenth_of_the_tokens(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("\n".join(str(i) for i in range(1000)) + "\n")
    prepared = prepare(_spec([path]))
    whole = [*path.read_bytes().strip(b"\n"), 256]
    assert prepared.train_tokens.tolist() + prepared.valid_tokens.tolist() == whole
    assert len(prepared.valid_tokens) == len(whole) // 10
    assert prepared.vocab == 320


def test_folder_order_and_held_out_files(tmp_path):
    (tmp_path / "b.txt").write_text("bee and more bees")
    (tmp_path / "a.txt").write_text("ant\n<|endoftext|>\nelk\n<|endoftext|>\n")
    (tmp_path / "c.valid.txt").write_text("cat")
    prepared = prepare(_spec([tmp_path / "b.txt", tmp_path], batch_tokens=8))
    end = prepared.tokenizer.end_of_text
    assert bytes(t if t != end else 46 for t in prepared.train_tokens) == (
        b"bee and more bees.ant.elk.bee and more bees.")
    assert bytes(prepared.valid_tokens[:-1].astype(np.uint8)) == b"cat"
    assert [(i.name, i.sha256) for i in prepared.inputs if i.held_out] == [
        ("c.valid.txt", hashlib.sha256(b"cat").hexdigest())]


def test_stories_are_held_out_without_overlap_and_fit_the_preset():
    chosen = preset("tiny")
    prepared = prepare(_spec(tokenizer="bpe:1024"))
    assert prepared.source == "stories" and prepared.train_tokens.dtype == np.int32
    assert 60_000 <= len(prepared.valid_tokens) <= 110_000
    end = prepared.tokenizer.end_of_text

    def told(tokens):
        return {bytes(story) for story in np.split(tokens, np.flatnonzero(tokens == end) + 1)[:-1]}

    assert not told(prepared.train_tokens) & told(prepared.valid_tokens)
    assert model_for(chosen, prepared) == chosen.model


def test_second_time_from_the_cache_and_the_same(own_cache):
    first = prepare(_spec(tokenizer="bpe:400"))
    again = prepare(_spec(tokenizer="bpe:400"))
    assert (first.from_cache, again.from_cache) == (False, True)
    assert np.array_equal(first.train_tokens, again.train_tokens) and first.as_dict() == again.as_dict()
    assert again.tokenizer.encode("The fox.") == first.tokenizer.encode("The fox.")
    assert [p.name for p in (own_cache / "corpora").iterdir() if p.name.startswith("new-")] == []


@pytest.mark.parametrize("name", ["train.npy", "valid.npy", "tokenizer.json", "meta.json"])
@pytest.mark.parametrize("damage", ["cut", "flip", "gone"])
def test_a_damaged_cache_is_rebuilt(tmp_path, own_cache, name, damage):
    text = tmp_path / "a.txt"
    text.write_text("the cat sat on the mat, " * 400)
    spec = _spec([text], tokenizer="bpe:300")
    first = prepare(spec).train_tokens.copy()
    path = next((own_cache / "corpora").glob(f"*/{name}"))
    content = bytearray(path.read_bytes())
    if damage == "gone":
        path.unlink()
    else:
        content[-3] ^= 0x55
        path.write_bytes(content if damage == "flip" else content[:-3])
    rebuilt = prepare(spec)
    assert not rebuilt.from_cache or name == "meta.json"
    assert np.array_equal(first, rebuilt.train_tokens)
    assert prepare(spec).from_cache


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(tmp_path, own_cache):
    own_cache.write_text("a file where the folder should be")
    path = tmp_path / "a.txt"
    path.write_text("word " * 100)
    assert len(prepare(_spec([path])).train_tokens) == 451


def test_changed_content_is_prepared_anew(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("word " * 100)
    before = prepare(_spec([path]))
    path.write_text("more " * 100)
    after = prepare(_spec([path]))
    assert not after.from_cache and not np.array_equal(before.train_tokens, after.train_tokens)


def test_too_little_text(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("too short")
    with pytest.raises(OfaError, match="less than one batch of 768"):
        prepare(corpus_spec(preset("shakespeare-char"), [path]))
    path.write_text("long enough text " * 10)
    held_out = tmp_path / "b.txt"
    held_out.write_text("x")
    assert len(prepare(_spec([path], [held_out])).valid_tokens) == 2
    with pytest.raises(OfaError, match="--valid needs --data"):
        prepare(_spec([], [held_out]))


def test_shakespeare_splits_as_published():
    if not SHAKESPEARE.exists():
        pytest.skip(f"{SHAKESPEARE.name} is not there")
    prepared = prepare(corpus_spec(preset("shakespeare-char"), [SHAKESPEARE]))
    assert (len(prepared.train_tokens), len(prepared.valid_tokens)) == (1_003_855, 111_539)
    assert prepared.texts[0].text_bytes == 1_115_394
    assert prepared.texts[0].text_sha256 == hashlib.sha256(lzma.decompress(SHAKESPEARE.read_bytes())).hexdigest()


def test_command_line(tmp_path, capsys):
    path = tmp_path / "a.txt"
    path.write_text("The fox ran. " * 2000)
    assert cli.main(["prepare", "--data", str(path), "--tokenizer", "bytes"]) == 0
    assert "23,4" in capsys.readouterr().out
    assert cli.main(["prepare", "--data", str(tmp_path / "none.txt")]) == 2
    assert "there is no" in capsys.readouterr().err
