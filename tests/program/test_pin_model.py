"""The model of the pin protocol: right protocols pass, every weakened one is refused with a run that shows why."""

from collections import Counter

import pytest

from ofa_tui.program import pin_model as model
from ofa_tui.program.accesses import ProgramError
from ofa_tui.program.pin_model import PIN, PUBLISHED, Protocol, Step, check_pin_protocol, kernel_protocol

RIGHT = kernel_protocol()
LOAD, PIN_IT, RECHECK, READ, _, LET_GO = RIGHT.server


def with_server(*steps: Step) -> Protocol:
    return RIGHT._replace(server=steps)


def with_trainer(changed: str, /, **changes) -> Protocol:
    """The right protocol with the trainer's step `changed` as told."""
    return RIGHT._replace(
        trainer=tuple(step._replace(**changes) if step.act == changed else step for step in RIGHT.trainer)
    )


WRONG = {
    "the pin is a plain store": with_server(LOAD, PIN_IT._replace(act="store"), RECHECK, READ, READ, LET_GO),
    "the publication is a plain store": with_trainer("exchange", act="store"),
    "no second look": with_server(LOAD, PIN_IT, READ, READ, LET_GO),
    "let go before the last read": with_server(LOAD, PIN_IT, RECHECK, READ, LET_GO, READ),
    "two behind is taken as good": with_server(LOAD, PIN_IT, RECHECK._replace(offset=2), READ, READ, LET_GO),
    "published before it is written": RIGHT._replace(
        trainer=(RIGHT.trainer[2], *RIGHT.trainer[:2], *RIGHT.trainer[3:])),
    "publish waits for one less": with_trainer("wait", offset=-1),
    "publish does not wait": RIGHT._replace(trainer=tuple(step for step in RIGHT.trainer if step.act != "wait")),
    "two copies": kernel_protocol(copies=2),
}  # fmt: skip


@pytest.mark.parametrize("copies", [3, 4])
def test_the_protocol_holds(copies):
    report = check_pin_protocol(kernel_protocol(copies))
    assert 100 < report.states < report.transitions < 100_000


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("name", WRONG)
def test_a_weakened_protocol_is_refused(name, in_order):
    with pytest.raises(ProgramError, match=r"^the pin protocol fails: .*\n  1\. the ") as refused:
        model.explore(WRONG[name], in_order)
    assert refused.value.check == "pin"
    first, *steps = str(refused.value).splitlines()
    assert "while the server reads" in first or "should be" in first
    assert [int(step.split(".")[0]) for step in steps] == list(range(1, len(steps) + 1))
    with pytest.raises(ProgramError):
        check_pin_protocol(WRONG[name])


def test_a_refusal_tells_the_shortest_run():
    with pytest.raises(ProgramError) as refused:
        check_pin_protocol(WRONG["two copies"])
    assert str(refused.value) == """\
the pin protocol fails: copy 0 is overwritten while the server reads version 0 in it
  1. the trainer begins to write version 1 into copy 1
  2. the trainer has written version 1 into copy 1
  3. the server loads published = 0
  4. the trainer exchanges published = 1
  5. the trainer sees pin = none and goes on
  6. the trainer goes to its next step
  7. the trainer begins to write version 2 into copy 0
  8. the server exchanges pin = 0
  9. the server loads published = 1 again
 10. the trainer's store of copy 0 = half a version reaches memory"""


@pytest.mark.parametrize(
    ("protocol", "who"),
    [
        (with_server(LOAD, PIN_IT, RECHECK, READ, READ), "trainer"),
        (with_server(LOAD, PIN_IT, RECHECK, READ, READ, PIN_IT), "trainer"),
        (with_server(LOAD, PIN_IT, RECHECK, READ, READ, LET_GO, Step("wait", PUBLISHED, offset=1)), "server"),
    ],
    ids=["never lets go", "pins again at the end", "server waits for the next step"],
)
def test_whoever_waits_for_ever_is_refused(protocol, who):
    with pytest.raises(ProgramError, match=f"the {who} cannot go on by itself"):
        check_pin_protocol(protocol)


def test_a_buffer_that_fills_up_is_not_taken_for_a_proof():
    stores = (Step("store", PIN, offset=None),) * 5
    with pytest.raises(ProgramError, match="so many are not explored"):
        check_pin_protocol(with_server(LOAD, PIN_IT, RECHECK, READ, READ, LET_GO, *stores))


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("copies", [3, 4])
def test_relative_states_stand_for_absolute_ones(copies, in_order):
    """For every state of a run of 24 steps: it moves as its relative form does, and nothing else is ever reached.

    The states with absolute versions are those of the C++; the last of them have a server that is 24 versions behind.
    """
    protocol, last_step = kernel_protocol(copies), 24
    proved = set(model.explore(protocol, in_order)[0])
    start = model.first_state(protocol)
    reached, open_states = {start}, [start]
    by_step: dict[int, set] = {}
    while open_states:
        state = open_states.pop()
        short = model.relative(state, copies)
        by_step.setdefault(state.trainer.version, set()).add(short)
        following = [(move, model.apply(state, move, protocol)) for move in model.moves(state, protocol, in_order)]
        of_short = [model.apply(short, move, protocol) for move in model.moves(short, protocol, in_order)]
        assert Counter(model.relative(after, copies) for _, after in following) == Counter(
            model.relative(after, copies) for after in of_short
        )
        for move, after in following:
            assert not model.complaint(state, move, after, protocol)
            if after not in reached and after.trainer.version <= last_step:
                reached.add(after)
                open_states.append(after)
    assert set.union(*by_step.values()) == proved
    assert by_step[last_step] == by_step[last_step - 1], "later steps bring nothing new"
    assert min(state.server.version for state in reached if state.trainer.version == last_step) == 0
