"""What scripts/bench_serve.py makes of a log of tokens: figures of whole stories, wherever the time begins."""

import sys
from pathlib import Path

import numpy as np
import pytest

from ofa_tui.engine.protocol import ServedToken, Snapshot
from ofa_tui.errors import OfaError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import bench_serve
import gpu_bench

CONTEXT = 16
PASS_S = 1e-3 * (1 + np.arange(CONTEXT))
"""Of each position: the later, the slower, as with a cache that grows."""


def told(streams: int, stories: int, polls: int = 7) -> list[Snapshot]:
    """Passes over whole stories, spread over some polls."""
    ends = np.cumsum(np.tile(PASS_S, stories))
    tokens = [ServedToken(n * streams + stream, 1, "", 0, stream, n % CONTEXT, False, n % CONTEXT == 0, at, stream)
              for n, at in enumerate(ends.tolist()) for stream in range(streams)]
    parts = np.array_split(np.arange(len(tokens)), polls)
    return [Snapshot(0.0, "running", 0, 0, 0, served=[tokens[i] for i in part]) for part in parts]


@pytest.mark.parametrize("streams", [1, 8])
@pytest.mark.parametrize("first_s", [0.0, 0.02, 0.1])
def test_the_rate_does_not_depend_on_where_in_a_story_the_time_begins(streams: int, first_s: float) -> None:
    seconds = bench_serve.pass_seconds(told(streams, 9), streams, first_s, 1e9)
    row = bench_serve.served("ours", "alone", 28, streams, seconds, CONTEXT, 1e9, 500.0, gpu_bench.Gauges())
    rate = streams * CONTEXT / PASS_S.sum()
    assert row["stories"] >= 7
    assert row["tokens_per_s"] == pytest.approx(rate)
    assert row["tokens_per_s_range"] == pytest.approx([rate, rate])
    assert row["us"] == pytest.approx(1e6 * np.median(PASS_S))
    assert row["of_copies"] == pytest.approx(rate / streams / 500)  # a pass reads 1 GB, for all streams together


def test_a_pass_without_a_stream_is_no_figure() -> None:
    snapshots = told(3, 4)
    short = [Snapshot(0.0, "running", 0, 0, 0, served=[t for t in s.served if t.stream != 1 or t.position < 8])
             for s in snapshots]
    with pytest.raises(OfaError, match="a pass lacks some"):
        bench_serve.pass_seconds(short, 3, 0.0, 1e9)
    with pytest.raises(OfaError, match="less than a story"):
        bench_serve.served("ours", "alone", 28, 3, np.ones(CONTEXT - 1), CONTEXT, 1e9, 500.0, gpu_bench.Gauges())


def test_only_rows_with_a_goal_show_one() -> None:
    row = {"name": "ours", "kind": "alone", "sms": 28, "streams": 1, "tokens_per_s": 7123.4,
           "tokens_per_s_range": [7000.0, 7200.0], "us": 140.0, "us_p99": 150.0}
    lines = bench_serve.table([row, row | {"streams": 8}, row | {"kind": "peer"}]).splitlines()
    assert lines[0].split() == ["what", "SMs", "streams", "tokens/s", "10-90", "%", "goal", "us", "p99"]
    assert ["7,500" in line for line in lines[1:]] == [True, False, False]
