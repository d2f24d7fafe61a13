"""`ofa-tui report` of a run on the host engine: one page that stands alone, and its plots."""

from __future__ import annotations

import base64
import io
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image
from short_record import OTHER_STEPS, PROMPT, STEPS

from ofa_tui.cli import main
from ofa_tui.record.reader import RecordedRun
from ofa_tui.record.report_sections import TEXT_CHARACTERS

ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "table", "thead", "tbody", "tr",
    "th", "td", "ul", "li", "pre", "b", "small", "details", "summary", "figure", "figcaption", "img", "svg", "polyline",
    "polygon", "text",
}  # fmt: skip


class Page(HTMLParser):
    """Elements with their attributes, and the text of each kind of element."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("meta", "img"):
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    handle_startendtag = handle_starttag

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self._open):
            self.texts[tag][-1] += data

    def attributes(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.elements if name == tag]


def _source(path: Path) -> str:
    """The page; polylines and polygons, which HTML does not know to be empty, are closed."""
    return re.sub(r"<(polyline|polygon)([^>]*)/>", r"<\1\2></\1>", path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(record: Path, other_record: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "made" / "anew"
    assert main(["report", str(record), "-o", str(folder), "--compare", str(other_record)]) == 0
    return folder


@pytest.fixture(scope="module")
def page(folder: Path) -> Page:
    return Page(_source(folder / "report.html"))


def test_the_page_refers_to_nothing_outside_itself(page: Page) -> None:
    assert {tag for tag, _ in page.elements} <= ALLOWED
    for tag, attributes in page.elements:
        for name, value in attributes.items():
            assert name not in ("href", "srcset", "action", "background", "xlink:href") and not name.startswith("on")
            assert "url(" not in value and "javascript:" not in value
            assert name != "src" or (tag == "img" and value.startswith("data:image/png;base64,"))
    (style,) = page.texts["style"]
    assert not re.search(r"url|@import|http|expression", style)
    (policy,) = [meta for meta in page.attributes("meta") if "content-security-policy" in
                 meta.get("http-equiv", "").lower()]
    assert policy["content"].startswith("default-src 'none'")


def test_the_page_tells_what_was_recorded(page: Page, record: Path, other_record: Path) -> None:
    run, other = RecordedRun(record), RecordedRun(other_record)
    assert page.texts["h2"] == [
        "What ran", "Figures", "Partition of the SMs", "Loss", "Throughput", "What the model wrote", "Doom",
        "Telemetry", "Steering", "Environment", "Inputs", "What was measured, and what was not",
    ]  # fmt: skip
    cells = page.texts["td"]
    for each in (run, other):
        for name in ("last_loss", "held_out_loss"):
            assert f"{each.summary[name]:.4f}" in cells
    for known in (run.run["wad"]["sha256"], *(text["text_sha256"] for text in run.run["corpus"]["texts"]),
                  run.run["machine"]["processor"], run.run["started"]):
        assert known in cells
    items = page.texts["li"]
    assert f"{STEPS} training losses, one a step, as the kernel computed them" in items
    assert f"{len(run.sweeps)} held-out losses, 1 of them over every held-out window" in items
    assert any("power" in item for item in items), "what the processor does not tell"
    assert any(f"{OTHER_STEPS} steps in both" in paragraph for paragraph in page.texts["p"])


def test_model_output_and_prompts_are_text(page: Page, record: Path) -> None:
    assert any(PROMPT in written for written in page.texts["pre"])
    assert PROMPT in "".join(page.texts["b"])
    written = "".join(token.text for token in RecordedRun(record).served if token.story == 0)[:TEXT_CHARACTERS]
    shown = page.texts["pre"][0].rstrip("…")
    assert len(shown) == len(written) and len(written) > len(PROMPT)
    assert all(ours == theirs or (ours == "\ufffd" and not theirs.isprintable())
               for ours, theirs in zip(shown, written, strict=True))


def test_pictures_are_the_recorded_frames(page: Page, record: Path) -> None:
    files = sorted((record / "frames").glob("*.png"))
    shown = [base64.b64decode(image["src"].partition(",")[2]) for image in page.attributes("img")]
    assert 2 <= len(shown) <= 12 and shown[0] == files[0].read_bytes() and shown[-1] == files[-1].read_bytes()
    assert page.texts["figcaption"][-1] == f"tic {int(files[-1].stem):,}"


def test_every_plot_is_in_the_page_and_a_file(page: Page, folder: Path, record: Path) -> None:
    titles = [svg["aria-label"] for svg in page.attributes("svg")]
    files = {path.stem for path in folder.glob("*.png")}
    assert {"loss", "roles", "tokens", "served", "frames", "busy", "reading-rss_bytes"} <= files
    assert len(titles) == len(set(titles)) == len(files)
    for path in folder.glob("*.png"):
        with Image.open(io.BytesIO(path.read_bytes())) as picture:
            picture.load()
            assert len(picture.getcolors(1 << 20) or []) > 3
    markers = [polygon for polygon in page.attributes("polygon") if "--held_out" in polygon["style"]]
    assert len(markers) == len(RecordedRun(record).sweeps)


def test_a_run_beside_itself_is_equal(record: Path, tmp_path: Path) -> None:
    assert main(["report", str(record), "-o", str(tmp_path), "--compare", str(record)]) == 0
    said = Page(_source(tmp_path / "report.html")).texts["p"]
    assert any(f"All {STEPS} losses of the steps in both are bit for bit equal." in paragraph for paragraph in said)
    assert "All settings are the same." in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], ["nowhere", "--record"]),
        (["{record}", "--compare", "nowhere"], ["nowhere", "--record"]),
        (["{record}", "-o", "{record}/run.json"], ["run.json", "-o"]),
        (["{record}", "-o", ""], ["empty"]),
    ],
)
def test_bad_input(record: Path, arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", *(argument.format(record=record) for argument in arguments)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("ofa-tui: ") and said.count("\n") == 1 and all(word in said for word in words)
