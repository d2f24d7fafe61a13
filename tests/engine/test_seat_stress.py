"""The kernel's seats on seven threads that come and go, and the same with a line of their source changed.

The changes are made to a copy of the sources under test, so a change that no longer finds its line fails too.
"""

import ctypes
import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest
from stress import build, run

from ofa_tui import abi_header, locations
from ofa_tui.engine.compiler import find_compiler
from ofa_tui.presets import ModelConfig, TrainConfig
from ofa_tui.program.lowering import compile_programs

DRIVER = Path(__file__).with_name("seat_stress.cc")
SEATS = "sched/seats.h"
CHANGES = {
    "seats that stand for one token": ("", SEATS, "seats_asked) == 0 || just_changed)", "seats_asked) == 0)"),
    "more blocks than signal": ("thread", SEATS, "members + admitted < most", "most > 0"),
    "a wish is taken back unseen": (
        "", SEATS, "return compare_exchange(blocks, SEAT_ASKED, SEAT_NONE) || load_acquire(blocks) == SEAT_NONE;",
        "return store_release(blocks, SEAT_NONE), true;"),
    "a block leaves before its seat ends": (
        "", SEATS, "if (has_seat(program, place)) return false;", "place.blocks = 0;"),
    "the opening is a plain store": (
        "thread", SEATS, "release_to_blocks(&serve.opened, ctx.iteration + 1)",
        "store_relaxed(&serve.opened, ctx.iteration + 1)"),
    "nobody is left before the token is open": (
        "", SEATS, "const uint32_t members = seat_next_token(ctx);",
        "const uint32_t members = seat_next_token(ctx); store_relaxed(&serve.members, members); sleep_ns(1000000);"),
}  # fmt: skip


def drive(program: Path, tokens: int, deadline_ms: int) -> tuple[dict[str, int], str]:
    """What the driver counted, and the sanitizer's report."""
    printed, report = run(program, tokens, deadline_ms)
    words = printed.split()
    return {name: int(count) for name, count in zip(words[::2], words[1::2], strict=True)}, report


@pytest.mark.parametrize(("sanitizer", "tokens"), [("", 30_000), ("thread", 10_000)])
def test_every_task_of_every_token_is_run_once(tmp_path, sanitizer, tokens):
    counted, report = drive(build(DRIVER, tmp_path, sanitizer), tokens, 20_000)
    assert counted["wrong"] == counted["abort"] == 0 and tokens <= counted["tokens"]
    assert counted["joined"] > 500 and counted["alone"] > 20, "hardly anybody came and went"
    assert not report, report[:3000]


@pytest.mark.parametrize("name", CHANGES)
def test_a_weaker_protocol_is_caught(tmp_path, name):
    sanitizer, *change = CHANGES[name]
    program = build(DRIVER, tmp_path, sanitizer, tuple(change))
    counted, report = drive(program, 10_000 if sanitizer else 100_000, 1_000)
    assert counted["wrong"] or counted["abort"] or "data race" in report, counted


def test_lanes_come_in_runs_that_every_block_can_walk(tmp_path):
    """What next_owned and most_seats rely on: lanes count up from 0, also those of what the last but one waits for."""
    model = ModelConfig(layers=2, width=128, heads=2, feed_forward=256, context=64, vocab=320)
    tasks = compile_programs(model, TrainConfig(4, 5, 1e-3, 2), target="sm90", storage="f4").programs["decode"].tasks
    lanes = tasks["lane"].astype(int)
    assert all(lane in (0, before + 1) for before, lane in itertools.pairwise(lanes))
    counter, count, n, lag = tasks["waits"][-2][0].tolist()
    assert (n, lag) == (1, 0) and lanes[tasks["signal"] == counter].tolist() == list(range(count))
    source = tmp_path / "walk.cc"
    source.write_text("""
        #include "ofa_abi.h"
        #include "platform/platform.h"
        #include "sched/seats.h"
        extern "C" uint32_t walk(const ofa::Task* tasks, uint32_t n, uint32_t rank, uint32_t blocks, uint32_t* found) {
            const ofa::Program program = {tasks, n, ofa::CLAIM_OWNED};
            uint32_t count = 0;
            for (uint32_t at = 0; (at = ofa::next_owned(program, at, rank, blocks)) < n; ++at) found[count++] = at;
            return count;
        }""")
    abi_header.write_headers(tmp_path / "generated")
    flags = ["-std=c++20", "-shared", "-fPIC", f"-I{locations.cuda_sources()}", f"-I{tmp_path / 'generated'}"]
    subprocess.run([*find_compiler().command, *flags, str(source), "-o", str(tmp_path / "walk.so")], check=True)
    library, found = ctypes.CDLL(str(tmp_path / "walk.so")), np.zeros(len(tasks), np.uint32)
    for blocks in range(1, 25):
        for rank in range(blocks):
            count = library.walk(ctypes.c_void_p(tasks.ctypes.data), len(tasks), rank, blocks,
                                 ctypes.c_void_p(found.ctypes.data))
            assert np.array_equal(found[:count], np.flatnonzero(lanes % blocks == rank))
