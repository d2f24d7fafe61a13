"""A shell with job control in a pseudo-terminal, and what its terminal shows: for stopping and continuing the UI."""

from __future__ import annotations

import os
import re
import select
import signal
import termios
import time
from collections.abc import Callable
from pathlib import Path

from slow_link import spawn

ENTERS, LEAVES = b"\x1b[?1049h", b"\x1b[?1049l"
PROMPT = "ready>"


class JobShell:
    """`output` is all that came so far; position reports are answered as a terminal does."""

    def __init__(self, columns: int, rows: int, environment: dict[str, str], folder: Path) -> None:
        self.pid, self.terminal = spawn(["bash", "--norc", "--noprofile", "--noediting", "-i"], columns, rows,
                                        {**environment, "PS1": PROMPT, "BASH_SILENCE_DEPRECATION_WARNING": "1"})
        self.output = b""
        self.wait_for(lambda: PROMPT.encode() in self.output)
        self.type(f"cd {folder}\n")

    def type(self, text: str) -> None:
        os.write(self.terminal, text.encode())

    def command(self, line: str) -> None:
        """A late answer of the terminal to the program before may stand at the prompt: that line is ended first."""
        self.type(f"\n{line}\n")

    def follow(self, seconds: float) -> None:
        self.wait_for(lambda: False, seconds, fail=False)

    def wait_for(self, met: Callable[[], bool], seconds: float = 30.0, *, fail: bool = True) -> None:
        end = time.monotonic() + seconds
        while not met():
            if time.monotonic() > end:
                assert not fail, f"waited in vain; the last output: {self.output[-500:]!r}"
                return
            if select.select([self.terminal], [], [], 0.05)[0]:
                try:
                    data = os.read(self.terminal, 1 << 16)
                except OSError:
                    return
                self.output += data
                os.write(self.terminal, b"\x1b[5;5R" * data.count(b"\x1b[6n"))

    def exit_code(self) -> int:
        """Of the program that just ended."""
        self.wait_for(lambda: self.cooked and self.output.endswith(PROMPT.encode()))
        before = len(self.output)
        self.type("echo code=$?=\n")
        self.wait_for(lambda: re.search(r"code=\d+=", self.text(before)) is not None)
        return int(re.findall(r"code=(\d+)=", self.text(before))[0])

    def wait_for_text(self, text: str, since: int = 0) -> None:
        self.wait_for(lambda: text in self.text(since))

    def text(self, since: int = 0) -> str:
        return re.sub(r"\x1b\[[0-9;?<>=]*[a-zA-Z]", "", self.output[since:].decode(errors="replace"))

    @property
    def cooked(self) -> bool:
        """Whether the terminal echoes and hands lines on, as a program at its prompt expects it."""
        flags = termios.tcgetattr(self.terminal)[3]
        return bool(flags & termios.ECHO and flags & termios.ICANON and flags & termios.ISIG)

    def close(self) -> None:
        os.close(self.terminal)
        for number in (signal.SIGHUP, signal.SIGKILL):
            for _ in range(100):
                done, _ = os.waitpid(self.pid, os.WNOHANG)
                if done:
                    return
                time.sleep(0.05)
            os.kill(self.pid, number)
        os.waitpid(self.pid, 0)
