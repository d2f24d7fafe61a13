"""A terminal at the far end of a simulated link: `python tests/tui/slow_link.py --rate 500000 --delay 30`.

Runs the demo (or any command) in a pseudo-terminal, passes what it writes and what the person types through a link,
answers cursor position reports when they arrive there, types keys, and says what it saw.

The link is a TCP connection as ssh has one. In each direction bytes leave one after the other at `rate`, and arrive
`delay` after they left, in order; nothing is lost, nothing is compressed. The far end may write ahead of the wire by
SEND_BUFFER bytes; what is under way does not count, as TCP's window grows to hold it. While the buffer is full the
pseudo-terminal is not read, so that the kernel's 4 kB fill up and the program's write blocks. A person's terminal
takes everything at once. Bytes pass in pieces of at most CHUNK, as much as a pseudo-terminal gives at a time.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SEND_BUFFER = 65536
CHUNK = 4096
REPORT_REQUEST, REPORT = b"\x1b[6n", b"\x1b[5;5R"


class Direction:
    """One way through the link. Times are seconds on one clock."""

    def __init__(self, rate: float, delay_s: float) -> None:
        self._rate, self._delay_s = rate, delay_s
        self._free_at = 0.0
        self._waiting: deque[tuple[float, int]] = deque()
        self._coming: deque[tuple[float, bytes]] = deque()
        self._unsent = 0

    def room(self, now: float) -> int:
        """Bytes that the sender may write without being blocked."""
        while self._waiting and self._waiting[0][0] <= now:
            self._unsent -= self._waiting.popleft()[1]
        return max(0, SEND_BUFFER - self._unsent)

    def send(self, now: float, data: bytes) -> None:
        self._free_at = max(self._free_at, now) + len(data) / self._rate
        self._waiting.append((self._free_at, len(data)))
        self._unsent += len(data)
        self._coming.append((self._free_at + self._delay_s, data))

    def arrived(self, now: float) -> bytes:
        """What has arrived since the last call."""
        parts = []
        while self._coming and self._coming[0][0] <= now:
            parts.append(self._coming.popleft()[1])
        return b"".join(parts)

    def next_arrival(self) -> float:
        """When there will be something; infinity if nothing is under way."""
        return self._coming[0][0] if self._coming else float("inf")


@dataclass
class LinkReport:
    seconds: float = 0.0
    bytes: int = 0
    reports: int = 0
    cpu_seconds: float = 0.0
    echoes_s: list[float] = field(default_factory=list)
    output: bytes = b""
    arrivals: list[tuple[float, bytes]] = field(default_factory=list)
    """What arrived at the person's terminal, with seconds since the start."""
    keys_s: list[float] = field(default_factory=list)
    """When keys were pressed, in seconds since the start."""

    def __str__(self) -> str:
        rate = self.reports / self.seconds
        text = f"{rate:.1f} frames/s, {self.bytes / max(1, self.reports) / 1e3:.1f} kB a frame, "
        text += f"{self.bytes / self.seconds / 1e6:.2f} MB/s, CPU {100 * self.cpu_seconds / self.seconds:.0f} %"
        if self.echoes_s:
            text += ", key to echo " + " ".join(f"{e * 1e3:.0f}" for e in self.echoes_s) + " ms"
        return text


def spawn(command: Sequence[str], columns: int, rows: int, environ: dict[str, str]) -> tuple[int, int]:
    """(process id, descriptor of the terminal's far side)."""
    pid, descriptor = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # tests in the background of a shell inherit that it is ignored
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execvpe(command[0], list(command), environ)
    return pid, descriptor


def cpu_seconds(pid: int) -> float:
    """Processor time of all threads; the scheduler's own count, because ticks misjudge a process that sleeps often."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(path.read_text().split()[0]) for path in tasks) / 1e9


def watch(
    pid: int,
    descriptor: int,
    *,
    seconds: float,
    settle: float = 2.0,
    rate: float = 1e12,
    delay: float = 0.0,
    key: bytes = b"",
    key_every: float = 1.0,
    echo: bytes = b"",
    answer: bool = True,
    until: bytes = b"",
    keep: int = 4_000_000,
    processor: Callable[[], float] | None = None,
) -> LinkReport:
    """Reads for `settle` + `seconds`, measuring the latter, or until `until` was seen.

    With `key`, presses it every `key_every` seconds and waits for `echo`. `rate` in bytes a second and `delay` in
    seconds are those of each direction. `processor` gives the processor time to report instead of the process's own.
    """
    measure = processor or (lambda: cpu_seconds(pid))
    report = LinkReport()
    begin = time.monotonic()
    measured_from = begin + settle
    cpu_before: float | None = None
    down, up = Direction(rate, delay), Direction(rate, delay)
    pressed: float | None = None
    next_key = measured_from + 0.5
    tail = b""
    while (now := time.monotonic()) < measured_from + seconds:
        if cpu_before is None and now >= measured_from:
            cpu_before = measure()
        room = min(CHUNK, down.room(now))
        patience = min(0.002, max(0.0, min(down.next_arrival(), up.next_arrival()) - now))
        if select.select([descriptor] if room else [], [], [], patience)[0]:
            try:
                data = os.read(descriptor, room)
            except OSError:
                break
            down.send(time.monotonic(), data)
        now = time.monotonic()
        if data := down.arrived(now):
            seen = tail + data
            count = seen.count(REPORT_REQUEST) - tail.count(REPORT_REQUEST)
            if now >= measured_from:
                report.bytes += len(data)
                report.reports += count
                if pressed is not None and echo and echo in seen:
                    report.echoes_s.append(now - pressed)
                    pressed = None
            if answer and count:
                up.send(now, REPORT * count)
            report.arrivals.append((now - begin, data))
            if len(report.output) < keep:
                report.output += data
            tail = seen[-64:]
            if until and until in report.output:
                return report
        if data := up.arrived(now):
            os.write(descriptor, data)
        if key and now >= next_key:
            next_key += key_every
            report.keys_s.append(now - begin)
            if pressed is None:
                pressed = now
            up.send(now, key)
    report.seconds = time.monotonic() - measured_from
    if cpu_before is None:
        return report
    report.cpu_seconds = measure() - cpu_before
    return report


def finish(pid: int, descriptor: int, timeout: float = 10.0) -> int:
    """Terminates the process, reads it empty and returns its exit code."""
    os.kill(pid, signal.SIGTERM)
    return wait_exit(pid, descriptor, timeout)


def wait_exit(pid: int, descriptor: int, timeout: float = 10.0, output: bytearray | None = None) -> int:
    """Reads the terminal empty until the process ends; -1 if it does not. Adds what it read to `output`."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if select.select([descriptor] if descriptor >= 0 else [], [], [], 0.05)[0]:
            try:
                data = os.read(descriptor, 65536)
                if output is not None:
                    output += data
                for _ in range(data.count(REPORT_REQUEST)):
                    os.write(descriptor, REPORT)
            except OSError:
                pass
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", default="200x60")
    parser.add_argument("--rate", type=float, default=1e12, help="bytes a second")
    parser.add_argument("--delay", type=float, default=0.0, help="milliseconds each way")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--settle", type=float, default=2.0)
    parser.add_argument("--echo", action="store_true")
    parser.add_argument("--silent", action="store_true", help="a terminal that never answers")
    parser.add_argument("rest", nargs="*", help="arguments of tests/tui/demo.py")
    arguments = parser.parse_args()
    columns, rows = map(int, arguments.size.split("x"))
    command = [sys.executable, str(Path(__file__).with_name("demo.py")), *arguments.rest]
    pid, descriptor = spawn(command, columns, rows, {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"})
    report = watch(
        pid,
        descriptor,
        seconds=arguments.seconds,
        settle=arguments.settle,
        rate=arguments.rate,
        delay=arguments.delay / 1e3,
        key=b"g" if arguments.echo else b"",
        echo=b"gamma ",
        answer=not arguments.silent,
    )
    print(report)
    print("exit code", finish(pid, descriptor))


if __name__ == "__main__":
    main()
