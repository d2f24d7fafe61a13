"""A client that breaks off while much of its answer is there already."""

from __future__ import annotations

import logging
import socket
import struct
import threading

import pytest

from ofa_tui.http.app import make_app
from ofa_tui.http.server import _Server
from ofa_tui.http.turn import Deliver, Piece

BODY = b'{"model": "tiny", "prompt": "a", "stream": true}'
REQUEST = (b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
           b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY))  # fmt: skip


class Eager:
    """A broker that has the beginning of an answer at once, and all else when it is told that the client has left."""

    def __init__(self) -> None:
        self.left, self.cancelled = threading.Event(), threading.Event()

    def submit(self, requests: list[tuple[object, Deliver]]) -> list[object]:
        ((_, deliver),) = requests

        def answer() -> None:
            deliver(Piece("a", 1))
            self.left.wait()
            for _ in range(3000):
                deliver(Piece("b" * 2000, 1))

        threading.Thread(target=answer, daemon=True).start()
        return [object()]

    def cancel(self, tickets: list[object]) -> None:
        self.cancelled.set()


def test_nothing_more_is_written_to_it(caplog: pytest.LogCaptureFixture) -> None:
    broker = Eager()
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = _Server(make_app(broker, "tiny", ""), listening)  # type: ignore[arg-type]
        server.start()
        client = socket.create_connection(listening.getsockname())
        client.sendall(REQUEST)
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # breaks off, without a goodbye
        broker.left.set()
        client.close()
        assert broker.cancelled.wait(30)
        server.close()
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING and record.name == "asyncio"]
