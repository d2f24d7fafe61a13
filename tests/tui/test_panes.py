"""What single panes draw: wrapped stories, SM cells, themes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from fake_run import FakeEngine
from hypothesis import given
from hypothesis import strategies as st

from ofa_tui import abi
from ofa_tui.engine.protocol import AppliedEvent, Event, ServedToken, Snapshot, StepLoss, SweepLoss
from ofa_tui.errors import OfaError
from ofa_tui.tui.colour import Depth
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Box, Frame, SizeClass
from ofa_tui.tui.model import FRESH_PIECES, SAMPLE_S, RunModel, Story
from ofa_tui.tui.panes import doom, loss, player, serve, sms, status, streams
from ofa_tui.tui.plot import PlotView
from ofa_tui.tui.theme import load_themes, read_theme

THEME = load_themes()["dark"]


@given(
    st.lists(st.tuples(st.text("a é日\n👩🚀❤\u200d\ufe0f", max_size=12), st.integers(0, 1), st.booleans()), max_size=8),
    st.integers(2, 14),
)
def test_wrapping_loses_only_spaces_and_never_overflows(spans: list[serve.Span], width: int) -> None:
    lines = serve.wrap_spans(spans, width)
    grid = Grid(40, len(lines), THEME.text, THEME.background)
    assert all(serve.draw_line(grid, 0, y, line, grid.width) <= width for y, line in enumerate(lines))
    before = "".join(text for text, _, _ in spans)
    after = "".join(text for line in lines for text, _, _ in line)
    assert [c for c in after if c not in " \n"] == [c for c in before if c not in " \n"]


def test_words_stay_whole_across_colours() -> None:
    lines = serve.wrap_spans([("one tw", 1, False), ("o three", 2, True)], 8)
    assert ["".join(text for text, _, _ in line) for line in lines] == ["one two", "three"]


_PIECES = st.lists(
    st.tuples(st.text("ab é日\n\r\t\u0301", max_size=6), st.floats(0, 3), st.booleans()), max_size=3 * FRESH_PIECES
)  # fmt: skip


@given(_PIECES, st.integers(2, 14), st.lists(st.integers(0, 40), max_size=5), st.booleans())
def test_a_story_that_grows_has_the_lines_it_would_have_at_once(pieces, width, seen_at, done) -> None:
    grown, at_once = Story(1), Story(1)
    for count in sorted(seen_at):
        grown.pieces = pieces[:count]
        serve.text_lines(grown, THEME, width, 3.0, True)
    grown.pieces = at_once.pieces = pieces
    shown = [serve.text_lines(story, THEME, width, 3.0, not done) for story in (grown, at_once)]
    assert [merged(line) for line in shown[0]] == [merged(line) for line in shown[1]]


def merged(line: list[serve.Span]) -> list[tuple[str, int, bool]]:
    """A cell each."""
    return [(character, colour, bold) for text, colour, bold in line for character in text]


@given(st.integers(0, 200), st.integers(0, 60), st.integers(1, 8), st.data())
def test_every_stream_has_a_place_and_the_selected_one_the_largest(width, height, count, data) -> None:
    selected = data.draw(st.integers(0, count - 1))
    area = Box(1, 1, width, height)
    boxes = streams.places(area, count, selected)
    cells = [(x, y) for box in boxes.values() for x in range(box.x, box.x + box.width)
             for y in range(box.y, box.y + box.height)]  # fmt: skip
    assert len(cells) == len(set(cells)) and all(1 <= x <= width and 1 <= y <= height for x, y in cells)
    if height:
        assert boxes[selected].height == max(box.height for box in boxes.values()) >= 1
        assert max(box.y + box.height for box in boxes.values()) == 1 + height, "rows are left over"
    if height >= count:
        assert list(boxes) == list(range(count))
    for stream, box in boxes.items():
        if box.width:
            assert streams.stream_at(boxes, box.x, box.y, -1) == stream


@pytest.mark.parametrize(("width", "height"), [(20, 8), (31, 9), (31, 17), (44, 18), (76, 23), (118, 34), (198, 55)])
def test_each_stream_shows_the_end_of_its_newest_story(width: int, height: int) -> None:
    model = run_model(4, streams=8)
    grid = Grid(width, height, THEME.text, THEME.background)
    boxes = streams.paint_streams(grid, Frame(False, False), model, THEME, False, prompt_rows=0, gap=False)
    assert list(boxes) == list(range(8)) and any(map(model.rests, boxes))
    for stream, box in boxes.items():
        rows = [line[box.x : box.x + box.width] for line in grid.lines()[box.y : box.y + box.height]]
        assert rows[0].startswith(f" {stream} ")
        assert ("rests" in rows[0]) == model.rests(stream)
        if box.height == 1 and model.rests(stream):
            continue
        told = "".join(text for text, _, _ in model.told[stream][-1].pieces).split()
        shown = " ".join(rows[1:] or [rows[0][3:]]).partition("#")[0].strip(" …▌").split()
        assert shown and told[-len(shown) :] == shown


def test_a_stream_that_is_not_the_runs_own_rests_when_its_story_is_over() -> None:
    """At an end of text, where the model can read no more, or by an event, which later tokens do not undo."""
    info = FakeEngine(streams=4, telling=1).info
    model, tokens = RunModel(info), 0

    def serve_tokens(stream: int, story: int, *positions: int, token: int = 5) -> list[ServedToken]:
        nonlocal tokens
        tokens += len(positions)
        first = tokens - len(positions)
        return [ServedToken(first + n, token, "x", 1, story, position, False, position == 0, 1.0, stream)
                for n, position in enumerate(positions)]  # fmt: skip

    def absorb(served: list[ServedToken], applied: list[AppliedEvent] | None = None) -> list[bool]:
        model.absorb(Snapshot(1.0, "running", 0, 0, tokens, served=served, applied=applied or []))
        return [model.rests(stream) for stream in range(4)]

    assert absorb([]) == [False, True, True, True]
    assert absorb([token for s in range(4) for token in serve_tokens(s, s, 0, 1)]) == [False] * 4
    assert absorb(serve_tokens(1, 1, 2, token=info.end_of_text)) == [False, True, False, False]
    assert absorb(serve_tokens(2, 2, info.context - 1)) == [False, True, True, False]
    ends = AppliedEvent(Event("end_story", "token", target=3), tokens)
    assert absorb(serve_tokens(0, 0, 2, 3), [ends]) == [False, True, True, True]
    again = [AppliedEvent(Event("end_story", "token", target=stream), tokens) for stream in (0, 1)]
    assert absorb(serve_tokens(1, 4, 0, 1), again) == [False, False, True, True]
    assert [[story.number for story in stories] for stories in model.told] == [[0], [1, 4], [2], [3]]


@pytest.mark.parametrize(
    ("count", "width", "height", "style", "columns"),
    [
        (132, 120, 6, "label", 22),
        (132, 72, 4, "block", 33),
        (132, 66, 1, "half", 66),
        (4, 120, 6, "list", 1),
        (4, 60, 1, "label", 4),
    ],
)
def test_cell_plans(count: int, width: int, height: int, style: str, columns: int) -> None:
    plan = sms.plan_cells(count, width, height)
    assert (plan.style, plan.columns) == (style, columns)
    plain = sms.plan_cells(count, width, height, shaded=False)
    assert plain == replace(plan, style={"block": "letter", "half": "pair"}.get(style, style)), "the same places"


@pytest.mark.parametrize("shaded", [True, False])
def test_every_sm_has_a_cell_and_the_mouse_finds_it(shaded: bool) -> None:
    for count in (1, 2, 4, 5, 8, 13, 64, 132, 256):
        for width, height in ((120, 6), (118, 24), (72, 4), (72, 1), (40, 10)):
            plan = sms.plan_cells(count, width, height, shaded)
            assert plan.columns * plan.cell_width <= max(width, plan.columns)
            found = {sms.cell_at(plan, count, x, y) for x in range(width) for y in range(height)}
            if plan.style in ("half", "pair") and plan.columns * 2 * height < count:
                continue
            # A cell that two share is the first one's: of two rows, or of two neighbours.
            every = {"half": 2 * plan.columns, "pair": 2}.get(plan.style, 1)
            own = {"half": plan.columns}.get(plan.style, 1)
            seen = {sm for sm in range(count) if sm % every < own}
            assert seen <= found, (count, width, height, plan)


@pytest.mark.parametrize("shaded", [True, False])
@pytest.mark.parametrize(("count", "width", "height"), [(132, 120, 6), (132, 72, 4), (132, 66, 1), (4, 120, 6)])
def test_arrows_reach_every_sm(count: int, width: int, height: int, shaded: bool) -> None:
    plan = sms.plan_cells(count, width, height, shaded)
    reached, new = {0}, {sms.moved(plan, count, None, 0, 1)}
    while new:
        arrows = ((1, 0), (-1, 0), (0, 1), (0, -1))
        reached |= new
        new = {sms.moved(plan, count, sm, dx, dy) for sm in new for dx, dy in arrows} - reached
    assert reached == set(range(count))


def run_model(n_sms: int, streams: int = 1) -> RunModel:
    now = [0.0]
    engine = FakeEngine(n_sms, streams=streams, telling=1, clock=lambda: now[0])
    engine.start()
    model = RunModel(engine.info)
    for second in range(1, 9):
        now[0] = float(second)
        model.absorb(engine.poll())
    return model


def test_busy_shares_come_from_time_in_tasks() -> None:
    model = run_model(4)
    # The fake's training SMs spend 92 % of their time in tasks, less a pulse of at most 30 %.
    assert 0.6 < model.busy[0] <= 0.93 and 0.15 < model.busy[3] <= 0.31
    assert sms.top_families(model, 0, 1)[0][0] == "matmul"
    assert model.family_share[0].sum() == pytest.approx(1.0)


def test_the_selected_sm_is_explained() -> None:
    model = run_model(132)
    grid = Grid(120, 30, THEME.text, THEME.background)
    box = sms.paint_sms(grid, Frame(), model, THEME, True, 17, True)
    text = "\n".join(grid.lines())
    assert box.height < 28 and "SM 17 train" in text and "matmul" in text and "waiting" in text


def test_no_serving_sm_is_explained() -> None:
    model = run_model(4)
    model.stories.clear()
    assert model.snapshot is not None
    model.snapshot.roles[:] = abi.TRAIN
    grid = Grid(40, 10, 0, 0)
    serve.paint_serve(grid, Frame(), model, THEME, False, prompt_rows=0, gap=False)
    assert "no SM serves" in "\n".join(grid.lines())


@pytest.mark.parametrize("n_sms", [4, 132])
@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_tiles_do_not_overlap_and_have_units_where_there_is_room(n_sms: int, width: int) -> None:
    shown = status.tiles(run_model(n_sms), THEME)[: 10 if n_sms == 132 else 8]
    places = status.tile_places(shown, width)
    assert all(a + room < b for (a, room, _), (b, _, _) in pairwise(places))
    if width >= 160:
        assert all(unit or not tile.unit for tile, (_, _, unit) in zip(shown, places, strict=True))


def test_a_tile_has_the_value_that_its_pane_has_also_between_two_samples() -> None:
    model = run_model(4)
    assert model.snapshot is not None
    newest = replace(
        model.snapshot,
        seconds=model.snapshot.seconds + SAMPLE_S / 10,
        losses=[StepLoss(90_000, 1.234, 1e-3, model.snapshot.seconds)],
        sweeps=[SweepLoss(90_001, 2.345, 1, True)],
        served_per_s=321.0,
        frames_per_s=12.3,
    )
    samples = len(model.history["loss"])
    model.absorb(newest)
    assert len(model.history["loss"]) == samples, "no sample was due"
    assert {("loss", "1.234"), ("val", "2.345"), ("serve", "321"), ("doom", "12.3")} <= {
        (tile.label, tile.value) for tile in status.tiles(model, THEME)
    }
    grid = Grid(60, 12, THEME.text, THEME.background)
    loss.paint_loss(grid, Frame(), model, THEME, PlotView(), False)
    assert "train 1.234" in grid.lines()[-1] and "val 2.345" in grid.lines()[-1]


def test_what_stands_still_is_said_without_decimals() -> None:
    model = run_model(4)
    assert model.snapshot is not None
    still = replace(model.snapshot, state="paused", train_tokens_per_s=0.0, step_ms=0.0, served_per_s=0.0)
    model.absorb(still)
    values = {tile.label: (tile.value, tile.unit) for tile in status.tiles(model, THEME)}
    assert values["train"] == ("0", "tok/s") and values["step"] == ("–", "") and values["serve"] == ("0", "tok/s")
    assert not model.busy.any()


@pytest.mark.parametrize("width", [20, 31, 44, 60])
@pytest.mark.parametrize("prompted", [True, False])
def test_a_story_whose_top_is_gone_says_so(width: int, prompted: bool) -> None:
    model = run_model(4)
    model.stories[-1].prompted = prompted
    grid = Grid(width, 3, THEME.text, THEME.background)
    serve.paint_serve(grid, Frame(False, False), model, THEME, False, prompt_rows=0, gap=False)
    heading, first, *rest = grid.lines()
    number = model.stories[-1].number
    assert heading.startswith(f"#{number} prompt " if prompted else f"#{number} ") and first.startswith("…")
    assert not any("…" in line for line in rest)
    shown = " ".join(" ".join([first[1:], *rest]).split()).rstrip("▌ ")
    assert "".join(text for text, _, _ in model.stories[-1].pieces).endswith(shown)


@pytest.mark.parametrize(("health", "label"), [(66, "hp 66 of 100"), (150, "hp 150 of 200")])
def test_the_player_pane_has_units_and_a_scale_and_cuts_no_word(health: int, label: str) -> None:
    model = run_model(4)
    assert model.frame is not None
    frame_status = model.frame.status
    frame_status["health"], frame_status["turn"] = health, -1280
    for width in range(10, 90):
        grid = Grid(width, 6, THEME.text, THEME.background)
        player.paint_player(grid, Frame(), model, THEME, False, "explore", False, False)
        _, _, behaviour, place, chart, _ = (line[1:-1].rstrip() for line in grid.lines())
        full_behaviour = "explore  pistol  turn 246°/s  seen 34/120  kills 3/24  stuck 0.0 s"
        assert full_behaviour.startswith(behaviour) and full_behaviour[len(behaviour):][:2] in ("", "  ")
        assert place == "" or place.split()[-1] not in ("ang", "x", "y", "tic", "seed", "·")
        assert "hp" not in chart or label in chart
    assert label in chart and "ang 91°" in place


def test_level_names() -> None:
    status = np.zeros(1, abi.DOOM_STATUS)[0]
    status["episode"], status["map"] = 1, 3
    assert doom.level_name(status, "/wads/freedoom1.wad") == "E1M3"
    assert doom.level_name(status, "/wads/freedoom2.wad") == "MAP03"
    status["map"] = 12
    assert doom.level_name(status, "mine.wad") == "MAP12"


def test_shades_get_brighter_with_work() -> None:
    roles = np.array([abi.TRAIN] * 3)
    dim, half, full = sms.shade(THEME, roles, np.array([0.0, 0.5, 1.0])).tolist()
    assert dim < half < full == THEME.train


def test_all_themes_load_and_a_bad_one_is_explained(tmp_path: Path) -> None:
    assert next(iter(load_themes())) == "dark" and {"light", "contrast"} <= set(load_themes())
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\ndark = true\n[colours]\ntext = "red"\n')
    with pytest.raises(OfaError, match=r"mine\.toml"):
        read_theme(path)


def test_the_prompt_row_stays_free() -> None:
    model = run_model(4)
    grid = Grid(40, 8, THEME.text, THEME.background)
    serve.paint_serve(grid, Frame(), model, THEME, False, prompt_rows=1, gap=False)
    assert grid.lines()[6][1:-1].strip() == ""


@pytest.mark.parametrize("count", [1, 4, 132])
def test_panes_survive_any_size(count: int) -> None:
    """While the terminal is being resized a pane may be painted at a size its frame was not meant for."""
    model, many = run_model(count), run_model(count, streams=8)
    view, style = PlotView(), doom.PictureStyle(Depth.EIGHT_BIT, 0, None)
    for width, height in ((0, 0), (1, 1), (2, 1), (1, 4), (5, 2), (30, 1), (80, 1), (7, 3), (40, 2), (200, 3)):
        for frame in (Frame(), Frame(True, False), Frame(False, False)):
            grid = Grid(width, height, THEME.text, THEME.background)
            sms.paint_sms(grid, frame, model, THEME, True, 0, True)
            loss.paint_loss(grid, frame, model, THEME, view, True)
            serve.paint_serve(grid, frame, model, THEME, True, prompt_rows=1, gap=True)
            streams.paint_streams(grid, frame, many, THEME, True, prompt_rows=1, gap=True)
            player.paint_player(grid, frame, model, THEME, True, "explore", False, False)
            doom.paint_doom(grid, frame, model, THEME, True, style, "explore")
            for kind in SizeClass:
                status.paint_tiles(grid, model, THEME, kind)
                for origin in (None, (), ("2026-11-30", "every 9th frame")):
                    status.paint_header(grid, model, THEME, kind, status.HeaderState(35.0, True, True, True, origin))
