"""The line of requests for the streams that are there for them: each is told as a story of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from ofa_tui.engine.protocol import Engine, Event, RunInfo, ServedToken, Snapshot
from ofa_tui.http.completion import Completion
from ofa_tui.http.errors import queue_is_full, run_is_over
from ofa_tui.http.lane import Lane, Ticket
from ofa_tui.http.turn import Deliver

WAITING = 16
"""Requests that may wait beside those whose turn it is."""
OVER = ("stopped", "aborted", "broken off")


def streams_for_requests(info: RunInfo) -> range:
    """Those that rest until a prompt comes; where there is none, the last one takes turns with its own stories."""
    return range(min(info.telling, info.streams - 1), info.streams)


class Broker:
    """`submit` and `cancel` are for any thread; all else is done in `take`, so in the thread that polls the engine.

    Tokens are looked at one poll late: what took effect before a token was served is then known for certain, be it the
    request's own prompt or another one that ended its story.
    """

    def __init__(self, engine: Engine, sampling: Sequence[Event], waiting: int = WAITING) -> None:
        """`sampling`: for each stream the event that says how it draws. The first one's is the run's own."""
        self._lanes = [
            Lane(engine, stream, sampling[stream], sampling[0]) for stream in streams_for_requests(engine.info)
        ]
        self._most_waiting = waiting
        self._lock = threading.Lock()
        self._waiting: deque[Ticket] = deque()
        self._closed = False
        self._late: Sequence[ServedToken] = ()

    # --- any thread -----------------------------------------------------------------------------------------------

    def submit(self, requests: Sequence[tuple[Completion, Deliver]]) -> list[Ticket]:
        """Queues requests, all or none. Raises ApiError where the queue has no room for them, or the run is over."""
        tickets = [Ticket(completion, deliver) for completion, deliver in requests]
        with self._lock:
            if self._closed:
                raise run_is_over()
            room = self._most_waiting + sum(not lane.taken for lane in self._lanes)
            if len(self._waiting) + len(tickets) > room:
                raise queue_is_full(len(self._waiting))
            self._waiting.extend(tickets)
        return tickets

    def cancel(self, tickets: Sequence[Ticket]) -> None:
        """Nobody waits for these answers any more. Harmless where they have been given."""
        with self._lock:
            for ticket in tickets:
                ticket.cancelled = True
                if ticket in self._waiting:
                    self._waiting.remove(ticket)

    # --- the polling thread ---------------------------------------------------------------------------------------

    def take(self, snapshot: Snapshot) -> None:
        """Takes every snapshot, in order."""
        arrived, self._late = self._late, snapshot.served
        for lane in self._lanes:
            lane.note(snapshot.applied)
            lane.feed(arrived)
        if snapshot.state in OVER:
            self.close()
            return
        for lane in self._lanes:
            if lane.is_over:
                self._go_on(lane, snapshot)

    def close(self) -> None:
        """Ends every request: no more tokens will come."""
        with self._lock:
            self._closed = True
            left = list(self._waiting)
            self._waiting.clear()
        for lane in self._lanes:
            lane.close()
        for ticket in left:
            ticket.deliver(run_is_over())

    def _go_on(self, lane: Lane, snapshot: Snapshot) -> None:
        """Begins the next request's story, or gives the stream back to the run."""
        while (ticket := self._next()) is not None:
            if lane.begin(ticket, snapshot):
                return
        lane.give_back()

    def _next(self) -> Ticket | None:
        with self._lock:
            return self._waiting.popleft() if self._waiting else None
