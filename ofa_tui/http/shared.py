"""An engine that a UI or a recorder polls, and whose snapshots a broker gets to see, too."""

from __future__ import annotations

import numpy as np

from ofa_tui.engine.protocol import Engine, Event, Snapshot
from ofa_tui.http.broker import Broker


class SharedEngine:
    """An Engine (see protocol.py): the one it is made of, with a broker beside it."""

    def __init__(self, engine: Engine, broker: Broker) -> None:
        self._engine = engine
        self._broker = broker
        self.info = engine.info

    def start(self) -> None:
        self._engine.start()

    def poll(self) -> Snapshot:
        snapshot = self._engine.poll()
        self._broker.take(snapshot)
        return snapshot

    def post(self, event: Event) -> None:
        self._engine.post(event)

    def pause(self, paused: bool) -> None:
        self._engine.pause(paused)

    def hold_games(self, held: bool) -> None:
        self._engine.hold_games(held)

    def step_tics(self, count: int) -> None:
        self._engine.step_tics(count)

    def stop(self, timeout_s: float = 10.0) -> None:
        self._engine.stop(timeout_s)

    def weights(self) -> dict[str, np.ndarray]:
        return self._engine.weights()
