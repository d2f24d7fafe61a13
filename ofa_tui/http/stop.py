"""Stop texts: where a text that comes in pieces has to end."""

from __future__ import annotations

from collections.abc import Sequence


class StopScanner:
    """Hands a text on up to the stop text that is complete first; of several at once, the longest.

    How the text was cut into pieces makes no difference to what comes out in all.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stops)
        self._held = ""
        """What may turn out to begin a stop text."""
        self.stopped = False

    def push(self, text: str) -> str:
        """What is certain now to be before any stop text. Nothing after `stopped`."""
        if self.stopped:
            return ""
        text = self._held + text
        found = [(at + len(stop), at) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        held = self._beginning_of_a_stop(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def finish(self) -> str:
        """What was held back: the text is over and no stop text came."""
        held, self._held = self._held, ""
        return held

    def _beginning_of_a_stop(self, text: str) -> int:
        """Length of the longest end of the text with which a stop text begins."""
        longest = max((len(stop) - 1 for stop in self._stops), default=0)
        for length in range(min(longest, len(text)), 0, -1):
            if any(stop.startswith(text[len(text) - length :]) for stop in self._stops):
                return length
        return 0
