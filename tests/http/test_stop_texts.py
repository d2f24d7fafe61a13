"""Stop texts against a reading of one character at a time, however the text is cut."""

from hypothesis import given
from hypothesis import strategies as st

from ofa_tui.http.stop import StopScanner

_AB = st.text("ab", min_size=1, max_size=4)


def by_character(text: str, stops: list[str]) -> tuple[str, bool]:
    """What is before the stop text that is complete first, and whether there is one."""
    for end in range(len(text) + 1):
        ends = [stop for stop in stops if text[:end].endswith(stop)]
        if ends:
            return text[: end - max(map(len, ends))], True
    return text, False


@given(st.lists(st.text("abc", max_size=6)), st.lists(_AB, max_size=4))
def test_a_text_ends_before_the_first_complete_stop_text(pieces, stops):
    scanner = StopScanner(stops)
    handed_on = ""
    for number, piece in enumerate(pieces):
        handed_on += scanner.push(piece)
        so_far, _ = by_character("".join(pieces[: number + 1]), stops)
        assert so_far.startswith(handed_on), "a stop text's beginning was handed on"
        assert len(so_far) - len(handed_on) < max(map(len, stops), default=1), "more was held back than can be needed"
    ended = scanner.stopped
    assert (handed_on + scanner.finish(), ended) == by_character("".join(pieces), stops)
