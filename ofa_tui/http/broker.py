"""The line of requests for the one stream of text: each is told as a story of its own, one after the other."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Engine, Event, ServedToken, Snapshot
from ofa_tui.errors import OfaError
from ofa_tui.http.completion import SOURCE, Completion
from ofa_tui.http.errors import ApiError, queue_is_full, run_is_over
from ofa_tui.http.turn import Deliver, Turn

WAITING = 16
"""Requests that may wait beside the one whose turn it is."""
OVER = ("stopped", "aborted", "broken off")


@dataclass(eq=False)
class Ticket:
    """A request in the line."""

    completion: Completion
    deliver: Deliver
    cancelled: bool = False


class Broker:
    """`submit` and `cancel` are for any thread; all else is done in `take`, so in the thread that polls the engine.

    Tokens are looked at one poll late: what took effect before a token was served is then known for certain, be it the
    request's own prompt or another one that ended its story.
    """

    def __init__(self, engine: Engine, own: Event, waiting: int = WAITING) -> None:
        """`own` is the sampling event that says how the run draws its own stories."""
        self._engine = engine
        self._own = self._in_force = own
        self._coming: list[Event] = []
        """Sampling events of ours that have not taken effect yet."""
        self._most_waiting = waiting
        self._lock = threading.Lock()
        self._waiting: deque[Ticket] = deque()
        self._closed = False
        self._ticket: Ticket | None = None
        self._turn: Turn | None = None
        self._late: Sequence[ServedToken] = ()

    # --- any thread -----------------------------------------------------------------------------------------------

    def submit(self, completion: Completion, deliver: Deliver) -> Ticket:
        """Queues a request. Raises ApiError where the queue is full or the run over."""
        ticket = Ticket(completion, deliver)
        with self._lock:
            if self._closed:
                raise run_is_over()
            if len(self._waiting) >= self._most_waiting:
                raise queue_is_full(len(self._waiting))
            self._waiting.append(ticket)
        return ticket

    def cancel(self, ticket: Ticket) -> None:
        """Nobody waits for the answer any more. Harmless where it has been given."""
        with self._lock:
            ticket.cancelled = True
            if ticket in self._waiting:
                self._waiting.remove(ticket)

    # --- the polling thread ---------------------------------------------------------------------------------------

    def take(self, snapshot: Snapshot) -> None:
        """Takes every snapshot, in order."""
        self._note(snapshot.applied)
        arrived, self._late = self._late, snapshot.served
        if self._turn:
            self._turn.feed(arrived)
        if snapshot.state in OVER:
            self.close()
        elif self._turn_is_over():
            self._go_on(snapshot)

    def close(self) -> None:
        """Ends every request: no more tokens will come."""
        with self._lock:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
        turn, self._turn = self._turn, None
        if turn and not turn.over:
            turn.end(run_is_over())
        for ticket in left:
            ticket.deliver(run_is_over())

    def _note(self, applied: Sequence[AppliedEvent]) -> None:
        if self._turn:
            self._turn.note(applied)
        for event in (entry.event for entry in applied if entry.event.action == "sampling"):
            self._in_force = replace(event, when=0)
            ours = [coming is event for coming in self._coming]
            if any(ours):
                del self._coming[ours.index(True)]
            else:
                self._own = self._in_force

    def _turn_is_over(self) -> bool:
        return self._turn is None or self._turn.over or (self._ticket is not None and self._ticket.cancelled)

    def _go_on(self, snapshot: Snapshot) -> None:
        """Begins the next request's story, or gives the stream back to the run."""
        before, self._turn, self._ticket = self._turn, None, None
        while (ticket := self._next()) is not None:
            if self._begin(ticket, snapshot):
                return
        self._post_sampling(self._own)
        if before and before.story_goes_on:
            self._engine.post(Event("prompt", "token", source=SOURCE))

    def _next(self) -> Ticket | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None

    def _begin(self, ticket: Ticket, snapshot: Snapshot) -> bool:
        turn = Turn(ticket.completion, ticket.deliver, self._engine.info)
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

    def _post_sampling(self, wanted: Event) -> None:
        if wanted != (self._coming[-1] if self._coming else self._in_force):
            event = replace(wanted, source=SOURCE)
            self._engine.post(event)
            self._coming.append(event)
