"""Served tokens of a run that is over in one small file, `served.json.zst`: one zstd frame of one JSON object.

The object has a list for each field of ServedToken, all of the same length. It holds what served.jsonl does in a
small part of the room, and is read several times as fast.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import zstandard

from ofa_tui import abi
from ofa_tui.engine.protocol import ServedToken

NAME = "served.json.zst"
LEVEL = 19
KINDS: dict[str, type] = {"int": int, "str": str, "bool": bool, "float": float}
COLUMNS = {field.name: KINDS[str(field.type)] for field in fields(ServedToken)}


def pack_served(tokens: Sequence[ServedToken]) -> bytes:
    """The contents of the file; times are kept to the microsecond, as in served.jsonl."""
    columns: dict[str, list[Any]] = {name: [getattr(token, name) for token in tokens] for name in COLUMNS}
    columns["seconds"] = [round(seconds, 6) for seconds in columns["seconds"]]
    text = json.dumps(columns, ensure_ascii=False, separators=(",", ":"))
    compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=True)
    return compressor.compress(text.encode(errors="backslashreplace"))


def unpack_served(data: bytes) -> list[ServedToken]:
    """Raises ValueError for anything that `pack_served` does not write."""
    try:
        # Piece by piece: `decompress` allocates what the header says, which may be damaged.
        unpacking = zstandard.ZstdDecompressor().decompressobj()
        text = unpacking.decompress(data)
        if not unpacking.eof:
            raise ValueError("half a file")
        columns = json.loads(text)
        known = [columns[name] for name in COLUMNS]
    except (zstandard.ZstdError, RecursionError, KeyError, TypeError) as error:
        raise ValueError(str(error)) from None
    for column, kind in zip(known, COLUMNS.values(), strict=True):
        if not isinstance(column, list) or len(column) != len(known[0]) or not set(map(type, column)) <= {kind}:
            raise ValueError("a column of another kind or length")
    if not np.isfinite(columns["seconds"]).all():
        raise ValueError("no time")
    if not set(columns["stream"]) <= set(range(abi.MAX_STREAMS)):
        raise ValueError("no stream")
    return list(map(ServedToken, *known))
