"""Reader of WAD files: a header, a directory of named lumps, and the lumps' bytes.

Format: 12-byte header (`IWAD` or `PWAD`, number of lumps, offset of the directory, both int32), then 16 bytes for
each lump (offset, size, name of at most 8 bytes padded with zeros). Later lumps replace earlier ones of the same name.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ofa_tui.errors import OfaError

MAX_BYTES = 256 << 20
MAX_LUMPS = 1 << 16
_ENTRY = np.dtype([("offset", "<i4"), ("size", "<i4"), ("name", "S8")])


class WadError(OfaError):
    """A WAD that cannot be read, or that lacks something the engine needs.

    Names of lumps may hold any bytes; what a terminal would not print becomes a question mark.
    """

    def __init__(self, message: str) -> None:
        if not message.isprintable():
            message = "".join(letter if letter.isprintable() else "?" for letter in message)
        super().__init__(message)


@dataclass(frozen=True)
class Wad:
    """A whole WAD in memory. `names[i]` and `lump(i)` belong to directory entry i."""

    path: str
    data: bytes
    names: tuple[str, ...]
    offsets: np.ndarray
    sizes: np.ndarray
    sha256: str
    _last: dict[str, int] = field(repr=False)

    @property
    def title(self) -> str:
        return Path(self.path).name

    def find(self, name: str) -> int | None:
        """Index of the last lump called `name` (upper case), or None."""
        return self._last.get(name)

    def index(self, name: str) -> int:
        """As `find`; WadError where there is none."""
        found = self._last.get(name)
        if found is None:
            raise WadError(f"{self.path} has no lump {name}, so it is not a complete game; use a game's main WAD"
                           " (an IWAD such as freedoom1.wad).")
        return found

    def lump(self, index: int) -> bytes:
        start = int(self.offsets[index])
        return self.data[start:start + int(self.sizes[index])]

    def read(self, name: str) -> bytes:
        return self.lump(self.index(name))


def clean_name(raw: bytes) -> str:
    """A lump or texture name: bytes up to the first zero, upper case."""
    return raw.split(b"\0", 1)[0].upper().decode("latin-1")


def read_wad(path: str | Path) -> Wad:
    """Reads and checks a WAD file.

    Raises WadError when the file cannot be opened or is not a sound WAD.
    """
    path = Path(path)
    try:
        if path.is_dir():
            raise WadError(f"{path} is a folder; name a WAD file in it.")
        size = path.stat().st_size
        if not path.is_file():
            raise WadError(f"{path} is no regular file; name a WAD file.")
        if size > MAX_BYTES:
            raise WadError(f"{path} is larger than {MAX_BYTES >> 20} MB, which no Doom WAD is; name another file.")
        data = path.read_bytes()
    except OSError as error:
        raise WadError(f"Cannot read the WAD {path}: {error.strerror or error}; check the path.") from error
    return parse_wad(data, str(path))


def parse_wad(data: bytes, path: str) -> Wad:
    """The WAD in `data`; `path` names it in messages. Raises WadError."""
    if len(data) < 12 or data[:4] not in (b"IWAD", b"PWAD"):
        raise WadError(f"{path} is not a WAD file (it does not begin with IWAD or PWAD); name another file.")
    count = int.from_bytes(data[4:8], "little", signed=True)
    directory = int.from_bytes(data[8:12], "little", signed=True)
    if not 0 < count <= MAX_LUMPS:
        raise WadError(f"{path} is damaged: its header speaks of {count} lumps; get a fresh copy of the file.")
    if directory < 12 or directory + count * _ENTRY.itemsize > len(data):
        raise WadError(f"{path} is truncated or damaged: its directory ends past the end of the file; get a fresh"
                       " copy.")
    entries = np.frombuffer(data, _ENTRY, count, directory)
    offsets, sizes = entries["offset"].astype(np.int64), entries["size"].astype(np.int64)
    bad = (sizes < 0) | ((sizes > 0) & ((offsets < 0) | (offsets + sizes > len(data))))
    names = tuple(clean_name(bytes(name)) for name in entries["name"].tolist())
    if bad.any():
        name = names[int(np.argmax(bad))]
        raise WadError(f"{path} is truncated or damaged: lump {name} ends past the end of the file; get a fresh copy.")
    if int(sizes.sum()) > 4 * len(data):
        raise WadError(f"{path} is damaged: its lumps overlap; get a fresh copy of the file.")
    offsets = np.where(sizes > 0, offsets, 0)
    return Wad(path, data, names, offsets, sizes, hashlib.sha256(data).hexdigest(),
               {name: index for index, name in enumerate(names)})
