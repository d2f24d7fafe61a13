"""The line of requests on a scripted engine: whatever comes in whatever order, every answer is its own story's text."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_engine import CONTEXT, END_OF_TEXT, ScriptedEngine

from ofa_tui.engine.protocol import Event
from ofa_tui.engine.steering import sampling_event
from ofa_tui.http.broker import Broker, Ticket
from ofa_tui.http.completion import SOURCE, Completion
from ofa_tui.http.errors import ApiError
from ofa_tui.http.turn import Finished, Piece

OWN = sampling_event(0.5, 0.75, 40, 9)
ROOM = 3

_COMPLETIONS = st.builds(
    Completion, prompt=st.sampled_from(["", "P", "QRS", "x"]), max_tokens=st.integers(1, CONTEXT + 4),
    temperature=st.sampled_from([None, 0.0, 1.5]), seed=st.sampled_from([None, 3]),
)  # fmt: skip
_DEEDS = st.one_of(
    st.tuples(st.just("submit"), _COMPLETIONS),
    st.tuples(st.just("cancel"), st.integers(0, 8)),
    st.tuples(st.just("tokens"), st.lists(st.sampled_from([False, False, True]), max_size=6)),
    st.tuples(st.just("boundary"), st.none()),
    st.tuples(st.just("poll"), st.integers(0, 2)),
    st.tuples(st.just("typed"), st.sampled_from(["", "T", "UV"])),
    st.tuples(st.just("sampling"), st.integers(0, 2)),
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

    def __init__(self) -> None:
        self.engine = ScriptedEngine(OWN)
        self.broker = Broker(self.engine, OWN, waiting=ROOM)
        self.asked: list[Asked] = []
        self.foreign = OWN
        self.typed = False

    def do(self, deed: str, value) -> None:
        if deed == "submit":
            self.submit(value)
        elif deed == "cancel" and value < len(self.asked):
            self.broker.cancel(self.asked[value].ticket)
        elif deed == "tokens":
            for ends in value:
                self.engine.token(ends)
        elif deed == "boundary":
            self.engine.boundary()
        elif deed == "poll":
            self.broker.take(self.engine.poll(value))
        elif deed == "typed":
            self.engine.post(Event("prompt", "token", text=value))
            self.typed = True
        elif deed == "sampling":
            self.foreign = sampling_event(0.1 * (value + 1), 0.5, value, value)
            self.engine.post(self.foreign)

    def submit(self, completion: Completion) -> None:
        asked = Asked(completion)
        try:
            asked.ticket = self.broker.submit(completion, asked.items.append)
        except ApiError as error:
            assert error.status == 429
        else:
            self.asked.append(asked)

    def settle(self) -> None:
        """Serves until everybody has got an answer and the run draws its own stories again."""
        for _ in range(100):
            self.engine.token(False)
            self.broker.take(self.engine.poll())

    def story_from(self, event: Event) -> list:
        """The tokens from where this very prompt took effect to the next story."""
        (at,) = [entry.at for entry in self.engine._applied if entry.event is event]
        after = self.engine.tokens[at:]
        length = next((n for n, token in enumerate(after) if n and token.first), len(after))
        return after[:length]


@settings(max_examples=300, deadline=None)
@given(st.lists(_DEEDS, max_size=40))
def test_every_answer_is_the_beginning_of_its_own_story(deeds):
    line = Line()
    for deed, value in deeds:
        line.do(deed, value)
    line.settle()
    begun = [event for event in line.engine.posted if event.action == "prompt" and event.source == SOURCE]
    answered = [asked for asked in line.asked if not asked.ticket.cancelled]
    for asked in answered:
        check(line, asked, begun)
    for asked in line.asked:
        assert all(isinstance(item, Piece) for item in asked.items[:-1]), "something came after the end"
    assert line.engine.drawn_as[-1] == (line.foreign.target, line.foreign.args), "the run does not draw as its own"


def check(line: Line, asked: Asked, begun: list[Event]) -> None:
    end, said = asked.end, "".join(item.text for item in asked.items if isinstance(item, Piece))
    assert end is not None, "somebody waits for ever"
    if isinstance(end, ApiError):
        refused = end.status == 400 and asked.completion.prompt == "x"
        assert refused or (line.typed and "another prompt" in end.message), end.message
        return
    assert isinstance(end, Finished)
    stories = [line.story_from(event) for event in begun if event.text == asked.completion.prompt]
    fitting = [story for story in stories if fits(asked, end, said, story)]
    assert fitting
    if line.foreign is OWN:
        wanted = asked.completion.sampling_event(OWN)
        assert any(drawn_as(line, story, end.completion_tokens) == {(wanted.target, wanted.args)} for story in fitting)


def drawn_as(line: Line, story: list, count: int) -> set:
    return {line.engine.drawn_as[token.index] for token in [t for t in story if not t.from_prompt][:count]}


def fits(asked: Asked, end: Finished, said: str, story: list) -> bool:
    """Whether the answer is what this story's tokens make of the request."""
    prompt = [token for token in story if token.from_prompt]
    wanted = [token for token in story if not token.from_prompt][: asked.completion.max_tokens]
    if not wanted or (end.prompt_tokens, end.completion_tokens) != (len(prompt), len(wanted)):
        return False
    reason = "stop" if wanted[-1].token == END_OF_TEXT else "length"
    return said == "".join(token.text for token in wanted) and end.reason == reason


def test_turns_come_in_the_order_of_asking_and_a_full_line_refuses():
    line = Line()
    for prompt in "ABCD":
        line.submit(Completion(prompt, max_tokens=1))
    assert [asked.completion.prompt for asked in line.asked] == ["A", "B", "C"]
    line.broker.cancel(line.asked[1].ticket)
    line.submit(Completion("E", max_tokens=1))
    line.settle()
    assert [event.text for event in line.engine.posted if event.text] == ["A", "C", "E"]
    assert not line.asked[1].items


def test_tokens_that_nobody_read_are_an_error_and_not_a_gap():
    line = Line()
    line.submit(Completion("A", max_tokens=10))
    line.do("poll", 0)
    line.do("tokens", [False] * 4)
    line.engine._served += 2
    line.do("poll", 0)
    line.do("poll", 0)
    assert line.asked[0].end.status == 503 and "unread" in line.asked[0].end.message


def test_the_end_of_the_run_is_everybodys_end():
    line = Line()
    for prompt in "ABC":
        line.submit(Completion(prompt))
    line.do("poll", 0)
    line.broker.close()
    line.broker.close()
    assert [asked.items[0].code for asked in line.asked] == ["run_over"] * 3
    assert [len(asked.items) for asked in line.asked] == [1, 1, 1]


def test_a_request_that_left_before_its_turn_took_effect_does_not_change_how_the_next_is_drawn():
    line = Line()
    line.submit(Completion("A", temperature=1.5))
    line.do("poll", 0)
    line.do("cancel", 0)
    line.submit(Completion("B", max_tokens=2))
    line.do("poll", 0)
    line.settle()
    (begun,) = [event for event in line.engine.posted if event.text == "B"]
    assert drawn_as(line, line.story_from(begun), 2) == {(OWN.target, OWN.args)}
