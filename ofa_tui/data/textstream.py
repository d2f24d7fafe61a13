"""Tokens to text as they come, without ever showing half a character."""

from __future__ import annotations

import codecs

from ofa_tui.data.tokenizers import Tokenizer

_MIN_CONTEXT, _MAX_CONTEXT = 8, 64
"""Tokens that a tokenizer without byte pieces gets to see, so that it decodes the newest one rightly."""


class TextStream:
    """The text of one stream of tokens, piece by piece.

    The pieces of a story, joined, are its text; bytes that can never become a character turn into U+FFFD as soon as
    that is certain.
    """

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self.reset()

    def reset(self) -> None:
        """Forgets what is half-written, as at the start of a story."""
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._recent: list[int] = []
        self._shown = ""

    def push(self, token: int) -> str:
        """The text that is complete now and was not before. End of text shows nothing and resets the stream."""
        if token == self._tokenizer.end_of_text:
            self.reset()
            return ""
        piece = self._tokenizer.token_bytes(token)
        if piece is not None:
            return self._utf8.decode(piece)
        return self._in_context(token)

    def _in_context(self, token: int) -> str:
        self._recent.append(token)
        text = self._tokenizer.decode(self._recent)
        if text.endswith("\ufffd") and len(self._recent) < _MAX_CONTEXT:
            return ""
        new = text.removeprefix(self._shown)
        self._shown = text
        if len(self._recent) > _MIN_CONTEXT:
            alone = self._tokenizer.decode([token])
            if "\ufffd" not in alone or len(self._recent) >= _MAX_CONTEXT:
                self._recent, self._shown = [token], alone
        return new
