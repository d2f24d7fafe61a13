"""safetensors files: named arrays behind a JSON header that says where each lies.

Eight bytes with the header's length, the header (padded with blanks to a multiple of eight), the arrays one after the
other, little-endian: https://github.com/huggingface/safetensors#format. A file is written under another name and put
in place when all of it is on the disk. Its metadata carry a hash, under HASH, of the rest of the header and of the
arrays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ofa_tui.errors import OfaError

HASH = "sha256"
PIECE_BYTES = 1 << 24
MOST_HEADER_BYTES = 100_000_000
"""The format's own limit."""
MOST_DIMENSIONS, MOST_ARRAY_BYTES = 32, 2**63 - 1
"""Of an array that numpy can hold, whatever its version; extents of 0 do not count."""
DTYPES: dict[str, np.dtype] = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "U64": np.dtype("<u8"), "U32": np.dtype("<u4"),
    "U16": np.dtype("<u2"), "U8": np.dtype("u1"),
}
"""The array that holds each of the format's kinds; BF16 as its bits."""


@dataclass(frozen=True)
class Entry:
    """An array in the file: `kind` is a key of DTYPES, `offset` counts from the end of the header."""

    kind: str
    shape: tuple[int, ...]
    offset: int
    bytes: int


class TensorFile:
    """An open safetensors file. The header is read and checked at once, arrays when they are asked for."""

    def __init__(self, path: Path) -> None:
        """Raises OfaError for a file that is not there, is not of this format, or is not whole."""
        self.path = path
        try:
            if not path.is_file():
                raise OfaError(_no_file(path))
            with path.open("rb") as file:
                self._start, header = _read_header(path, file.read(8), file.read)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise OfaError(f"cannot read {path} ({error.strerror or type(error).__name__})") from None
        self._header = header
        header = dict(header)
        self.metadata: dict[str, str] = header.pop("__metadata__", {})
        self.entries = _entries(path, self.metadata, header)
        end = self._start + max((entry.offset + entry.bytes for entry in self.entries.values()), default=0)
        if size != end:
            raise OfaError(f"{path} is not whole: it has {size:,} bytes of {end:,}; take another checkpoint")

    def check(self) -> None:
        """Raises OfaError where something is not as it was written. Without a HASH nothing is known."""
        if HASH not in self.metadata:
            return
        digest = _hash_of_header(self._header)
        with self._reading() as file:
            file.seek(self._start)
            while piece := file.read(PIECE_BYTES):
                digest.update(piece)
        if digest.hexdigest() != self.metadata[HASH]:
            raise OfaError(f"{self.path} is damaged: it is not as it was written; take another checkpoint")

    def array(self, name: str) -> np.ndarray:
        """A new array, of DTYPES' dtype. Raises OfaError for a name that the file has not."""
        entry = self.entries.get(name)
        if entry is None:
            raise OfaError(f"{self.path} has no array {name}; give a checkpoint of this model")
        array = np.empty(entry.shape, DTYPES[entry.kind])
        with self._reading() as file:
            file.seek(self._start + entry.offset)
            got = file.readinto(array.reshape(-1).view(np.uint8)) if array.nbytes else 0
        if got != array.nbytes:
            raise OfaError(f"{self.path} is not whole: {name} ends early; take another checkpoint")
        return array

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Any]:
        try:
            with self.path.open("rb") as file:
                yield file
        except OSError as error:
            raise OfaError(f"cannot read {self.path} ({error.strerror or type(error).__name__})") from None


def _no_file(path: Path) -> str:
    if os.path.isdir(path):
        return f"{path} is a folder; name one of its files"
    if os.path.exists(path):
        return f"{path} is no regular file; give a checkpoint, or the folder that holds some"
    return f"there is no file {path}; give a checkpoint, or the folder that holds some"


def _read_header(path: Path, first: bytes, read: Any) -> tuple[int, dict[str, Any]]:
    """Where the arrays begin, and the header."""
    length = int.from_bytes(first, "little")
    if len(first) < 8 or not 2 <= length <= MOST_HEADER_BYTES:
        raise OfaError(f"{path} is not a safetensors file, or only its beginning; take another checkpoint")
    text = read(length)
    try:
        header = json.loads(text) if len(text) == length else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise OfaError(f"{path} is not whole: its header is cut off or damaged; take another checkpoint")
    return 8 + length, header


def _entries(path: Path, metadata: Any, header: Mapping[str, Any]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    try:
        if any(not isinstance(text, str) for text in metadata.values()):
            raise ValueError
        for name, described in header.items():
            kind, shape = described["dtype"], tuple(described["shape"])
            begin, end = described["data_offsets"]
            if any(type(number) is not int or number < 0 for number in (*shape, begin, end)):
                raise ValueError
            dtype = DTYPES[kind]
            if not _can_be_held(shape, dtype) or end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError
            entries[name] = Entry(kind, shape, begin, end - begin)
        at = 0
        for entry in sorted(entries.values(), key=lambda entry: (entry.offset, entry.bytes)):
            if entry.offset != at:
                raise ValueError
            at += entry.bytes
    except (ValueError, TypeError, KeyError, AttributeError):
        raise OfaError(f"{path} has a header that does not describe its arrays; take another checkpoint") from None
    return entries


def _can_be_held(shape: tuple[int, ...], dtype: np.dtype) -> bool:
    return (len(shape) <= MOST_DIMENSIONS
            and math.prod(extent for extent in shape if extent) * dtype.itemsize <= MOST_ARRAY_BYTES)


def _hash_of_header(header: Mapping[str, Any]) -> Any:
    """A hash object that has taken in all of it but the hash itself."""
    metadata = {name: text for name, text in header.get("__metadata__", {}).items() if name != HASH}
    return hashlib.sha256(json.dumps({**header, "__metadata__": metadata}, sort_keys=True).encode())


@dataclass(frozen=True, eq=False)
class Tensor:
    """An array to be written: `kind` is a key of DTYPES and has the array's dtype."""

    kind: str
    array: np.ndarray


def kind_of(array: np.ndarray) -> str:
    """The format's name of an array's dtype; u2 counts as the bits of bf16."""
    return next(kind for kind, dtype in DTYPES.items() if dtype == array.dtype)


def scratch_name(path: Path) -> Path:
    """Where a file is written before it is put in place."""
    return path.with_name(f".{path.name}.new")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> int:
    """Puts a safetensors file in place, whole, and returns its size in bytes. Raises OSError; nothing is left then."""
    arrays = {name: np.ascontiguousarray(tensor.array) for name, tensor in tensors.items()}
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    offset = 0
    for name, array in arrays.items():
        header[name] = {"dtype": tensors[name].kind, "shape": list(tensors[name].array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    digest = _hash_of_header(header)
    for array in arrays.values():
        for piece in _pieces(array):
            digest.update(piece)
    header["__metadata__"][HASH] = digest.hexdigest()
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    scratch = scratch_name(path)
    try:
        with scratch.open("wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for array in arrays.values():
                for piece in _pieces(array):
                    file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, path)
        _sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            scratch.unlink()
        raise
    return 8 + len(text) + offset


def _pieces(array: np.ndarray) -> Iterator[memoryview]:
    """Large enough that hashing and writing let other threads run."""
    flat = array.reshape(-1).view(np.uint8)
    for start in range(0, len(flat), PIECE_BYTES):
        yield flat[start : start + PIECE_BYTES].data


def _sync_folder(folder: Path) -> None:
    """The file's new name is on the disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
