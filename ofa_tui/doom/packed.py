"""A WAD as the kernel reads it: packed now, or found in the cache."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ofa_tui import locations
from ofa_tui.doom import layout
from ofa_tui.doom.levels import describe_maps, episode_and_map, is_doom2, map_names
from ofa_tui.doom.wad import WadError, read_wad

CHECKSUM_BYTES = 32
PALETTES = 14


@dataclass(frozen=True)
class PackedWad:
    """A packed WAD: `blob` u1 [bytes] (read-only), `maps` in playing order."""

    path: str
    sha256: str
    blob: np.ndarray
    maps: tuple[str, ...]
    doom2: bool

    def episode_and_map(self, name: str) -> tuple[int, int]:
        """Numbers of a map by name. Raises WadError naming the maps there are."""
        wanted = name.upper()
        if wanted not in self.maps:
            raise WadError(f"{self.path} has no map {name}; it has {describe_maps(self.maps)}.")
        return episode_and_map(wanted)

    def palette(self, index: int) -> np.ndarray:
        """u1 [256, 3]: colours of PLAYPAL `index` (0-13)."""
        head = layout.header(self.blob)
        start = int(head["palettes"]["offset"]) + 768 * index
        return self.blob[start:start + 768].reshape(256, 3)


def load(path: str | Path) -> PackedWad:
    """The packed WAD at `path`, from the cache when this file was packed before by this version of the packer.

    Raises WadError when the file is missing, damaged or no complete game.
    """
    wad = read_wad(path)
    maps = tuple(map_names(wad))
    cached = locations.cache() / "wads" / f"{wad.sha256[:24]}-{packer_version()}.blob"
    blob = _read_cached(cached)
    if blob is None:
        from ofa_tui.doom.packer import pack

        blob = pack(wad)
        _write_cached(cached, blob)
    blob.flags.writeable = False
    return PackedWad(str(path), wad.sha256, blob, maps, is_doom2(wad))


def packer_version() -> str:
    """Changes with every change of the packer's code or of a behaviour table."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")) + sorted((locations.assets() / "doom").glob("*.csv")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def _read_cached(file: Path) -> np.ndarray | None:
    """The blob, or None where it is missing or its SHA-256 at the end of the file says that it was damaged."""
    try:
        stored = np.fromfile(file, np.uint8)
    except OSError:
        return None
    blob, checksum = stored[:-CHECKSUM_BYTES], stored[-CHECKSUM_BYTES:]
    if len(blob) < layout.BLOB.itemsize or hashlib.sha256(blob.data).digest() != checksum.tobytes():
        return None
    head = layout.header(blob)
    sound = (int(head["magic"]), int(head["version"]), int(head["bytes"])) == (
        layout.BLOB_MAGIC, layout.BLOB_VERSION, len(blob))
    return blob if sound else None


def _write_cached(file: Path, blob: np.ndarray) -> None:
    """Keeps the blob for next time; a cache that cannot be written only costs time."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.stem)
        try:
            with os.fdopen(handle, "wb") as out:
                blob.tofile(out)
                out.write(hashlib.sha256(blob.data).digest())
            os.replace(temporary, file)
            for older in file.parent.glob(f"{file.name.partition('-')[0]}-*.blob"):
                if older != file:
                    older.unlink()
        except OSError:
            Path(temporary).unlink(missing_ok=True)
    except OSError:
        pass
