"""How fast the link behind tmux is. tmux answers our requests for reports itself, however far its terminal is behind.

But it counts, for each terminal attached to it, the bytes meant for it and those thrown away because it was behind
(tmux(1), FORMATS: client_written and client_discarded). What was thrown away may have been counted as written before,
so a rate that proves too high is lowered until nothing is thrown away any more.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping

LOOK_EVERY_S = 1.0
LOOK_TIMEOUT_S = 5.0
RECENT_S = 10.0
"""A terminal that was behind, and was not so shortly before, may have been busy with something else for once."""
SHRINK, GROW = 0.6, 1.25
PATIENCE_S = (15.0, 600.0)
"""Before more is tried than was known to be enough; doubled, up to the second, each time that was too much."""

Counts = Mapping[str, tuple[int, int]]
"""By terminal: bytes written, bytes thrown away."""


class LinkEstimate:
    """`rate`: bytes a second that frames can count on; None while no terminal was ever behind."""

    def __init__(self) -> None:
        self.rate: float | None = None
        self._before: Counts = {}
        self._looked_at = self._steady_since = 0.0
        self._behind_at = -RECENT_S - 1.0
        self._patience_s, self._grown = PATIENCE_S[0], False

    def counted(self, now: float, counts: Counts) -> bool:
        """Takes the counts at `now` (seconds, monotonic); returns whether a terminal was behind since the last."""
        before, elapsed = self._before, now - self._looked_at
        rates = [
            (written - before[name][0]) / elapsed
            for name, (written, discarded) in counts.items()
            if name in before and discarded > before[name][1]
        ]
        self._before, self._looked_at = counts, now
        again = now - self._behind_at <= RECENT_S
        if rates:
            self._behind_at = self._steady_since = now
            if not again:
                return True
        if rates and self.rate is None:
            self.rate = max(1.0, *rates)
        elif rates and self.rate is not None:
            self.rate = max(1.0, SHRINK * self.rate)
            if self._grown:
                self._patience_s, self._grown = min(2 * self._patience_s, PATIENCE_S[1]), False
        elif self.rate is not None and now - self._steady_since >= self._patience_s:
            self.rate, self._grown = GROW * self.rate, True
        else:
            return False
        self._steady_since = now
        return bool(rates)


def parse_counts(text: str) -> dict[str, tuple[int, int]]:
    """What `list-clients` prints in the form of CLIENTS; lines of another form are left out."""
    counts = {}
    for line in text.splitlines():
        name, _, numbers = line.partition("\t")
        written, _, discarded = numbers.partition("\t")
        if written.isdecimal() and discarded.isdecimal():
            counts[name] = int(written), int(discarded)
    return counts


CLIENTS = "#{client_name}\t#{client_written}\t#{client_discarded}"


def read_counts(pane: str) -> dict[str, tuple[int, int]]:
    """Of the terminals that show the session of this pane (TMUX_PANE); none where tmux cannot be asked."""
    command = ["tmux", "list-clients", "-t", pane, "-F", CLIENTS]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LOOK_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_counts(done.stdout)


class TmuxWatch:
    """While active and inside tmux, calls `tell` every LOOK_EVERY_S: the link's rate, and whether it was behind."""

    def __init__(self, tell: Callable[[float | None, bool], object], environ: Mapping[str, str] = os.environ) -> None:
        self._tell = tell
        self._pane = environ.get("TMUX_PANE", "") if environ.get("TMUX") else ""
        self._over = threading.Event()

    def __enter__(self) -> TmuxWatch:
        if self._pane:
            threading.Thread(target=self._look, name="tmux-watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _look(self) -> None:
        estimate = LinkEstimate()
        while True:
            behind = estimate.counted(time.monotonic(), read_counts(self._pane))
            self._tell(estimate.rate, behind)
            if self._over.wait(LOOK_EVERY_S):
                return
