"""A header that says something else than what was written, with the right hash: one sentence that names the file."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from samples import RUN, write

from ofa_tui.checkpoint.checkpoint import Checkpoint, going_on
from ofa_tui.checkpoint.tensors import HASH
from ofa_tui.errors import OfaError

OBJECTS = ("run", "state", "settings")
"""JSON inside the metadata's texts."""
Place = tuple[str | int, ...]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
    | st.sampled_from([-5, 0, 1, 1 << 31, 1 << 53, 1 << 64, 10**30, 1e30, math.inf, math.nan, "1", "\n", "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6)
DELETED = object()


def unpacked(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The header, with the objects in its metadata, and the arrays."""
    end = 8 + int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:end])
    metadata = header["__metadata__"]
    return header | {"__metadata__": metadata | {name: json.loads(metadata[name]) for name in OBJECTS}}, raw[end:]


def packed(header: dict[str, Any], arrays: bytes) -> bytes:
    """A file whose hash is that of this header and these arrays."""
    metadata = {name: json.dumps(value) if name in OBJECTS else value
                for name, value in header["__metadata__"].items() if name != HASH}
    header = header | {"__metadata__": metadata}
    hashed = hashlib.sha256(json.dumps(header, sort_keys=True).encode() + arrays)
    text = json.dumps(header | {"__metadata__": metadata | {HASH: hashed.hexdigest()}}).encode()
    return len(text).to_bytes(8, "little") + text + arrays


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Every key of nested objects, every index of lists of them."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in entries:
        yield (*at, name)
        yield from places(inner, (*at, name))


def changed(header: Any, place: Place, value: object) -> Any:
    name, rest = place[0], place[1:]
    copy = header.copy()
    if isinstance(name, str) != isinstance(copy, dict):
        raise LookupError(f"{name} is no place in {header}")
    if rest:
        copy[name] = changed(copy[name], rest, value)
    elif value is DELETED:
        del copy[name]
    else:
        copy[name] = value
    return copy


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write(tmp_path_factory.mktemp("whole") / "one", 4).read_bytes()


def use(path: Path) -> None:
    """Whatever is asked of a checkpoint's file."""
    found = Checkpoint(path)
    found.check()
    found.options()
    _ = found.tokenizer
    found.state()
    going_on(RUN, found, "host", "f4", resample=False).check()


@pytest.fixture(scope="module")
def every_place(whole: bytes) -> list[Place]:
    return [place for place in places(unpacked(whole)[0]) if place not in (("__metadata__",), ("__metadata__", HASH))]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_header_that_was_changed_is_used_or_refused_in_one_sentence(whole, every_place, tmp_path, data):
    header, arrays = unpacked(whole)
    for place in data.draw(st.lists(st.sampled_from(every_place), min_size=1, max_size=2, unique=True)):
        # The other change may have taken the place away.
        with contextlib.suppress(LookupError, TypeError, ValueError, AttributeError):
            header = changed(header, place, data.draw(VALUES | st.just(DELETED)))
    path = tmp_path / "one"
    path.write_bytes(packed(header, arrays))
    try:
        use(path)
    except OfaError as error:
        assert str(path) in str(error) and "\n" not in str(error), error


STATE, SETTINGS, MODEL = ("__metadata__", "state"), ("__metadata__", "settings"), ("__metadata__", "run", "model")


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        ((*STATE, "step"), math.inf, "the step inf, which cannot be"),
        ((*STATE, "step"), -5, "the step -5, which cannot be"),
        ((*STATE, "streams"), [1], "the streams [1], which cannot be"),
        ((*STATE, "streams", 0, "sampling"), [1], "the sampling [1], which cannot be"),
        ((*STATE, "streams", 0, "sampling", "top_p"), "x", "the top_p 'x', which cannot be"),
        ((*STATE, "sweep_due"), DELETED, "no sweep_due, in the state of its header"),
        ((*SETTINGS, "data"), 3, "the data 3, which cannot be"),
        ((*SETTINGS, "preset"), "tiny", "the preset 'tiny', which cannot be, in the settings"),
        ((*MODEL, "layers"), 1 << 40, "the layers 1099511627776, which cannot be"),
        ((*MODEL, "experts"), 8, "a 'experts', which this version of ofa-tui does not know, in the model"),
        (("serving.0.prompt", "shape"), [0] * 65, "a header that does not describe its arrays"),
        (("serving.0.prompt", "shape"), [0, 1 << 62, 1 << 62], "a header that does not describe its arrays"),
        (("serving.0.tokens", "dtype"), "F32", "served text"),
        (("serving.0.h.1.key_cache", "shape"), [8, 3], "serving.0.h.1.key_cache is 8 x 3 and should be 3 x 8"),
    ],
)
def test_the_sentence_says_what_is_wrong(whole, tmp_path, place, value, words):
    header, arrays = unpacked(whole)
    path = tmp_path / "one"
    path.write_bytes(packed(changed(header, place, value), arrays))
    with pytest.raises(OfaError) as caught:
        use(path)
    assert words in str(caught.value) and str(path) in str(caught.value), caught.value


def test_what_was_not_changed_is_used(whole, tmp_path):
    path = tmp_path / "one"
    path.write_bytes(packed(*unpacked(whole)))
    use(path)
