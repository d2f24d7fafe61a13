"""A terminal at the far end of a simulated link: `python tests/tui/slow_link.py --rate 500000 --delay 30`.

Runs the demo (or any command) in a pseudo-terminal, passes its output through a link of limited rate and delay,
answers cursor position reports when they arrive there, types keys, and says what it saw: frames a second, bytes,
CPU time, and how long after a key the screen answered.
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
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class LinkReport:
    seconds: float = 0.0
    bytes: int = 0
    reports: int = 0
    cpu_seconds: float = 0.0
    echoes_s: list[float] = field(default_factory=list)
    output: bytes = b""

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
        os.execvpe(command[0], list(command), environ)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
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
    echo: bytes = b"",
    answer: bool = True,
    until: bytes = b"",
    keep: int = 4_000_000,
) -> LinkReport:
    """Reads for `settle` + `seconds`, measuring the latter, or until `until` was seen.

    With `key`, presses it each second and waits for `echo`.

    The link delivers `rate` bytes a second, `delay` seconds late each way; the sender is blocked while 64 kB wait
    (a socket's buffer).
    """
    report = LinkReport()
    begin = time.monotonic()
    measured_from = begin + settle
    cpu_before: float | None = None
    waiting: deque[tuple[float, bytes]] = deque()
    replies: deque[float] = deque()
    free_at = begin
    queued = 0
    pressed: float | None = None
    next_key = measured_from + 0.5
    tail = b""
    while (now := time.monotonic()) < measured_from + seconds:
        if cpu_before is None and now >= measured_from:
            cpu_before = cpu_seconds(pid)
        readable, _, _ = select.select([descriptor] if queued < 65536 else [], [], [], 0.002)
        if readable:
            try:
                data = os.read(descriptor, 4096)
            except OSError:
                break
            free_at = max(free_at, now) + len(data) / rate
            waiting.append((free_at + delay, data))
            queued += len(data)
            if now >= measured_from:
                report.bytes += len(data)
        while waiting and waiting[0][0] <= now:
            _, data = waiting.popleft()
            queued -= len(data)
            seen = tail + data
            count = seen.count(b"\x1b[6n") - tail.count(b"\x1b[6n")
            if now >= measured_from:
                report.reports += count
                if pressed is not None and echo in seen:
                    report.echoes_s.append(now - pressed)
                    pressed = None
            if answer:
                replies.extend([now + delay] * count)
            if len(report.output) < keep:
                report.output += data
            tail = seen[-64:]
            if until and until in report.output:
                return report
        while replies and replies[0] <= now:
            replies.popleft()
            os.write(descriptor, b"\x1b[5;5R")
        if key and now >= next_key:
            next_key = now + 1.0
            if pressed is None:
                pressed = now
                os.write(descriptor, key)
    report.seconds = time.monotonic() - measured_from
    if cpu_before is None:
        return report
    report.cpu_seconds = cpu_seconds(pid) - cpu_before
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
                for _ in range(data.count(b"\x1b[6n")):
                    os.write(descriptor, b"\x1b[5;5R")
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
