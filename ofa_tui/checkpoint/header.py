"""The JSON objects in a checkpoint's metadata: whatever is asked of them has the type and range it was written with."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ofa_tui.errors import OfaError

T = TypeVar("T")
MOST = 1 << 53
"""Whole numbers are exact as doubles up to here, whoever reads the JSON."""
MOST_NUMBER = 1e30
SHOWN_CHARACTERS = 40


def brief(value: object) -> str:
    """A value of a file as part of a sentence: on one line, and not long."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}..."


class Fields:
    """One object. Every method raises OfaError that names the file, the object and the field."""

    def __init__(self, path: Path, name: str, values: object) -> None:
        """`name`: what a person calls the object."""
        if not isinstance(values, dict):
            raise OfaError(f"{path} has no readable {name} in its header; take another checkpoint")
        self.values: dict[str, Any] = values
        self._path, self._name = path, name

    @staticmethod
    def read(path: Path, name: str, text: str) -> Fields:
        try:
            return Fields(path, name, json.loads(text))
        except (ValueError, RecursionError):
            return Fields(path, name, None)

    def fail(self, name: str) -> OfaError:
        said = f"the {name} {brief(self.values[name])}, which cannot be" if name in self.values else f"no {name}"
        return OfaError(f"{self._path} has {said}, in the {self._name} of its header; take another checkpoint")

    def integer(self, name: str, low: int = 0, high: int = MOST) -> int:
        value = self.values.get(name)
        if type(value) is not int or not low <= value <= high:
            raise self.fail(name)
        return value

    def number(self, name: str, low: float = 0.0, high: float = math.inf) -> float:
        """A finite one."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= min(high, MOST_NUMBER):
            raise self.fail(name)
        return value

    def flag(self, name: str) -> bool:
        value = self.values.get(name)
        if not isinstance(value, bool):
            raise self.fail(name)
        return value

    def text(self, name: str) -> str:
        """Without control characters."""
        value = self.values.get(name)
        if not isinstance(value, str) or not _is_plain(value):
            raise self.fail(name)
        return value

    def texts(self, name: str) -> list[str]:
        value = self.values.get(name)
        if not isinstance(value, list) or not all(isinstance(text, str) and _is_plain(text) for text in value):
            raise self.fail(name)
        return value

    def inners(self, name: str, most: int) -> list[Fields]:
        """A list of 1 to `most` objects."""
        value = self.values.get(name)
        if not isinstance(value, list) or not 1 <= len(value) <= most or not all(isinstance(o, dict) for o in value):
            raise self.fail(name)
        return [Fields(self._path, name, values) for values in value]

    def inner(self, name: str) -> Fields:
        if not isinstance(self.values.get(name), dict):
            raise self.fail(name)
        return Fields(self._path, name, self.values[name])

    def build(self, kind: type[T], least: int = 0, **given: Any) -> T:
        """A dataclass of whole numbers, from `least` on, and of numbers: those fields that are not `given` from this
        object, which has no others."""
        read: dict[str, Callable[[str], Any]] = {"int": partial(self.integer, low=least), "float": self.number}
        described: Any = kind
        fields = {field.name: str(field.type) for field in dataclasses.fields(described) if field.name not in given}
        self._check_names(fields)
        return kind(**{name: read[of](name) for name, of in fields.items()}, **given)

    def _check_names(self, known: Collection[str]) -> None:
        for name in self.values:
            if name not in known:
                raise OfaError(f"{self._path} has a {brief(name)}, which this version of ofa-tui does not know, in the "
                               f"{self._name} of its header; use the version that wrote it")


def _is_plain(text: str) -> bool:
    return min(text, default=" ") >= " "
