"""Plots of reports as figures of matplotlib: what is drawn is what the report holds."""

from __future__ import annotations

import datetime as dt
import os
import resource
import threading
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from engine.report.charts import Bars, Lines, Series, losses_by_key, losses_over_time
from engine.report.figure_files import FORMATS, save_figure
from engine.report.figures import figure_of
from engine.runtime.errors import OutputError

STEPS = Lines(
    "t", "x", "y", [0, 10, 20, 40],
    [Series("found", [3.0, None, 1.0]), Series("lost", [1.0, 2.0, 0.0])], steps=True,
)  # fmt: skip


def test_stacked_steps_stand_on_each_other() -> None:
    [axis] = figure_of([STEPS._replace(stacked=True)]).axes
    found, lost = (own.get_paths()[0].vertices for own in axis.collections)
    assert found[:, 1].max() == 3.0
    assert lost[:, 1].max() == 4.0
    heights = {tuple(own) for own in np.round(lost, 9).tolist()}
    assert {(0.0, 4.0), (10.0, 2.0), (20.0, 1.0), (40.0, 1.0)} <= heights
    assert [own.get_text() for own in axis.get_legend().get_texts()] == ["found", "lost"]


def test_steps_have_gaps_where_there_is_no_value_and_a_band_around_them() -> None:
    one = Series("a", [3.0, None, 1.0], [2.0, None, 0.5], [4.0, None, 1.5])
    [axis] = figure_of([STEPS._replace(series=[one])]).axes
    [steps] = axis.patches
    values, edges, _ = steps.get_data()
    np.testing.assert_array_equal(values, [3.0, np.nan, 1.0])
    assert list(edges) == [0, 10, 20, 40]
    [band] = axis.collections
    tops = {tuple(own) for path in band.get_paths() for own in path.vertices.tolist()}
    assert {(0.0, 4.0), (0.0, 2.0), (20.0, 1.5), (20.0, 0.5)} <= tops


@pytest.mark.parametrize(
    ("unit", "zone", "ticks", "first"),
    [
        ("s", "Asia/Tokyo", 86_400, dt.datetime(1970, 1, 2, 9)),  # noqa: DTZ001 - as its clocks say
        ("us", None, 86_400 * 10**6, dt.datetime(1970, 1, 2)),  # noqa: DTZ001
        ("day", None, 1, dt.datetime(1970, 1, 2)),  # noqa: DTZ001
    ],
)
def test_times_are_those_of_the_clock(
    unit: str, zone: str | None, ticks: int, first: dt.datetime
) -> None:
    from matplotlib.dates import num2date  # noqa: PLC0415 - late, as in the package

    chart = Lines("t", "time", "y", [ticks, 2 * ticks], [Series("a", [1.0, 2.0])],
                  clock=(unit, zone))  # fmt: skip
    [axis] = figure_of([chart]).axes
    [line] = axis.lines
    drawn = axis.xaxis.convert_units(line.get_xdata(orig=True))
    assert num2date(drawn[0]).replace(tzinfo=None) == first
    assert axis.get_xlabel() == ("time" if zone is None else f"time ({zone})")


def test_lines_leave_out_what_is_hidden_or_missing_and_mark_values() -> None:
    chart = Lines("t", "x", "y", [1, 10, 100], [
        Series("a", [1.0, None, 3.0]), Series("b", [9.0, 9.0, 9.0], shown=False),
    ], log_x=True, percent=True, marks=[("asked", 2.0)])  # fmt: skip
    [axis] = figure_of([chart]).axes
    line, mark = axis.lines
    assert line.get_xydata().tolist() == [[1, 1], [100, 3]]
    assert mark.get_ydata() == [2.0, 2.0]
    assert (axis.get_xscale(), axis.get_ylim()) == ("log", (0.0, 103.0))


@pytest.mark.parametrize("steps", [False, True])
def test_lines_of_zeros_stand_above_the_axis(steps: bool) -> None:
    edges = [0, 1, 2] if steps else [0, 1]
    chart = Lines("t", "x", "y", edges, [Series("a", [0.0, 0.0])], steps=steps)
    [axis] = figure_of([chart]).axes
    assert axis.get_ylim() == (-0.05, 1.0)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 2.0], ["0", "1", "2"]),
        ([0.0, 0.75], ["0", "0.2", "0.4", "0.6"]),
        ([0.0, 9_000_000.0], ["0", "2,000,000", "4,000,000", "6,000,000", "8,000,000"]),
        ([0.0, 2.1e11], ["0", "50 billion", "100 billion", "150 billion", "200 billion"]),
        ([0.0, 3e16], ["0", "1e+16", "2e+16", "3e+16"]),
    ],
)
@pytest.mark.parametrize("bars", [False, True])
def test_amounts_are_short_and_whole_where_all_are(
    values: list[float], texts: list[str], bars: bool
) -> None:
    series = [Series("x", values)]
    chart = Bars("t", "n", ["a", "b"], series) if bars else Lines("t", "x", "y", [0, 1], series)
    [axis] = figure_of([chart]).axes
    own = axis.xaxis if bars else axis.yaxis
    low, high = own.get_view_interval()
    shown = [each for each in own.get_majorticklocs() if low <= each <= high]
    found = own.get_major_formatter().format_ticks(shown)
    assert {*texts} <= {*found}
    if values == [0.0, 2.0]:  # nothing between
        assert found == texts


@pytest.mark.parametrize("last", [99, 1_326_000_000, 1_326_000_000_000_000])
@pytest.mark.parametrize("bars", [False, True])
def test_numbers_below_a_plot_do_not_touch(last: int, bars: bool) -> None:
    if bars:
        figure = figure_of([Bars("t", "n", ["a", "b"], [Series("x", [1.0, float(last)])])])
    else:
        figure = figure_of([Lines("t", "x", "y", [last - 40_000_000, last], [
            Series("a", [1.0, 2.0]),
        ])])  # fmt: skip
    figure.draw_without_rendering()
    shown = [own.get_window_extent() for own in figure.axes[0].get_xticklabels() if own.get_text()]
    places = sorted((own.x0, own.x1) for own in shown)
    assert len(places) > 2
    assert all(before[1] < after[0] for before, after in pairwise(places))


@pytest.mark.parametrize("year", [-7000, 20, 9990, 166_244])
def test_times_without_a_date_are_drawn_as_numbers(year: int) -> None:
    second = (year - 1970) * 31_556_952
    chart = Lines("t", "time", "y", [second, second + 9], [Series("a", [1.0, 2.0])],
                  clock=("s", None))  # fmt: skip
    figure = figure_of([chart])
    figure.draw_without_rendering()
    assert figure.axes[0].get_xlabel() == "time (s since 1970)"


@pytest.mark.parametrize("stacked", [False, True])
def test_bars(stacked: bool) -> None:
    chart = Bars("t", "n", ["a", "b"], [Series("x", [1.0, 2.0]), Series("y", [3.0, None])],
                 stacked=stacked, marks=[Series("most", [5.0, None])])  # fmt: skip
    [axis] = figure_of([chart]).axes
    ends = [own.get_x() + own.get_width() for own in axis.patches]
    assert ends == ([1.0, 2.0, 4.0, 2.0] if stacked else [1.0, 2.0, 3.0, 0.0])
    assert [own.get_text() for own in axis.get_yticklabels()] == ["a", "b"]
    [mark] = axis.lines
    np.testing.assert_array_equal(mark.get_xdata(), [5.0, np.nan])


def test_marks_of_one_name_are_one_entry() -> None:
    ends = [Series("ends of the interval", [None, own]) for own in (1.0, 3.0)]
    [axis] = figure_of([Bars("t", "n", ["exact", "estimate"], [ends[0]._replace(name="n")],
                             marks=ends)]).axes  # fmt: skip
    named = [own.get_text() for own in axis.get_legend().get_texts()]
    assert sorted(named) == ["ends of the interval", "n"]
    assert len(axis.lines) == 2


@pytest.mark.parametrize("outputs", [0, 3])
def test_losses_of_no_outputs_are_not_drawn(outputs: int) -> None:
    kinds = [f"{which}_{own}" for which in ("exact", "lost") for own in ("outputs", "importance")]
    span = {"from": 0, "to": 9} | dict.fromkeys(kinds, outputs)
    exact = {"outputs": outputs, "importance": float(outputs)}
    content = {"exact": exact, "lost": {"by_time": [span]}, "window": {"tick": "tick"}}
    assert len(losses_over_time(content)) == (outputs > 0)


@pytest.mark.parametrize(("importance", "measure"), [(0.0, "outputs"), (9.0, "importance")])
def test_keys_that_lost_no_importance_are_drawn_by_outputs(importance: float, measure: str) -> None:
    lost = {"exact_outputs": 5, "lost_outputs": 4, "exact_importance": importance}
    key = {"key": ["Texas", 3], "lost_importance": importance, **lost}
    content = {"exact": {"outputs": 9, "importance": 80.0}, "lost": {"top_keys": [key]}}
    [bars] = losses_by_key(content)
    assert isinstance(bars, Bars)
    assert bars.title == f"Keys that lost most: {measure}"
    assert list(bars.names) == ["Texas, 3"]
    assert bars.series[1].values == [importance or 4]


def test_a_report_without_plots_says_so() -> None:
    figure = figure_of([])
    assert not figure.axes
    assert "nothing to show" in figure.texts[0].get_text()


NAMES = (r"$\foo{$", "$50_$60", "US$x_$", r"\$", "$")


@pytest.mark.parametrize("name", NAMES)
def test_dollars_are_no_mathematics(tmp_path: Path, name: str) -> None:
    one = [Series(name, [1.0, 2.0])]
    bars = Bars(name, name, [name, "b"], [*one, *one], marks=one)
    lines = Lines(name, name, name, [1, 2], one, marks=[(name, 1.5)])
    figure = figure_of([bars, lines._replace(log_x=True), lines._replace(steps=True, xs=[1, 2, 3])])
    save_figure(figure, tmp_path / "plot.svg")
    written = (tmp_path / "plot.svg").read_text()
    assert written.count(f"<!-- {name} -->") == 16


@pytest.mark.parametrize(
    ("name", "written"),
    [("\x00\x1b[1m", r"\x00\x1b[1m"), ("\ufffe\ud800", r"\ufffe\ud800"), ("a\nb\t", r"a\nb\t"),
     ("\u4e2d", "\u4e2d")],
    ids=ascii,
)  # fmt: skip
def test_characters_without_a_shape_are_escapes(tmp_path: Path, name: str, written: str) -> None:
    figure = figure_of([Bars(name, name, [name], [Series(name, [1.0]), Series("b", [2.0])])])
    for suffix in (".svg", ".png"):  # without warnings of what a font lacks
        save_figure(figure, tmp_path / f"plot{suffix}")
    ET.parse(tmp_path / "plot.svg")  # noqa: S314 - our own file
    [axis] = figure.axes
    assert axis.get_yticklabels()[0].get_text() == axis.get_xlabel() == written
    assert axis.get_legend().get_texts()[0].get_text() == written


@pytest.mark.parametrize("name", ["https://example.org/" + "item/" * 100, "W" * 500, "x y " * 200])
def test_long_names_leave_room_for_the_plot(tmp_path: Path, name: str) -> None:
    one = [Series(name, [1.0, 2.0])]
    bars = Bars(name, name, [f"{name}1", f"{name}2"], [Series("found", [1.0, 2.0])])
    figure = figure_of([bars, Lines(name, name, name, [1, 2], one, marks=[(name, 1.5)])])
    save_figure(figure, tmp_path / "plot.png")
    assert min(axis.get_position().width for axis in figure.axes) > 0.03
    first, second = (own.get_text() for own in figure.axes[0].get_yticklabels())
    assert len(first) <= 36
    assert (first[0], first[-1], second[-1]) == (name[0], "1", "2")


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_leaves_no_plot_or_the_one_before(tmp_path: Path, suffix: str) -> None:
    figure, old, new = figure_of([]), tmp_path / f"old{suffix}", tmp_path / f"new{suffix}"
    old.write_bytes(b"before")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        for path in (old, new):
            with pytest.raises(OutputError, match=f"plot {path} cannot be written"):
                save_figure(figure, path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [own.read_bytes() for own in tmp_path.iterdir()] == [b"before"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_link_to_a_plot_stays_one_and_a_pipe_gets_the_plot(tmp_path: Path, suffix: str) -> None:
    pipe, link, plot = (tmp_path / f"{own}{suffix}" for own in ("pipe", "link", "plot"))
    plot.touch()
    link.symlink_to(plot)
    save_figure(figure_of([]), link)
    assert link.is_symlink()
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    save_figure(figure_of([]), pipe)
    reader.join(10)
    assert got[0].startswith(FORMATS[suffix])
    assert plot.read_bytes().startswith(FORMATS[suffix])
    assert pipe.is_fifo()


@pytest.mark.parametrize("suffix", FORMATS)
def test_an_equal_figure_has_equal_bytes(tmp_path: Path, suffix: str) -> None:
    first, second = (tmp_path / f"{own}{suffix}" for own in "ab")
    for path in (first, second):
        save_figure(figure_of([STEPS._replace(stacked=True)]), path)
    assert first.read_bytes() == second.read_bytes()
