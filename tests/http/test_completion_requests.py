"""Bodies of requests: what is understood, what is refused and with which words, and that nothing else can happen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.engine.steering import bits_float, sampling_event
from ofa_tui.http.completion import FIXED, NUMBERS, OTHERS, Completion, parse
from ofa_tui.http.errors import ApiError

OWN = sampling_event(0.5, 0.75, 40, 9)


def asked(**fields) -> Completion:
    return parse(json.dumps({"model": "tiny"} | fields).encode(), "tiny")


def test_all_that_can_be_asked_for():
    assert asked() == Completion("")
    nothing = {"best_of": 1, "echo": False, "logprobs": None, "logit_bias": {}, "presence_penalty": 0.0, "user": "me"}
    assert asked(prompt=["one"], **nothing) == Completion("one")
    everything = asked(prompt="a", max_tokens=3, temperature=0, top_p=1, top_k=5, seed=7, n=2, stop="x",
                       stream=True, stream_options={"include_usage": True})
    assert everything == Completion("a", 3, 0.0, 1.0, 5, 7, 2, 0, ("x",), True, True)


def test_what_is_not_asked_for_is_drawn_as_the_run_draws():
    assert asked().sampling_event(OWN) == OWN
    changed = asked(temperature=1.5, seed=3).sampling_event(OWN)
    assert (bits_float(changed.args[0]), bits_float(changed.args[1])) == (1.5, 0.75)
    assert changed.args[2] == 40 and changed.target == 3


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": "large"}, 404, "model"), ({"model": None}, 400, "model"), ({"model": 1}, 400, "model"),
        ({"prompt": ["a", "b"]}, 400, "prompt"), ({"prompt": [1, 2]}, 400, "prompt"), ({"prompt": [1]}, 400, "prompt"),
        ({"max_tokens": 0}, 400, "max_tokens"), ({"max_tokens": 2.5}, 400, "max_tokens"),
        ({"max_tokens": True}, 400, "max_tokens"), ({"max_tokens": "5"}, 400, "max_tokens"),
        ({"temperature": -1}, 400, "temperature"), ({"temperature": float("nan")}, 400, "temperature"),
        ({"temperature": 10**400}, 400, "temperature"), ({"top_p": 0}, 400, "top_p"), ({"top_p": 1.1}, 400, "top_p"),
        ({"seed": -1}, 400, "seed"), ({"seed": 2**32}, 400, "seed"),
        ({"n": 9}, 400, "n"), ({"n": True}, 400, "n"), ({"echo": True}, 400, "echo"), ({"echo": 0}, 400, "echo"),
        ({"logprobs": 0}, 400, "logprobs"), ({"best_of": 2}, 400, "best_of"), ({"suffix": ""}, 400, "suffix"),
        ({"logit_bias": {"5": 1}}, 400, "logit_bias"),
        ({"presence_penalty": 0.1}, 400, "presence_penalty"), ({"messages": []}, 400, "messages"),
        ({"stop": ""}, 400, "stop"), ({"stop": list("abcde")}, 400, "stop"), ({"stop": [1]}, 400, "stop"),
        ({"stream": 1}, 400, "stream"), ({"stream_options": {"include_usage": True}}, 400, "stream_options"),
        ({"stream": True, "stream_options": {"x": 1}}, 400, "stream_options"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(fields, status, param):
    with pytest.raises(ApiError) as refused:
        asked(**fields)
    error = refused.value.body()["error"]
    assert (refused.value.status, error["param"], error["type"]) == (status, param, "invalid_request_error")
    assert param in error["message"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)
_NAMES = st.sampled_from([*NUMBERS, *FIXED, *OTHERS]) | st.text(max_size=5) | st.just("\ud800")


@given(st.dictionaries(_NAMES, _JSON, max_size=4), st.booleans())
def test_any_object_is_understood_or_refused(fields, named):
    fields |= {"model": "tiny"} if named else {}
    try:
        completion = parse(json.dumps(fields).encode(), "tiny")
    except ApiError as error:
        assert 400 <= error.status < 500 and json.dumps(error.body(), ensure_ascii=False).encode()
    else:
        completion.sampling_event(OWN), completion.prompt_event(0)


@given(st.binary(max_size=40) | st.sampled_from([b"[" * 100_000, b"[]", b"1" * 5000, b"\xff\xfe{\x00}\x00"]))
def test_any_bytes_are_refused_in_words(body):
    with pytest.raises(ApiError) as refused:
        parse(body, "tiny")
    assert refused.value.status == 400
