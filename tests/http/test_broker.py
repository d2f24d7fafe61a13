"""The line of requests on a scripted engine: whatever comes in whatever order, every answer is its own story's text."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_engine import CONTEXT, END_OF_TEXT, ScriptedEngine, drawn, on_stream

from ofa_tui import abi
from ofa_tui.engine.protocol import Event, ServedToken
from ofa_tui.engine.steering import sampling_event
from ofa_tui.http.broker import Broker, Ticket, streams_for_requests
from ofa_tui.http.completion import SOURCE, Completion
from ofa_tui.http.errors import ApiError
from ofa_tui.http.turn import Finished, Piece

OWN = sampling_event(0.5, 0.75, 40, 9)
ROOM = 3
SHAPES = [(1, 1), (2, 1), (4, 1), (3, 3), (abi.MAX_STREAMS, 2)]
"""Streams, and how many of them tell by themselves."""

_COMPLETIONS = st.builds(
    Completion, prompt=st.sampled_from(["", "P", "QRS", "x"]), max_tokens=st.integers(1, CONTEXT + 4),
    temperature=st.sampled_from([None, 0.0, 1.5]), seed=st.sampled_from([None, 3]),
)  # fmt: skip
_ENDS = st.lists(st.sampled_from([False, False, True]), min_size=1, max_size=4)
_STREAM = st.integers(0, abi.MAX_STREAMS - 1)
_DEEDS = st.one_of(
    st.tuples(st.just("submit"), _COMPLETIONS),
    st.tuples(st.just("cancel"), st.integers(0, 8)),
    st.tuples(st.just("passes"), st.lists(_ENDS, max_size=6)),
    st.tuples(st.just("boundary"), st.none()),
    st.tuples(st.just("poll"), st.integers(0, 2)),
    st.tuples(st.just("typed"), st.tuples(_STREAM, st.sampled_from(["", "T", "UV", None]))),
    st.tuples(st.just("sampling"), st.tuples(_STREAM, st.booleans(), st.integers(0, 2))),
)


@dataclass
class Asked:
    completion: Completion
    ticket: Ticket | None = None
    items: list = field(default_factory=list)

    @property
    def end(self):
        return self.items[-1] if self.items and not isinstance(self.items[-1], Piece) else None


class Line:
    """A broker, the engine it steers, and all that was asked of it."""

    def __init__(self, streams: int = 1, telling: int = 1) -> None:
        self.engine = ScriptedEngine(OWN, streams, telling)
        self.broker = Broker(self.engine, [OWN] * streams, waiting=ROOM)
        self.asked: list[Asked] = []
        self.own = [drawn(OWN)] * streams
        self.typed = False

    def do(self, deed: str, value) -> None:
        streams = self.engine.info.streams
        if deed == "submit":
            self.submit(value)
        elif deed == "cancel" and value < len(self.asked):
            self.broker.cancel([self.asked[value].ticket])
        elif deed == "passes":
            for ends in value:
                self.engine.serve(ends)
        elif deed == "boundary":
            self.engine.boundary()
        elif deed == "poll":
            self.broker.take(self.engine.poll(value))
        elif deed == "typed":
            stream, text = value
            action = "end_story" if text is None else "prompt"
            self.engine.post(Event(action, "token", target=stream % streams, text=text or ""))
            self.typed = True
        elif deed == "sampling":
            stream, everywhere, number = value
            event = sampling_event(0.1 * (number + 1), 0.5, number, number)
            for one in range(streams) if everywhere else [stream % streams]:
                self.own[one] = drawn(event)
            self.engine.post(event if everywhere else on_stream(event, stream % streams))

    def submit(self, completion: Completion) -> None:
        asked = Asked(completion)
        try:
            (asked.ticket,) = self.broker.submit([(completion, asked.items.append)])
        except ApiError as error:
            assert error.status == 429
        else:
            self.asked.append(asked)

    def settle(self) -> None:
        """Serves until everybody has got an answer and the run tells its own stories again."""
        for _ in range(100):
            self.engine.serve([False])
            self.broker.take(self.engine.poll())

    def story_from(self, event: Event) -> list[ServedToken]:
        """The tokens from where this very prompt took effect to its stream's next story."""
        (at,) = [entry.at for entry in self.engine.applied if entry.event is event]
        after = [token for token in self.engine.tokens[at:] if token.stream == event.target]
        length = next((n for n, token in enumerate(after) if n and token.first), len(after))
        return after[:length]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(SHAPES), st.lists(_DEEDS, max_size=40))
def test_every_answer_is_the_beginning_of_its_own_story(shape, deeds):
    line = Line(*shape)
    for deed, value in deeds:
        line.do(deed, value)
    line.settle()
    begun = [event for event in line.engine.posted if event.action == "prompt" and event.source == SOURCE]
    answered = [asked for asked in line.asked if not asked.ticket.cancelled]
    for asked in answered:
        check(line, asked, begun)
    for asked in line.asked:
        assert all(isinstance(item, Piece) for item in asked.items[:-1]), "something came after the end"
    assert {event.target for event in begun} <= set(streams_for_requests(line.engine.info))
    streams = line.engine.streams
    assert [stream.sampling for stream in streams] == line.own, "a stream does not draw as its own"
    assert [stream.telling for stream in streams] == [stream.keeps_telling for stream in streams]


def check(line: Line, asked: Asked, begun: list[Event]) -> None:
    end, said = asked.end, "".join(item.text for item in asked.items if isinstance(item, Piece))
    assert end is not None, "somebody waits for ever"
    if isinstance(end, ApiError):
        refused = end.status == 400 and asked.completion.prompt == "x"
        assert refused or (line.typed and "ended" in end.message), end.message
        return
    assert isinstance(end, Finished)
    stories = [line.story_from(event) for event in begun if event.text == asked.completion.prompt]
    fitting = [story for story in stories if fits(asked, end, said, story)]
    assert fitting
    if all(own == drawn(OWN) for own in line.own):
        wanted = drawn(asked.completion.sampling_event(OWN))
        assert any(drawn_as(line, story, end.completion_tokens) == {wanted} for story in fitting)


def drawn_as(line: Line, story: list[ServedToken], count: int) -> set:
    return {line.engine.drawn_as[token.index] for token in [t for t in story if not t.from_prompt][:count]}


def fits(asked: Asked, end: Finished, said: str, story: list[ServedToken]) -> bool:
    """Whether the answer is what this story's tokens make of the request."""
    prompt = [token for token in story if token.from_prompt]
    wanted = [token for token in story if not token.from_prompt][: asked.completion.max_tokens]
    if not wanted or (end.prompt_tokens, end.completion_tokens) != (len(prompt), len(wanted)):
        return False
    reason = "stop" if wanted[-1].token == END_OF_TEXT else "length"
    return said == "".join(token.text for token in wanted) and end.reason == reason


@pytest.mark.parametrize(("streams", "telling", "told_on"), [(1, 1, [0]), (4, 1, [1, 2, 3]), (3, 3, [2]), (2, 2, [1])])
def test_requests_are_told_on_the_streams_that_rest_or_else_on_the_last(streams, telling, told_on):
    assert list(streams_for_requests(ScriptedEngine(OWN, streams, telling).info)) == told_on


def test_turns_come_in_the_order_of_asking_and_a_full_line_refuses():
    line = Line()
    for prompt in "ABCDE":
        line.submit(Completion(prompt, max_tokens=1))
    assert [asked.completion.prompt for asked in line.asked] == ["A", "B", "C", "D"]
    line.broker.cancel([line.asked[1].ticket])
    line.submit(Completion("F", max_tokens=1))
    line.settle()
    assert [event.text for event in line.engine.posted if event.text] == ["A", "C", "D", "F"]
    assert not line.asked[1].items


def test_several_requests_at_once_have_room_all_or_none():
    line = Line(2, 1)
    for count, fits in ((ROOM + 2, False), (ROOM, True), (2, False), (1, True)):
        requests = [(Completion("A"), [].append)] * count
        if fits:
            assert len(line.broker.submit(requests)) == count
        else:
            with pytest.raises(ApiError, match=r"\d requests wait"):
                line.broker.submit(requests)


def test_every_stream_that_rests_has_a_request_and_the_next_one_the_first_that_is_free():
    line = Line(4, 1)
    lengths = {"A": 9, "B": 2, "C": 9, "D": 9, "E": 9}
    for prompt, count in lengths.items():
        line.submit(Completion(prompt, max_tokens=count))
    line.do("poll", 0)
    prompts = [(event.target, event.text) for event in line.engine.posted]
    assert prompts == [(1, "A"), (2, "B"), (3, "C")]
    while line.asked[1].end is None:
        line.engine.serve([False])
        line.broker.take(line.engine.poll())
    assert [(event.target, event.text) for event in line.engine.posted[3:]] == [(2, "D")], "the stream stood idle"
    line.broker.cancel([line.asked[2].ticket])
    line.broker.take(line.engine.poll())
    assert (line.engine.posted[-1].target, line.engine.posted[-1].text) == (3, "E")
    line.settle()
    for asked in line.asked[3:]:
        assert isinstance(asked.end, Finished) and asked.end.completion_tokens == 9
    assert not line.asked[2].end and line.engine.posted[-1].action == "end_story"


def test_a_request_is_drawn_as_it_asks_and_others_beside_it_as_they_ask():
    line = Line(3, 1)
    line.submit(Completion("A", max_tokens=6, temperature=0))
    line.submit(Completion("B", max_tokens=6, seed=3, top_k=2))
    line.settle()
    for asked, stream in zip(line.asked, (1, 2), strict=True):
        (prompt,) = [event for event in line.engine.posted if event.text == asked.completion.prompt]
        assert prompt.target == stream
        assert drawn_as(line, line.story_from(prompt), 6) == {drawn(asked.completion.sampling_event(OWN))}
    own = {line.engine.drawn_as[token.index] for token in line.engine.tokens if token.stream == 0}
    assert own == {drawn(OWN)}, "a request changed how the run draws its own stories"


def test_tokens_that_nobody_read_are_an_error_and_not_a_gap():
    line = Line()
    line.submit(Completion("A", max_tokens=10))
    line.do("poll", 0)
    line.do("passes", [[False]] * 4)
    line.engine.lose(2)
    line.do("poll", 0)
    line.do("poll", 0)
    assert line.asked[0].end.status == 503 and "unread" in line.asked[0].end.message


def test_the_end_of_the_run_is_everybodys_end():
    line = Line(3, 1)
    for prompt in "ABCD":
        line.submit(Completion(prompt))
    line.do("poll", 0)
    line.broker.close()
    line.broker.close()
    assert [asked.items[0].code for asked in line.asked] == ["run_over"] * 4
    assert [len(asked.items) for asked in line.asked] == [1] * 4


def test_a_request_that_left_before_its_turn_took_effect_does_not_change_how_the_next_is_drawn():
    line = Line()
    line.submit(Completion("A", temperature=1.5))
    line.do("poll", 0)
    line.do("cancel", 0)
    line.submit(Completion("B", max_tokens=2))
    line.do("poll", 0)
    line.settle()
    (begun,) = [event for event in line.engine.posted if event.text == "B"]
    assert drawn_as(line, line.story_from(begun), 2) == {drawn(OWN)}
