"""The rate of a run's frames, whatever the host was doing when they came."""

import pytest

from ofa_tui.record.summary import Tally, summarise


def rate(looks: list[tuple[float, int]], tokens_per_step: int = 1) -> float:
    """Of frames 1, 2, ... as looks at these seconds found so many of them more."""
    tally, number = Tally(tokens_per_step), 0
    for seconds, found in looks:
        for _ in range(found):
            number += 1
            tally.add_frame(number, seconds)
    return summarise(tally, "finished")["frames_per_s"]


@pytest.mark.parametrize("late", [1, 2, 9, 35])
def test_frames_before_the_first_look_are_no_faster(late):
    """The host looks for the first time when some frames are there already, then at each of them."""
    looks = [(late / 35, late), *((number / 35, 1) for number in range(late + 1, 351))]
    assert rate(looks) == pytest.approx(35.0, abs=0.01)


def test_one_look_gives_no_rate():
    assert rate([(0.3, 9)]) is None
