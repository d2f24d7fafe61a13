"""A recorded run as one web page that needs no network, with its plots as PNG files beside it."""

from __future__ import annotations

from pathlib import Path

from ofa_tui.record.files import make_folder, write_whole
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report_html import Html, element, joined, page
from ofa_tui.record.report_plots import plots_of, png_of
from ofa_tui.record.report_sections import sections

PAGE = "report.html"
ELSEWHERE = "choose another folder with -o"


def write_report(run: RecordedRun, folder: Path, reference: RecordedRun | None = None) -> list[Path]:
    """Writes PAGE and a PNG for each plot into `folder`, which is made; returns the files, the page first.

    `reference` is a run whose losses are drawn under this one's. Raises OfaError where a file cannot be written.
    """
    make_folder(folder, ELSEWHERE)
    plots = plots_of(run, reference)
    title = f"{run.info.preset or 'a run'}, {run.folder.resolve().name}"
    body: list[Html] = [element("h1", title)]
    for section in sections(run, plots, reference):
        body += [element("h2", section.heading), section.content]
    files = {folder / PAGE: page(title, joined(body))}
    files |= {folder / f"{plot.name}.png": png_of(plot) for plot in plots}
    for path, data in files.items():
        write_whole(path, data, ELSEWHERE)
    return list(files)
