"""Text files as a training corpus: which files count, how they are read, where a document ends."""

from __future__ import annotations

import hashlib
import io
import lzma
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import zstandard

from ofa_tui.errors import OfaError

SUFFIXES = (".txt", ".txt.xz", ".txt.zst")
"""Files of a folder that count as text."""

SEPARATOR = "<|endoftext|>"
_SEPARATOR_LINE = re.compile(r"^<\|endoftext\|>$", re.MULTILINE)


@dataclass(frozen=True)
class InputFile:
    """A file of the corpus, as it was found."""

    name: str
    held_out: bool
    bytes: int
    sha256: str
    """Of the file as it lies there, compressed or not."""


@dataclass(frozen=True)
class SourceFile:
    path: Path
    info: InputFile


@dataclass(frozen=True)
class TextInfo:
    """What a file's text came to, once read."""

    name: str
    text_sha256: str
    text_bytes: int
    documents: int


def find_files(data: Sequence[Path], valid: Sequence[Path]) -> list[SourceFile]:
    """The files that `--data` (files or folders, in order) and `--valid` (files) name, hashed.

    In a folder only `SUFFIXES` count, sorted by name, and `*.valid.*` is held out.
    Raises OfaError for what is missing, unreadable, empty of text, or both trained on and held out.
    """
    chosen: list[tuple[Path, bool]] = []
    for path in data:
        if path.is_dir():
            inside = sorted(_listed(path))
            if not any(not held_out for _, held_out in inside):
                raise OfaError(
                    f"the folder {path} holds no training text; put {', '.join(SUFFIXES)} files there "
                    "(*.valid.* files are held out, so they do not count)"
                )
            chosen += inside
        elif _is_held_out(path):
            raise OfaError(f"{path} is held-out text by its name (*.valid.*); give it with --valid, or rename it")
        else:
            chosen.append((path, False))
    for path in valid:
        if path.is_dir():
            raise OfaError(f"--valid {path} is a folder; name the held-out files one by one")
        chosen.append((path, True))

    found = [SourceFile(path, _describe(path, held_out)) for path, held_out in chosen]
    if not any(source.info.held_out for source in found):
        _check_not_repeated(found)
    trained_on = {source.info.sha256: source.path for source in found if not source.info.held_out}
    for source in found:
        if source.info.held_out and source.info.sha256 in trained_on:
            raise OfaError(
                f"{source.path} is to be held out, but {trained_on[source.info.sha256]} with the same content is "
                "trained on; leave one of them out"
            )
    return found


def _check_not_repeated(found: Sequence[SourceFile]) -> None:
    """Where the end of the text is held out, a second copy of it would be trained on."""
    first: dict[str, SourceFile] = {}
    for source in found:
        earlier = first.setdefault(source.info.sha256, source)
        if earlier is not source:
            raise OfaError(
                f"{source.path} has the same content as {earlier.path}, and the end of the text is held out; "
                "give it once, or held-out text with --valid"
            )


def _listed(folder: Path) -> Iterable[tuple[Path, bool]]:
    try:
        for path in folder.iterdir():
            if path.name.endswith(SUFFIXES) and not path.name.startswith(".") and path.is_file():
                yield path, _is_held_out(path)
    except OSError as error:
        raise OfaError(f"cannot read the folder {folder} ({error.strerror}); check its permissions") from None


def _is_held_out(path: Path) -> bool:
    return ".valid." in path.name


def _raw(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise OfaError(f"there is no {path}; give a text file or a folder of text files") from None
    except OSError as error:
        raise OfaError(f"cannot read {path} ({error.strerror}); check the file and its permissions") from None


def _describe(path: Path, held_out: bool) -> InputFile:
    if path.exists() and not path.is_file():
        raise OfaError(f"{path} is not a regular file, and a text is read more than once; save it to a file first")
    raw = _raw(path)
    if not raw:
        raise OfaError(f"{path} is empty; give a file with UTF-8 text")
    return InputFile(path.name, held_out, len(raw), hashlib.sha256(raw).hexdigest())


def read_text(path: Path) -> str:
    """The text of a plain, .xz or .zst file, with `\\n` line ends and without a byte order mark.

    Raises OfaError for a file that is missing, cut short, or not UTF-8 text.
    """
    data = _raw(path)
    if path.name.endswith(".xz"):
        try:
            data = lzma.decompress(data)
        except (lzma.LZMAError, EOFError):
            raise OfaError(f"{path} is not a whole .xz file; it may be cut short, fetch it again") from None
    elif path.name.endswith(".zst"):
        data = _unpack_zstd(path, data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OfaError(f"{path} is not UTF-8 text (byte {error.start} cannot be); convert it to UTF-8") from None
    if "\0" in text:
        raise OfaError(f"{path} is a binary file, not text; give a file with UTF-8 text")
    return text.replace("\r\n", "\n")


def _unpack_zstd(path: Path, data: bytes) -> bytes:
    """All frames of a .zst file; a frame without its end is an error, which a plain stream reader overlooks."""
    unpacked = io.BytesIO()
    try:
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            unpacked.write(frame.decompress(data))
            if not frame.eof:
                raise zstandard.ZstdError("frame without an end")
            data = frame.unused_data
    except zstandard.ZstdError:
        raise OfaError(f"{path} is not a whole .zst file; it may be cut short, fetch it again") from None
    return unpacked.getvalue()


def split_documents(text: str) -> list[str]:
    """Documents divided by lines that are exactly `<|endoftext|>`, without newlines around them, none empty."""
    pieces = (piece.strip("\n") for piece in _SEPARATOR_LINE.split(text))
    return [piece for piece in pieces if piece]


def join_documents(documents: Iterable[str]) -> str:
    """The text that `split_documents` takes apart again."""
    return "".join(f"{document}\n{SEPARATOR}\n" for document in documents)


def read_documents(path: Path) -> tuple[list[str], TextInfo]:
    """A file's documents and what its text came to. Raises OfaError as `read_text`, and for a file without text."""
    text = read_text(path)
    documents = split_documents(text)
    if not documents:
        raise OfaError(f"{path} holds no text; give a file with UTF-8 text")
    encoded = text.encode()
    return documents, TextInfo(path.name, hashlib.sha256(encoded).hexdigest(), len(encoded), len(documents))
