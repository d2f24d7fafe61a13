"""Event files: what is written is what is read, and a bad line is named."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event
from ofa_tui.errors import OfaError
from ofa_tui.record.events import ACTIONS, NAMES, clock_of, from_line, parse_events, read_events, to_line

_I4 = st.integers(-(2**31), 2**31 - 1)
_FLOATS = st.floats(0, 1e6, width=32).map(lambda value: int(np.float32(value).view(np.int32)))


def _values(name):
    kinds = {"int": _I4, "float": _FLOATS, "skill": st.integers(0, 4)}
    kinds |= {kind: st.integers(0, len(names) - 1) for kind, names in NAMES.items()}
    return st.tuples(*(kinds[field.kind] for field in ACTIONS[name].fields if field.place != "target"))


@st.composite
def _events(draw):
    name = draw(st.sampled_from(abi.ACTIONS))
    target = draw(st.integers(0, 2**32 - 1)) if ACTIONS[name].fields else 0
    text = draw(st.text(st.characters(blacklist_categories=["Cs"]))) if ACTIONS[name].text else ""
    return Event(name, clock_of(name), draw(st.integers(0, 2**40)), target, draw(_values(name)), text)


@given(_events(), st.integers(0, 2**40))
def test_round_trip_repeats_the_event_when_it_took_effect(event, at):
    line = to_line(AppliedEvent(event, at))
    assert "\n" not in line
    assert from_line(line) == Event(event.action, event.clock, at, event.target, event.args, event.text)


def test_every_action_of_the_kernel_has_a_form():
    assert tuple(ACTIONS) == abi.ACTIONS
    assert {action.clock for action in ACTIONS.values()} <= set(abi.CLOCKS)


@pytest.mark.parametrize(
    "line, said",
    [
        ("nonsense", "not JSON"), ("[1]", "not an object"), ('{"step": 1}', "action None"),
        ('{"step": 1, "action": "fly"}', "choose one of set_role"),
        ('{"tic": 1, "action": "set_role", "sm": 1, "role": "serve"}', 'counts by "step"'),
        ('{"step": 1, "tic": 1, "action": "set_role", "sm": 1, "role": "serve"}', 'counts by "step"'),
        ('{"step": -1, "action": "set_role", "sm": 1, "role": "serve"}', "from 0 on"),
        ('{"step": true, "action": "set_role", "sm": 1, "role": "serve"}', "from 0 on"),
        ('{"step": 1, "action": "set_role", "sm": 1}', "no 'role'"),
        ('{"step": 1, "action": "set_role", "sm": 1, "role": "cook"}', "idle, train, serve, doom"),
        ('{"step": 1, "action": "set_role", "sm": 1.5, "role": "serve"}', "whole number"),
        ('{"step": 1, "action": "set_role", "sm": 1, "role": "serve", "x": 1}', "does not know"),
        ('{"tic": 1, "action": "behaviour", "behaviour": "dance"}', "choose one of explore"),
        ('{"token": 1, "action": "prompt"}', "without a text"),
        ('{"token": 1, "action": "sampling", "seed": 1, "temperature": -1}', "from 0 on"),
        ('{"token": 1, "action": "sampling", "seed": 1, "temperature": NaN}', "from 0 on"),
    ],
)
def test_a_bad_line_is_named(line, said):
    good = '{"token": 1, "action": "prompt", "text": "Hello"}'
    with pytest.raises(OfaError) as error:
        parse_events([good, "", line], "steer.jsonl")
    assert str(error.value).startswith("line 3 of steer.jsonl ") and said in str(error.value)


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, said in (("none", "there is no event file"), ("binary", "not an event file"), (".", "cannot read")):
        with pytest.raises(OfaError, match=said):
            read_events(tmp_path / name)
