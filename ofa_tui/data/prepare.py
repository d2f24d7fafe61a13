"""From text to token arrays: `ofa-tui prepare`, and what every run does first.

A corpus is prepared once: the result lies in the cache under a key made of the inputs' hashes, and is mapped into
memory from there. A damaged entry is built anew, and a cache that cannot be written costs time, not the run.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers as hf

from ofa_tui import locations
from ofa_tui.data import stories
from ofa_tui.data.corpus import InputFile, SourceFile, TextInfo, find_files, read_documents
from ofa_tui.data.tokenizers import (
    ByteTokenizer,
    FileTokenizer,
    Tokenizer,
    bpe_size,
    fingerprint,
    load_tokenizer,
    train_bpe,
)
from ofa_tui.errors import OfaError
from ofa_tui.presets import PRESETS, ModelConfig, Preset, preset
from ofa_tui.progress import Progress

FORMAT = 1
"""Part of every cache key; changes when the arrays' meaning does."""

HELD_OUT_SHARE = 0.1
STORY_SEED, HELD_OUT_STORY_SEED = 1, 2
STORY_BYTES_PER_TOKEN = 3.2
"""Of generated stories with 1,024 ids; more with a larger vocabulary, then the corpus is a little larger than asked."""
HELD_OUT_STORY_BYTES = 260_000
MAX_STORY_TOKENS = 8_000_000
BPE_TRAINING_BYTES = 16_000_000
STORY_BPE_TRAINING_BYTES = 3_000_000
"""A BPE is learned from at most this much of the training text; stories are alike, so less of them will do."""


@dataclass(frozen=True)
class CorpusSpec:
    """What to train on and with which ids."""

    data: tuple[Path, ...]
    """Files and folders; none for generated stories."""
    valid: tuple[Path, ...]
    tokenizer: str
    story_tokens: int
    """Tokens of generated stories wanted (at most MAX_STORY_TOKENS are made; training then goes over them again)."""
    batch_tokens: int
    """Tokens of one batch: a corpus must have at least one more."""
    vocab_multiple: int = 64


@dataclass(frozen=True)
class Prepared:
    """A tokenised corpus. The arrays are i4 [n], read-only, usually mapped from the cache."""

    train_tokens: np.ndarray
    valid_tokens: np.ndarray
    tokenizer: Tokenizer
    vocab: int
    """The tokenizer's size, padded to the preset's multiple: rows of the embedding."""
    source: str
    """`stories` or `files`."""
    inputs: tuple[InputFile, ...]
    texts: tuple[TextInfo, ...]
    from_cache: bool

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a run record: counts, and the SHA-256 of every input."""
        return {
            "source": self.source,
            "tokenizer": self.tokenizer.name,
            "vocab": self.vocab,
            "vocab_used": self.tokenizer.size,
            "train_tokens": len(self.train_tokens),
            "valid_tokens": len(self.valid_tokens),
            "inputs": [dataclasses.asdict(entry) for entry in self.inputs],
            "texts": [dataclasses.asdict(entry) for entry in self.texts],
        }


@dataclass
class _Documents:
    train: list[str]
    valid: list[str]
    texts: list[TextInfo]


def corpus_spec(
    chosen: Preset, data: Sequence[Path] = (), valid: Sequence[Path] = (), tokenizer: str = "", steps: int = 0
) -> CorpusSpec:
    """The corpus of a preset; empty arguments mean the preset's own tokenizer and steps."""
    batch_tokens = chosen.train.batch * chosen.model.context
    return CorpusSpec(
        data=tuple(data),
        valid=tuple(valid),
        tokenizer=tokenizer or chosen.tokenizer,
        story_tokens=max(steps, chosen.train.steps) * batch_tokens,
        batch_tokens=batch_tokens,
        vocab_multiple=chosen.vocab_multiple,
    )


def model_for(chosen: Preset, prepared: Prepared) -> ModelConfig:
    """The preset's model with an embedding for the corpus's tokenizer."""
    return dataclasses.replace(chosen.model, vocab=prepared.vocab)


def prepare(spec: CorpusSpec, progress: Progress | None = None) -> Prepared:
    """The tokens of a corpus, from the cache where it has them; `progress` is used, and closed, where it has not.

    Raises OfaError for inputs that cannot be used (see `find_files`, `read_text`, `load_tokenizer`) and for a corpus
    that is smaller than one batch.
    """
    bpe_size(spec.tokenizer)
    sources = find_files(spec.data, spec.valid)
    if spec.valid and not spec.data:
        raise OfaError("--valid needs --data: generated stories have held-out stories of their own")
    folder = locations.cache() / "corpora" / _cache_key(spec, sources)
    prepared = _load(folder, spec, sources)
    if prepared is None:
        documents = _read(spec, sources, progress)
        tokenizer, train, valid = _tokenise(spec, documents, progress)
        _store(folder, tokenizer, train, valid, documents.texts)
        prepared = _load(folder, spec, sources) or _prepared(
            spec, sources, tokenizer, train, valid, documents.texts, from_cache=False
        )
        prepared = dataclasses.replace(prepared, from_cache=False)
        if progress:
            progress.close(f"{len(prepared.train_tokens) + len(prepared.valid_tokens):,} tokens")
    _check_size(spec, prepared)
    return prepared


def _check_size(spec: CorpusSpec, prepared: Prepared) -> None:
    if len(prepared.train_tokens) <= spec.batch_tokens:
        raise OfaError(
            f"the corpus has {len(prepared.train_tokens):,} training tokens, less than one batch of "
            f"{spec.batch_tokens:,}; give more text with --data, or a preset with a smaller batch"
        )
    if len(prepared.valid_tokens) < 2:
        raise OfaError("the held-out text has fewer than two tokens; give more with --valid")


def _prepared(
    spec: CorpusSpec,
    sources: list[SourceFile],
    tokenizer: Tokenizer,
    train: np.ndarray,
    valid: np.ndarray,
    texts: list[TextInfo],
    from_cache: bool,
) -> Prepared:
    multiple = spec.vocab_multiple
    return Prepared(
        train_tokens=train,
        valid_tokens=valid,
        tokenizer=tokenizer,
        vocab=-(-tokenizer.size // multiple) * multiple,
        source="files" if sources else "stories",
        inputs=tuple(source.info for source in sources),
        texts=tuple(texts),
        from_cache=from_cache,
    )


# --- reading and tokenising ---------------------------------------------------------------------------------------


def _story_bytes(spec: CorpusSpec) -> int:
    """Whole megabytes, so that runs of nearly the same length share one cache entry."""
    wanted = min(spec.story_tokens, MAX_STORY_TOKENS) * STORY_BYTES_PER_TOKEN
    return max(1, round(wanted / 1e6)) * 1_000_000


def _read(spec: CorpusSpec, sources: list[SourceFile], progress: Progress | None) -> _Documents:
    if not sources:
        if progress:
            progress.message("generating stories")
        train = stories.generate(STORY_SEED, _story_bytes(spec))
        known = set(train)
        held_out = [text for text in stories.generate(HELD_OUT_STORY_SEED, HELD_OUT_STORY_BYTES) if text not in known]
        return _Documents(train, held_out, [_story_info("train", train), _story_info("held out", held_out)])
    result = _Documents([], [], [])
    for source in sources:
        if progress:
            progress.message(f"reading {source.path}")
        documents, info = read_documents(source.path)
        (result.valid if source.info.held_out else result.train).extend(documents)
        result.texts.append(info)
    return result


def _story_info(name: str, documents: list[str]) -> TextInfo:
    text = "\n".join(documents).encode()
    return TextInfo(f"generated stories, {name}", hashlib.sha256(text).hexdigest(), len(text), len(documents))


def _tokenise(
    spec: CorpusSpec, documents: _Documents, progress: Progress | None
) -> tuple[Tokenizer, np.ndarray, np.ndarray]:
    size = bpe_size(spec.tokenizer)
    total = sum(map(len, documents.train)) + sum(map(len, documents.valid))
    if size is None:
        tokenizer = load_tokenizer(spec.tokenizer)
    else:
        if progress:
            progress.message(f"learning a vocabulary of {size:,} byte pairs")
        limit = BPE_TRAINING_BYTES if spec.data else STORY_BPE_TRAINING_BYTES
        if not documents.valid:
            limit = min(limit, int(total * (1 - HELD_OUT_SHARE)))
        tokenizer = train_bpe(size, _first(documents.train, limit))
    if progress:
        progress.total = total
    done = sum(map(len, documents.train))
    train = tokenizer.encode_documents(documents.train, progress.update if progress else None)
    valid = tokenizer.encode_documents(
        documents.valid, (lambda characters: progress.update(done + characters)) if progress else None
    )
    if not documents.valid:
        cut = len(train) - int(len(train) * HELD_OUT_SHARE)
        train, valid = train[:cut], train[cut:]
    return tokenizer, train, valid


def _first(documents: Iterable[str], limit: int) -> Iterable[str]:
    """Documents from the start on, the last one cut, up to `limit` characters."""
    for document in documents:
        if limit <= 0:
            return
        yield document[:limit]
        limit -= len(document)


# --- cache --------------------------------------------------------------------------------------------------------


def _cache_key(spec: CorpusSpec, sources: list[SourceFile]) -> str:
    parts: list[Any] = [FORMAT, hf.__version__, fingerprint(spec.tokenizer)]
    if sources:
        parts += [(source.info.sha256, source.info.name, source.info.held_out) for source in sources]
    else:
        grammar, reader = locations.assets() / "stories.grammar", Path(stories.__file__)
        made_by = hashlib.sha256(grammar.read_bytes() + reader.read_bytes()).hexdigest()
        parts += [made_by, STORY_SEED, _story_bytes(spec), HELD_OUT_STORY_BYTES]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _store(folder: Path, tokenizer: Tokenizer, train: np.ndarray, valid: np.ndarray, texts: list[TextInfo]) -> None:
    """Writes a cache entry whole or not at all; a cache that cannot be written is left alone."""
    scratch: Path | None = None
    with contextlib.suppress(OSError):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix="new-", dir=folder.parent))
            np.save(scratch / "train.npy", train)
            np.save(scratch / "valid.npy", valid)
            if isinstance(tokenizer, FileTokenizer):
                (scratch / "tokenizer.json").write_text(tokenizer.to_json(), "utf-8")
            meta = {
                "tokenizer": tokenizer.name,
                "sha256": {path.name: _sha256(path) for path in sorted(scratch.iterdir())},
                "texts": [dataclasses.asdict(text) for text in texts],
            }
            (scratch / "meta.json").write_text(json.dumps(meta), "utf-8")
            if folder.exists():
                shutil.rmtree(folder)
            os.rename(scratch, folder)
        finally:
            if scratch is not None:
                shutil.rmtree(scratch, ignore_errors=True)


def _load(folder: Path, spec: CorpusSpec, sources: list[SourceFile]) -> Prepared | None:
    """A cache entry, None where there is none or it is damaged."""
    try:
        meta = json.loads((folder / "meta.json").read_text("utf-8"))
        if any(_sha256(folder / name) != digest for name, digest in meta["sha256"].items()):
            return None
        train = np.load(folder / "train.npy", mmap_mode="r")
        valid = np.load(folder / "valid.npy", mmap_mode="r")
        texts = [TextInfo(**entry) for entry in meta["texts"]]
        tokenizer: Tokenizer
        if (folder / "tokenizer.json").exists():
            tokenizer = FileTokenizer(meta["tokenizer"], hf.Tokenizer.from_file(str(folder / "tokenizer.json")))
        else:
            tokenizer = ByteTokenizer()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return _prepared(spec, sources, tokenizer, train, valid, texts, from_cache=True)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- ofa-tui prepare ----------------------------------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="tiny", metavar="P", help=f"one of {', '.join(PRESETS)} (default: tiny)")
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="FILE|FOLDER",
                        help="text to train on, repeatable (default: generated stories)")
    parser.add_argument("--valid", type=Path, action="append", default=[], metavar="FILE",
                        help="held-out text, repeatable")
    parser.add_argument("--tokenizer", default="", metavar="T", help="bytes, bpe:N, gpt2 or a tokenizers JSON file")
    parser.add_argument("--steps", type=int, default=0, metavar="N",
                        help="training steps, which decide how many stories are generated (default: the preset's)")


def run(args: argparse.Namespace) -> int:
    if args.steps < 0:
        raise OfaError(f"--steps {args.steps} cannot be; give at least 1, or 0 for the preset's")
    spec = corpus_spec(preset(args.preset), args.data, args.valid, args.tokenizer, args.steps)
    with Progress("preparing the text") as progress:
        prepared = prepare(spec, progress)
    print(
        f"{'in the cache' if prepared.from_cache else 'prepared'}: {len(prepared.train_tokens):,} training tokens, "
        f"{len(prepared.valid_tokens):,} held out, tokenizer {prepared.tokenizer.name} with "
        f"{prepared.tokenizer.size:,} ids"
    )
    return 0
