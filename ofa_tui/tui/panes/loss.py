"""Pane 3: the loss curve."""

from __future__ import annotations

import numpy as np

from ofa_tui.tui.draw import draw_frame
from ofa_tui.tui.grid import Grid
from ofa_tui.tui.layout import Frame
from ofa_tui.tui.model import RunModel
from ofa_tui.tui.plot import Curve, PlotView, draw_curve
from ofa_tui.tui.theme import Theme


def paint_loss(grid: Grid, frame: Frame, model: RunModel, theme: Theme, view: PlotView, active: bool) -> None:
    subtitle: list[tuple[str, int]] = []
    if model.losses.count:
        subtitle = [("train ", theme.muted), (f"{model.losses.values[-1]:.3f}", theme.train_text)]
    if model.sweeps:
        subtitle += [("  val ", theme.muted), (f"{model.sweeps[-1].loss:.3f}", theme.held_out)]
    title = [("3 loss", theme.train_text)]
    if not view.log:
        title.append((" · linear", theme.muted))
    if view.span:
        title.append((" · window" if view.end else " · last steps", theme.muted))
    inner = draw_frame(grid, frame, theme, title, subtitle, active=active)
    curve = Curve(
        model.losses.steps,
        model.losses.values,
        np.array([sweep.step for sweep in model.sweeps], float),
        np.array([sweep.loss for sweep in model.sweeps], float),
    )
    draw_curve(grid, inner, curve, view, theme)
