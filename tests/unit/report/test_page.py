"""A report as a page: what it holds, the same for the same report, small, and safe."""

from __future__ import annotations

import io
import json
import math
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pages import checked
from rich.console import Console

import winnow
from engine.jobs.sweep.rows import Row, table_of
from engine.jobs.sweep.run import SweepResult
from engine.jobs.sweep.shown import sweep_shown
from engine.policies import POLICIES
from engine.report.blocks import Grid, blocks_of
from engine.report.charts import Bars, Lines, Series
from engine.report.envelope import Report
from engine.report.html.axes import numbers, times
from engine.report.html.page import fragment_of, page_of, save_page
from engine.report.html.page import table_of as html_table
from engine.report.html.svg import draw
from engine.report.joins import replay_shown
from engine.report.shown import Request, Shown
from engine.report.tables import CommandLine, Sketch
from engine.report.tables import table_of as printed_table
from engine.report.texts import visible
from engine.runtime.errors import OutputError

HOSTILE = (
    "<script>bad()</script>", "</script><script>bad()</script>", "<img src=x onerror=bad()>",
    "' onmouseover='bad()", '" onmouseover="bad()', "<!-- ", "]]>", "&lt;b&gt;", "</style>",
    "[red]markup[/red]", "[/nothing]", ":smile:", "\u2028\u0000\x1b[31m", "a\nb", "{x}", "%s",
    "javascript:bad()", "\ufffe\x85", "\ud800",
)  # fmt: skip


def replayed(keys: tuple[str, ...], column: str = "key") -> winnow.Result:
    """Return a replay in which each key loses something."""
    many = [own for own in keys for _ in range(6)]
    at = list(range(len(many)))
    left = pa.table({"t": at, column: many})
    right = pa.table({"t": at, column: many})
    return winnow.replay(left, right, on=column, time="t", window=9, memory=2, policy="rand")


def shown_of(printed: Any, drawn: Any = tuple) -> Shown:
    return Shown("replay", {}, printed, drawn)


def test_an_explanation_has_a_line_for_each_fact_and_names_streams_and_papers(
    tmp_path: Path,
) -> None:
    tables = {name: pa.table({"t": range(9), "k": [1, 2, 3] * 3}) for name in ("asks", "bids")}
    found = winnow.explain(tables, predicate="equi:k", time="t", window=3)
    page = found.html(tmp_path / "page.html").read_text()
    lines = [own.strip() for own in re.findall("<p>(.*?)</p>", page)]
    assert "P3&#x27;s heuristic: asks bids at 7.59, rank 1" in lines
    assert any(own.startswith("2 considered, from asks bids") for own in lines)
    assert "bids asks" in page
    assert "<td>1 2</td>" not in page
    assert "<dt>P3</dt><dd>Golab" in page
    assert "<dt>P4</dt><dd>Gedik" in page
    assert not any(own.startswith("P3: ") for own in lines)
    told = " ".join(str(found).split())
    assert "P4's low selectivity first" in told
    assert "P4: Gedik, Wu, Yu, Liu: GrubJoin" in told
    assert "P3: Golab" in told
    assert "P4: Gedik" in found._repr_html_()


def test_a_page_is_the_same_for_the_same_report(tmp_path: Path) -> None:
    found = replayed(("a", "b"))
    first, second = found.html(tmp_path / "one.html"), found.html(str(tmp_path / "two.html"))
    assert first.read_bytes() == second.read_bytes()
    assert re.search(r"20\d\d-\d\d-\d\d", first.read_text()) is None  # nor the time of writing
    checked(first.read_text())


def test_a_page_has_the_answer_what_was_asked_and_the_words(tmp_path: Path) -> None:
    found = replayed(("a", "b"))
    page = checked(found.html(tmp_path / "page.html").read_text())
    titles = page.texts["h2"]
    assert titles == ["The answer", "Plots", "In detail", "What was asked", "Glossary"]
    recall = f"{100 * found.report.recall:.2f} %"
    assert page.texts["dd"][0] == recall
    asked = "winnow.replay(left, right, on='key', time='t', window=9, memory=2, policy='rand')"
    assert asked in page.texts["span"]
    assert {"recall", "tuple", "window", "policy"} <= set(page.texts["dt"])
    assert "memory" in " ".join(page.texts["h3"]).lower()


def test_names_of_lines_that_are_near_stand_apart() -> None:
    plot = Lines("t", "x", "y", [0, 9], [Series("a", [1.0, 100.0])], marks=[("m", 50), ("n", 51)])
    found = re.findall(r'<text x="(\d+)" y="[\d.]+" text-anchor="(\w+)">[mn]<', draw(plot).svg)
    assert found == [("466", "end"), ("56", "start")]


@pytest.mark.parametrize(
    ("split", "memory", "limits"),
    [
        ("even", 4, {"left and right": 2}), ("pooled", 4, {"both": 4}),
        ("even", 5, {"left": 3, "right": 2}),
    ],
)  # fmt: skip
def test_needed_memory_is_drawn_over_time(split: str, memory: int, limits: dict[str, int]) -> None:
    rows = pa.table({"t": [0, 0, 1, 3, 9], "k": [1, 1, 2, 1, 2]})
    options: dict[str, Any] = {"memory": memory, "policy": "prob", "split": split}
    found = winnow.replay(rows, rows.slice(2), on="k", time="t", window=2, **options)
    charts = replay_shown(Report(found.report)).drawn()
    (plot,) = (own for own in charts if own.title.startswith("Memory that the exact join needs"))
    assert isinstance(plot, Lines)
    assert dict(plot.marks) == {f"{name}: allowed": own for name, own in limits.items()}
    held = {own.name: own.values for own in plot.series}
    assert (plot.xs, held["left"]) == ([*range(11)], [2, 3, 3, 2, 1, 1, 0, 0, 0, 1])
    assert held["right"] == [0, 1, 1, 2, 1, 1, 0, 0, 0, 1]
    assert held.get("both", [2, 4, 4, 4, 2, 2, 0, 0, 0, 2]) == [2, 4, 4, 4, 2, 2, 0, 0, 0, 2]
    assert ("both" in held) == (split == "pooled")


def test_a_page_says_that_outputs_need_a_new_place(tmp_path: Path) -> None:
    rows = pa.table({"t": [0, 1], "k": [1, 1]})
    for out, said in ((tmp_path / "out", " (out must be given a place that does not exist)"),
                      (None, "")):  # fmt: skip
        found = winnow.replay(rows, rows, on="k", time="t", window=2, out=out)
        page = found.html(tmp_path / "page.html").read_text()
        assert f"<p>This makes it again{said}:</p>" in page


def test_what_comes_from_the_data_is_never_markup(tmp_path: Path) -> None:
    plain = tuple(f"key {i}" for i in range(len(HOSTILE) - 1))
    keys = HOSTILE[:-1]  # no lone surrogate is text of Arrow
    mild = checked(replayed(plain).html(tmp_path / "mild.html").read_text())
    found = replayed(keys, "<b>k</b>")
    text = found.html(tmp_path / "hostile.html").read_text()
    page = checked(text)
    assert page.tags == mild.tags
    assert "on='<b>k</b>'" in "".join(page.texts["span"])
    shown = [own["key"] for own in found.report.lost.top_keys]
    assert len(shown) == 10
    for key in shown:
        assert visible(key) in page.texts["td"]
    for part in (text, found._repr_html_()):
        assert "\u2028\\x00\\x1b[31m" in part
        assert re.search(r"[^\n\t -~\u00a0-\ud7ff]", part) is None
    for part in (str(found), found._repr_html_()):
        assert "bad()" in part
    assert "<script" not in found._repr_html_()
    assert "<img" not in found._repr_html_()


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_names_are_text_wherever_they_stand(name: str, tmp_path: Path) -> None:
    def printed(console: Console) -> None:
        console.print(printed_table((name, "n"), [(name, "1"), ("b", "2")], name))
        console.print(name)
        console.print(CommandLine(name))

    charts = [
        Lines(name, name, name, [1.0, 2.0], [Series(name, [1.0, None])], [name, name],
              marks=[(name, 1.0)]),
        Bars(name, name, [name, ""], [Series(name, [1.0, 2.0])], marks=[Series(name, [2.0, 1.0])]),
    ]  # fmt: skip
    request = Request(name, ((name, name, name),))
    shown = Shown("replay", {}, printed, lambda: charts, request)
    mild = Shown(
        "replay", {}, printed_mild, lambda: [_named(own) for own in charts],
        Request("x", (("x", "x", "x"),)),
    )  # fmt: skip
    save_page(shown, tmp_path / "page.html")
    page = checked((tmp_path / "page.html").read_text())
    data = json.loads(page.texts["script"][0])
    assert {own["labels"][0] for own in data} == {visible(name)}
    assert page.tags == checked(page_of(mild)).tags
    assert fragment_of(printed).count("<td>") == 2


def printed_mild(console: Console) -> None:
    console.print(printed_table(("x", "n"), [("x", "1"), ("b", "2")], "x"))
    console.print("x")
    console.print(CommandLine("x"))


def _named(chart: Lines | Bars) -> Lines | Bars:
    """Return a plot with harmless names."""
    series = [own._replace(name="x") for own in chart.series]
    if isinstance(chart, Bars):
        marks = [own._replace(name="x") for own in chart.marks]
        return chart._replace(title="x", x="x", names=["x", ""], series=series, marks=marks)
    return chart._replace(title="x", x="x", y="x", labels=["x", "x"], series=series,
                          marks=[("x", 1.0)])  # fmt: skip


def test_tables_are_the_terminals_own() -> None:
    found = replayed(("a", "b", "c"))
    console = Console(file=io.StringIO(), width=500, markup=False)
    shown = replay_shown(Report(dict(found.report)))
    shown.printed(console)
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    grids = [own for own in blocks_of(shown.printed) if isinstance(own, Grid)]
    assert [own.title for own in grids] == ["policy rand", "", "keys that lost most"]
    for grid in grids:
        for row in (grid.heads, *(row for section in grid.sections for row in section)):
            line = r"\s*[│┃]\s*".join(map(re.escape, (own.strip() for own in row)))
            assert re.search(line, printed), row


def test_what_is_drawn_with_characters_is_left_to_plots() -> None:
    def printed(console: Console) -> None:
        console.print(Sketch("▁▂"))
        console.print("line")

    assert blocks_of(printed) == ["line"]


def test_sections_of_a_table_stay_apart() -> None:
    def printed(console: Console) -> None:
        table = printed_table(("a", "b"), [("x", "1")], "title")
        table.add_section()
        table.add_row("all", "2")
        console.print(table)

    (grid,) = blocks_of(printed)
    assert grid == Grid(
        "title", ["a", "b"], [False, True], [[["x", "1"]], [["all", "2"]]]
    )  # fmt: skip
    assert checked(page_of(shown_of(printed))).tags["tbody"] == 2


def test_many_rows_are_cut_and_that_is_said() -> None:
    def printed(console: Console) -> None:
        console.print(printed_table(("key", "n"), ((f"k{i}" * 9, f"{i:,}") for i in range(20_000))))

    text = page_of(shown_of(printed))
    page = checked(text)
    cut = next(own for own in page.texts["p"] if own.startswith("The first"))
    assert cut == f"The first {page.tags['tr'] - 1:,} of 20,000 rows."


def test_many_tables_and_lines_are_cut_and_that_is_said() -> None:
    def printed(console: Console) -> None:
        for number in range(3_000):
            console.print(printed_table(("key", "n"), [("k" * 50, f"{number}")]))
            console.print("line " * 20)

    page = checked(page_of(shown_of(printed)))
    said = page.texts["p"][-1]
    assert said.endswith(" more tables and lines would make this file too large.")
    left_out = int(said.split()[0].replace(",", ""))
    assert page.tags["table"] + len(page.texts["p"]) - 2 + left_out == 6_000


def rows_of(cells: int) -> list[Row]:
    """Return a sweep of `cells` settings of each policy."""
    first = Row(
        0, "prob", "{}", "10%", "even", 5, 5, 10, 10, 0, "memory", 1, "before_admission", 50, 70.0,
        100, 200.0, 0.5, 0.35, None, None, None, None, None, None, 5, 5, 10, 0.25, 40.0,
    )  # fmt: skip
    found = []
    for policy in POLICIES:
        for i in range(cells):
            part = (1 + i % 40) / 41
            window = 10 * (1 + i // 40)
            found.append(
                first._replace(
                    cell=len(found),
                    policy=policy,
                    memory=f"{1 + i % 40}%",
                    window_left=window,
                    window_right=window,
                    recall=part,
                    importance_recall=math.sqrt(part),
                    importance=71.23,
                )
            )
    return found


def swept(rows: list[Row]) -> SweepResult:
    windows = sorted({row.window_left for row in rows})
    grid = {"cells": len(rows), "windows": windows, "tick": "tick", "left_out": []}
    report = {
        "grid": grid, "advice": [], "seconds": {"replay": 1.0}, "out": None,
        "device": {"used": "cpu", "reason": "no other"},
    }  # fmt: skip
    return SweepResult(table_of(rows), [], report)


def test_a_sweep_of_many_cells_is_a_small_page() -> None:
    page = checked(page_of(sweep_shown(swept(rows_of(40 * 12)))))
    left_out = next(own for own in page.texts["p"] if "too large" in own)
    count = int(left_out.split()[0])
    assert page.tags["figure"] + count == 4 * 12
    assert page.tags["figure"] > 12  # those of the first measure are all there


def test_a_sweep_draws_each_policy_alike_in_every_plot() -> None:
    shown = sweep_shown(swept(rows_of(80)))
    assert [own.name for own in shown.answers] == [
        "Best in 1%, window 10", "Best in 40%, window 10",
    ]  # fmt: skip
    assert f"{100 * math.sqrt(40 / 41):.2f} %" in shown.answers[1].note
    charts = shown.drawn()
    names = [[own.name for own in chart.series] for chart in charts]
    assert all(own == names[0] for own in names)
    assert set(names[0]) == set(POLICIES)
    best = charts[0]
    assert isinstance(best, Lines)
    assert best.title == "Importance recall, window 10 ticks"
    assert best.series[0].values[-1] == pytest.approx(100 * math.sqrt(40 / 41))
    assert [own.shown for own in best.series] == [i < 6 for i in range(len(POLICIES))]


def test_a_long_series_is_drawn_from_means_that_keep_the_sum() -> None:
    values = [float((7 * i) % 1000) for i in range(80_000)]
    plot = Lines("t", "x", "y", list(range(80_001)), [Series("s", values)],
                 [str(i) for i in range(80_000)], steps=True)  # fmt: skip
    thin = plot.thinned()
    assert thin.points == len(thin.labels) == 400
    assert sum(own or 0.0 for own in thin.series[0].values) * 200 == pytest.approx(sum(values))
    assert thin.labels[1] == "200 and 199 more, their mean"
    assert (thin.xs[0], thin.xs[-1]) == (0, 80_000)
    checked(page_of(shown_of(lambda _: None, lambda: [plot])))


def test_a_long_line_keeps_its_ends_and_its_band() -> None:
    n = 9_999
    band = Series("s", [1.0] * n, [0.5] * n, [2.0] * n)
    thin = Lines("t", "x", "y", range(n), [band]).thinned()
    assert (thin.xs[0], thin.xs[-1]) == (0, n - 1)
    assert len(thin.xs) == len(thin.series[0].low) == len(thin.series[0].high) <= 401


def places(svg: str) -> list[float]:
    """Return all places of lines and areas in an SVG."""
    paths = re.findall(r'class="(?:line|fill|band)" d="([^"]*)"', svg)
    return [float(own) for path in paths for own in re.findall(r"-?\d+(?:\.\d+)?", path)]


@pytest.mark.parametrize(
    "chart",
    [
        Lines("t", "x", "y", [0, 1], [Series("a", [1.0, -5.0], [0.0, -6.0], [2.0] * 2)]),
        Lines("t", "x", "y", [0, 1, 2], [Series("a", [1.0, None]), Series("b", [2.0, 1.0])],
              steps=True, stacked=True),
        Lines("t", "x", "y", [1, 10, 5_000], [Series("a", [9.0, 0.0, 1e6])], log_x=True,
              log_y=True),
        Lines("t", "x", "y", [5, 5], [Series("a", [0.0])], steps=True),
        Lines("t", "x", "y", [], []),
        Lines("t", "x", "y", [0, 86_400], [Series("a", [4.0])], steps=True, clock=("s", None)),
        Lines("t", "x", "y", [3], [Series("a", [50.0])], percent=True, marks=[("m", 90.0)]),
        Bars("t", "x", ["a", "b"], [Series("s", [1.0, None]), Series("r", [2.0, 0.0])]),
        Bars("t", "x", ["a"], [Series("s", [0.0])]),
        Bars("t", "x", [], []),
    ],
)  # fmt: skip
def test_a_plot_stays_within_its_frame(chart: Lines | Bars) -> None:
    drawing = draw(chart)
    assert all(0 <= own <= 480 for own in places(drawing.svg))
    assert "nan" not in drawing.svg
    assert "inf" not in drawing.svg
    checked(page_of(shown_of(lambda _: None, lambda: [chart])))


def test_a_band_is_drawn_where_there_is_one_and_read_out() -> None:
    series = Series("s", [2.0, 2.0, 4.0], [1.0, None, 3.0], [3.0, None, 8.0])
    drawing = draw(Lines("t", "x", "y", [0, 1, 2, 3], [series], steps=True))
    (band,) = re.findall(r'class="band" d="([^"]*)"', drawing.svg)
    parts = [[float(y) for y in re.findall(r",(-?[\d.]+)", own)] for own in band.split("Z")[:-1]]
    first, last = (max(own) - min(own) for own in parts)
    assert last / first == pytest.approx(2.5, rel=0.01)  # 3 to 8 beside 1 to 3
    assert drawing.data["series"][0]["low"] == [1.0, None, 3.0]


def test_stacked_steps_stand_on_each_other() -> None:
    chart = Lines("t", "x", "y", [0, 1], [Series("a", [3.0]), Series("b", [1.0])], steps=True,
                  stacked=True)  # fmt: skip
    fills = re.findall(r'class="fill" d="([^"]*)"', draw(chart).svg)
    tops = [float(re.findall(r",(-?[\d.]+)", path)[0]) for path in fills]
    bottoms = [float(re.findall(r",(-?[\d.]+)", path)[-1]) for path in fills]
    assert bottoms[1] == tops[0] < bottoms[0]
    assert (bottoms[0] - tops[0]) / (bottoms[1] - tops[1]) == pytest.approx(3.0, rel=0.01)


@pytest.mark.parametrize(
    ("low", "high", "unit", "zone", "first", "label"),
    [
        (0, 60, "s", None, "00:00:00", "at on 1970-01-01"),
        (0, 5 * 86_400 * 10**6, "us", None, "1970-01-01", "at"),
        (0, 400, "day", None, "1970-01-01", "at"),
        (1_714_546_800, 1_714_633_200, "s", "Europe/Berlin", "12:00",
         "at from 2024-05-01 to 2024-05-02 (Europe/Berlin)"),
        (0, 900, "ms", None, "00:00:00", "at on 1970-01-01"),
        (0, 5, "ns", None, "00:00:00", "at on 1970-01-01"),
    ],
)  # fmt: skip
def test_an_axis_of_times_has_a_calendars_ticks(
    low: int, high: int, unit: str, zone: str | None, first: str, label: str
) -> None:
    axis = times(low, high, "at", unit, zone)
    assert (axis.ticks[0][1], axis.label) == (first, label)
    assert 2 <= len(axis.ticks) <= 7
    assert len({text for _, text in axis.ticks}) == len(axis.ticks)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (25, 44), (1, 1e9), (0, 1e-9), (-3, 8)])
def test_an_axis_of_numbers_has_some_ticks_within(low: float, high: float, log: bool) -> None:
    axis = numbers(max(low, 1e-3) if log else low, max(high, 2e-3) if log else high, "", log=log)
    assert 2 <= len(axis.ticks) <= 8
    wide = 1e-9 * (axis.high - axis.low)
    assert all(axis.low - wide <= own <= axis.high + wide for own, _ in axis.ticks)


def test_a_page_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    found = replayed(("a", "b"))
    with pytest.raises(OutputError, match=r"HTML report .* is a folder: name a file"):
        found.html(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_first_rows_of_a_notebook_are_text() -> None:
    shown = html_table(["<b>"], [["<i>"], [None]])
    assert "&lt;b&gt;" in shown
    assert "&lt;i&gt;" in shown
    assert "<button" not in shown


def test_a_result_keeps_its_request_beside_outputs(tmp_path: Path) -> None:
    table = pa.table({"t": [0, 1], "k": [1, 1]})
    winnow.replay(table, table, on="k", time="t", window=1, out=tmp_path / "out")
    kept = (tmp_path / "out" / "_report.json").read_text()
    assert "winnow.replay(left, right, on='k', time='t', window=1, out=" in kept


@pytest.mark.parametrize(("split", "cards"), [("even", 1), ("pooled", 0)])
def test_what_any_split_allows_is_told_once(tmp_path: Path, split: str, cards: int) -> None:
    times = range(24), range(0, 24, 4)
    streams = [pa.table({"t": list(at), "k": [own % 3 for own in at]}) for at in times]
    options = {"on": "k", "time": "t", "window": 9, "memory": 4, "policy": "prob", "bound": True}
    found = winnow.replay(*streams, split=split, **options)
    text = found.html(tmp_path / "page.html").read_text()
    assert text.count("Of the best possible") == 1
    assert text.count("Of the best of any split") == cards
    printed = str(found)
    assert printed.count("best possible") == 1
    assert printed.count("best of any split") == printed.count("share of it") - 1 == cards
