"""Pages in a headless Chromium: they load, fit a phone and a desk, and respond to a reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import browser
import golden_cases
import pytest
from browser import Page
from golden_cases import REPORTS, words
from thorough import guards

from engine.commands import main

CASES = ("replay_bound", "sweep", "bound", "estimate", "multijoin_harvest", "profile")
WIDTHS = (390, 1280)
LEAST_TEXT = 9.0
"""Pixels of the smallest text."""

pytestmark = [
    guards("engine/report", "tests/commands/test_pages_in_browser.py", "tests/support/browser.py"),
    pytest.mark.skipif(
        browser.found() is None,
        reason="there is no Chromium: python tests/support/browser.py installs one, or name it in "
        "WINNOW_BROWSER",
    ),
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browser.opened() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the page of each case."""
    made = tmp_path_factory.mktemp("pages")
    golden_cases.write_streams(made)
    for case in CASES:
        assert main(words(REPORTS[case], made, made / f"{case}.json")) == 0
    return made


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("case", CASES)
def test_a_page_loads_and_fits(case: str, width: int, page: Page, folder: Path) -> None:
    page.open(folder / f"{case}.html", width)
    assert page.complaints() == []
    assert page.value("document.documentElement.scrollWidth") == width
    assert page.value("document.body.innerText").count("winnow") > 0
    boxes = page.value(
        "[...document.querySelectorAll('svg.plot')].map((own) => own.getBoundingClientRect())"
        ".map((own) => [own.left, own.right, own.height])"
    )
    assert boxes
    for left, right, height in boxes:
        assert left >= 0
        assert right <= width
        assert height > 60
    smallest = page.value(
        "Math.min(...[...document.querySelectorAll('svg.plot')].flatMap((own) => "
        "[...own.querySelectorAll('text')].map((text) => "
        "parseFloat(getComputedStyle(text).fontSize) * own.getBoundingClientRect().width"
        " / own.viewBox.baseVal.width)))"
    )
    assert smallest >= LEAST_TEXT
    assert page.value("parseFloat(getComputedStyle(document.body).fontSize)") >= 14


def test_a_pointer_reads_values_out_and_leaves_them(page: Page, folder: Path) -> None:
    page.open(folder / "replay_bound.html", 1280)
    left, top, wide, high = page.value(
        "(() => { const own = document.querySelector('svg.plot').getBoundingClientRect();"
        " return [own.left, own.top, own.width, own.height]; })()"
    )
    read = "document.querySelector('figure .read').innerText"
    visible = "getComputedStyle(document.querySelector('figure .read')).display"
    assert page.value(visible) == "none"
    page.point(left + 0.5 * wide, top + 0.5 * high)
    assert page.value(visible) == "block"
    first = page.value(read).split("\n")
    assert [own.split(":")[0] for own in first[1:]] == ["found", "lost"]
    page.point(left + 0.8 * wide, top + 0.5 * high)
    assert page.value(read).split("\n")[0] != first[0]
    page.point(left + 0.5 * wide, top - 200)
    assert page.value(visible) == "none"
    assert page.complaints() == []


def test_arrow_keys_read_values_out(page: Page, folder: Path) -> None:
    page.open(folder / "sweep.html", 1280)
    page.value("document.querySelector('svg.plot').focus()")
    heads = []
    for _ in range(2):
        for kind in ("keyDown", "keyUp"):
            page.call("Input.dispatchKeyEvent", type=kind, key="ArrowRight", code="ArrowRight")
        heads.append(page.value("document.querySelector('.reading .read b').textContent"))
    assert heads == ["25 %", "50 %"]


def test_a_legend_hides_and_shows_a_series(page: Page, folder: Path) -> None:
    page.open(folder / "sweep.html", 390)
    state = (
        "[document.querySelector('.legend button').getAttribute('aria-pressed'), "
        "getComputedStyle(document.querySelector('svg.plot g[data-s=\"0\"]')).display]"
    )
    assert page.value(state) == ["true", "inline"]
    left, top = page.value(
        "(() => { const own = document.querySelector('.legend button');"
        " own.scrollIntoView({block: 'center'}); const box = own.getBoundingClientRect();"
        " return [box.left + 5, box.top + 5]; })()"
    )
    page.point(left, top, "click")
    assert page.value(state) == ["false", "none"]
    page.point(left, top, "click")
    assert page.value(state) == ["true", "inline"]


def test_a_heading_sorts_its_table(page: Page, folder: Path) -> None:
    page.open(folder / "replay_bound.html", 1280)
    cells = (
        "[...document.querySelectorAll('table')].find((own) => own.caption && "
        "own.caption.textContent.startsWith('keys')).tBodies[0].rows"
    )
    column = f"[...{cells}].map((row) => row.cells[1].textContent)"
    press = (
        "[...document.querySelectorAll('th button')].find((own) => own.textContent === "
        "'outputs lost').click()"
    )
    shown = page.value(column)
    numbers = sorted(int(own.replace(",", "")) for own in shown)
    page.value(press)
    assert [int(own.replace(",", "")) for own in page.value(column)] == numbers[::-1]
    page.value(press)
    assert [int(own.replace(",", "")) for own in page.value(column)] == numbers


def test_a_page_prints_without_what_only_a_screen_has(page: Page, folder: Path) -> None:
    page.open(folder / "sweep.html", 794)
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert page.value("document.documentElement.scrollWidth") == 794
        after = "getComputedStyle(document.querySelector('th button'), '::after').display"
        assert page.value(after) == "none"
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
    assert len(page.call("Page.printToPDF")["data"]) > 10_000


def test_the_policy_of_a_page_refuses_what_is_not_its_own(
    page: Page, folder: Path, tmp_path: Path
) -> None:
    text = (folder / "bound.html").read_text()
    for more in (
        "<script>window.bad = 1</script>", '<p style="color: red">', '<img src="x.png">',
        '<p id="p"></p><img src="x" onerror="window.bad = 1">',
    ):  # fmt: skip
        (tmp_path / "bad.html").write_text(text.replace("</main>", f"{more}</main>"))
        page.open(tmp_path / "bad.html", 1280)
        assert any("Content Security Policy" in own for own in page.complaints()), more
        assert page.value("window.bad === undefined")


def test_a_page_that_is_too_wide_or_breaks_is_noticed(
    page: Page, folder: Path, tmp_path: Path
) -> None:
    text = (folder / "bound.html").read_text()
    wide = "<main><pre class='num'>" + "x" * 400 + "</pre>"
    (tmp_path / "wide.html").write_text(text.replace("<main>", wide))
    page.open(tmp_path / "wide.html", 390)
    assert page.value("document.documentElement.scrollWidth") > 390
    (tmp_path / "broken.html").write_text("<script>throw new Error('broken')</script>")
    page.open(tmp_path / "broken.html", 390)
    assert any("broken" in own for own in page.complaints())
