"""What a hash of a trace says of the table behind it, given a table that is nearly the same.

The hashes are FNV-1a, whose steps can be undone. So where one field of four bytes differs, or a pair of fields whose
values are few, the state before the field (from our table) and the state that must follow it (undone from the expected
hash) meet in one value only: which object it is, which field, and what the other engine has there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_START, _PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
_INVERSE = pow(_PRIME, -1, 1 << 64)
_BYTE = np.arange(256, dtype=np.uint64)
_FIRST, _SECOND = np.repeat(_BYTE, 256), np.tile(_BYTE, 256)


@dataclass(frozen=True)
class Guess:
    """The table with `row`'s columns set to these values has the expected hash; or the one without `row` has it."""

    row: int
    values: dict[int, int]
    """By column; empty where the expected table lacks the row."""


def hash_rows(table: np.ndarray) -> int:
    """The hash of i4 [rows, columns]."""
    return _forward(_START, table.ravel().tolist())[-1]


def explain(
    table: np.ndarray, expected: int, pairs: Sequence[tuple[int, range, range]] = ()
) -> Guess | None:
    """What makes `table`, i4 [rows, columns], one of hash `expected`; None where more than that is different.

    `pairs`: (column, its possible values, those of the next column) that may differ together.
    """
    rows, columns = table.shape
    flat = table.ravel().tolist()
    before = _forward(_START, flat)
    after = _backward(expected, flat)
    for index in range(rows * columns):
        value = _solve_field(before[index], after[index + 1])
        if value is not None:
            return Guess(index // columns, {index % columns: value})
    for row in range(rows):
        for column, first, second in pairs:
            index = row * columns + column
            found = _solve_pair(before[index], after[index + 2], first, second)
            if found:
                return Guess(row, {column: found[0], column + 1: found[1]})
        if before[row * columns] == after[(row + 1) * columns]:
            return Guess(row, {})
    return None


def _forward(state: int, fields: Sequence[int]) -> list[int]:
    """The state before each field, and after the last."""
    states = [state]
    for field in fields:
        for byte in (field & 0xFFFFFFFF).to_bytes(4, "little"):
            state = ((state ^ byte) * _PRIME) & _MASK
        states.append(state)
    return states


def _backward(state: int, fields: Sequence[int]) -> list[int]:
    """The state there must be before each field so that `state` follows the last; and that one."""
    states = [state]
    for field in reversed(fields):
        for byte in (field & 0xFFFFFFFF).to_bytes(4, "big"):
            state = (state * _INVERSE & _MASK) ^ byte
        states.append(state)
    return states[::-1]


def _solve_field(before: int, after: int) -> int | None:
    """The field that leads from one state to another."""
    prime, inverse = np.uint64(_PRIME), np.uint64(_INVERSE)
    # All states after two bytes; and, for each last byte, the one before the third, whose lowest byte is free.
    forward = ((np.uint64(before) ^ _FIRST) * prime ^ _SECOND) * prime
    backward = ((np.uint64(after * _INVERSE & _MASK)) ^ _BYTE) * inverse
    eight = np.uint64(8)
    low = np.zeros(1 << 16, bool)
    low[((backward >> eight) & np.uint64(0xFFFF)).astype(np.int64)] = True
    candidates = np.flatnonzero(low[((forward >> eight) & np.uint64(0xFFFF)).astype(np.int64)])
    for candidate in candidates.tolist():
        last = np.flatnonzero(backward >> eight == forward[candidate] >> eight)
        if len(last):
            third = int(forward[candidate] ^ backward[last[0]]) & 0xFF
            raw = bytes([int(_FIRST[candidate]), int(_SECOND[candidate]), third, int(last[0])])
            return int.from_bytes(raw, "little", signed=True)
    return None


def _solve_pair(before: int, after: int, first: range, second: range) -> tuple[int, int] | None:
    forward = _step(np.uint64(before), np.array(first, np.int64))
    backward = _undo(np.uint64(after), np.array(second, np.int64))
    _, i, j = np.intersect1d(forward, backward, return_indices=True)
    return (first[int(i[0])], second[int(j[0])]) if len(i) else None


def _step(state: np.uint64, values: np.ndarray) -> np.ndarray:
    """The states after each of `values`."""
    states = np.full(len(values), state, np.uint64)
    for byte in range(4):
        states = (states ^ ((values >> (8 * byte)) & 0xFF).astype(np.uint64)) * np.uint64(_PRIME)
    return states


def _undo(state: np.uint64, values: np.ndarray) -> np.ndarray:
    """The states before each of `values` that lead to `state`."""
    states = np.full(len(values), state, np.uint64)
    for byte in reversed(range(4)):
        states = states * np.uint64(_INVERSE) ^ ((values >> (8 * byte)) & 0xFF).astype(np.uint64)
    return states
