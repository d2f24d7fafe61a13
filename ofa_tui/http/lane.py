"""A stream that requests are told on, one after the other: whose turn it is there, and how its tokens are drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Engine, Event, ServedToken, Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.http.completion import SOURCE, Completion
from ofa_tui.http.errors import ApiError, run_is_over
from ofa_tui.http.turn import Deliver, Turn


@dataclass(eq=False)
class Ticket:
    """A request in the line."""

    completion: Completion
    deliver: Deliver
    cancelled: bool = False


class Lane:
    """All of it is for the thread that polls the engine, but for `taken`, which any may read."""

    def __init__(self, engine: Engine, stream: int, in_force: Event, own: Event) -> None:
        """`in_force`: the sampling event that says how the stream draws now; `own`: how it draws with no request."""
        self.stream = stream
        self._engine = engine
        self._in_force = self._of_this_stream(in_force)
        self._own = self._of_this_stream(own)
        self._coming: list[Event] = []
        """Sampling events of ours that have not taken effect yet."""
        self._ticket: Ticket | None = None
        self._turn: Turn | None = None

    @property
    def taken(self) -> bool:
        return self._turn is not None

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for what is told."""
        return self._turn is None or self._turn.over or (self._ticket is not None and self._ticket.cancelled)

    def note(self, applied: Iterable[AppliedEvent]) -> None:
        """Takes events in the order of their clock."""
        for entry in applied:
            if self._turn:
                self._turn.note(entry)
            if entry.event.action == "sampling" and entry.event.args[3] in (self.stream, abi.ALL_STREAMS):
                self._note_sampling(entry.event)

    def _note_sampling(self, event: Event) -> None:
        self._in_force = self._of_this_stream(event)
        ours = [coming is event for coming in self._coming]
        if any(ours):
            del self._coming[ours.index(True)]
        else:
            self._own = self._in_force

    def feed(self, tokens: Iterable[ServedToken]) -> None:
        """Takes the tokens of all streams."""
        if self._turn:
            self._turn.feed(tokens)

    def begin(self, ticket: Ticket, snapshot: Snapshot) -> bool:
        """Begins a request's story, which ends the one that is told. False where it cannot be; then it is refused."""
        turn = Turn(ticket.completion, ticket.deliver, self._engine.info, self.stream)
        try:
            self._post_sampling(ticket.completion.sampling_event(self._own))
            self._engine.post(turn.prompt)
        except OfaError as error:
            serves = bool((snapshot.roles == abi.SERVE).any())
            turn.end(ApiError(400, str(error), "invalid_value", "prompt") if serves
                     else ApiError(503, str(error), "not_serving"))
            return False
        self._turn, self._ticket = turn, ticket
        return True

    def give_back(self) -> None:
        """Nobody's turn is next: the stream rests, or tells its own stories as it drew them."""
        before, self._turn, self._ticket = self._turn, None, None
        self._post_sampling(self._own)
        if before and before.story_goes_on:
            self._engine.post(Event("end_story", "token", target=self.stream, source=SOURCE))

    def close(self) -> None:
        """No more tokens will come."""
        turn, self._turn = self._turn, None
        if turn and not turn.over:
            turn.end(run_is_over())

    def _post_sampling(self, wanted: Event) -> None:
        if wanted != (self._coming[-1] if self._coming else self._in_force):
            event = replace(wanted, source=SOURCE)
            self._engine.post(event)
            self._coming.append(event)

    def _of_this_stream(self, sampling: Event) -> Event:
        return replace(sampling, when=0, args=(*sampling.args[:3], self.stream))
