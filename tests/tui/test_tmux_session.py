"""Inside tmux: left by its client, found again at another size, and drawn for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from job_shell import JobShell
from test_terminal import DEMO, environment

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")


class Tmux:
    """A server of its own, with the UI in its only window."""

    def __init__(self, folder: Path) -> None:
        self._socket = str(folder / "tmux")
        self.environ = environment(OFA_TUI_STATE=str(folder))
        self.environ.pop("TMUX", None)
        self("-f", os.devnull, "new-session", "-d", "-x", "120", "-y", "40", sys.executable, DEMO)

    def __call__(self, *arguments: str) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        done = subprocess.run(command, env=self.environ, capture_output=True, text=True)
        return done.stdout

    def attach(self) -> str:
        return f"tmux -S {self._socket} attach\n"

    def screen(self) -> str:
        return self("capture-pane", "-p")

    def wait_for(self, *texts: str) -> str:
        end = time.monotonic() + 30
        while not all(text in (screen := self.screen()) for text in texts):
            assert time.monotonic() < end, screen
            time.sleep(0.1)
        return screen


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    tmux = Tmux(tmp_path)
    try:
        yield tmux
    finally:
        tmux("kill-server")


def test_detached_and_attached_at_another_size(tmux: Tmux, tmp_path: Path) -> None:
    first = tmux.wait_for("1 doom", "2 SMs", "4 serve", "step ")
    assert max(map(len, first.splitlines())) > 110
    client = JobShell(100, 31, tmux.environ, tmp_path)
    try:
        client.type(tmux.attach())
        client.wait_for_text("1 doom")
        end = time.monotonic() + 30
        while max(map(len, tmux.screen().splitlines())) > 100 or "5 player" not in tmux.screen():
            assert time.monotonic() < end, tmux.screen()
            client.follow(0.1)
        assert len(tmux.screen().splitlines()) <= 30
        client.type("\x02d")  # tmux's own key for leaving
        client.wait_for_text("detached")
        client.wait_for(lambda: client.cooked)
        header = tmux.screen().splitlines()[0]
        tmux.wait_for("1 doom", "5 player")
        end = time.monotonic() + 30
        while tmux.screen().splitlines()[0] == header:
            assert time.monotonic() < end, "the run goes on with nobody there"
            time.sleep(0.1)
        before = len(client.output)
        client.type(tmux.attach())
        client.wait_for(lambda: all(text in client.text(before) for text in ("1 doom", "4 serve", "5 player")))
    finally:
        client.close()
