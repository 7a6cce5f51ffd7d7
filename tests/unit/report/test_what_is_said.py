"""Sentences and figures of reports: what they say is true, and needs nothing beside it."""

from __future__ import annotations

import datetime as dt
import io
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

import winnow
from engine.report.answers import answers_of
from engine.report.charts import Bars, memory
from engine.report.join_tables import _unmet
from engine.report.losses import in_a_line
from engine.report.profile_table import _print_advice, _print_models
from engine.report.tables import table_of


def test_an_estimate_that_reads_files_again_says_so() -> None:
    exact = {"bytes": 1000, "row_groups": 2}
    content = {"confidence": 0.95, "aggregates": [], "exact": exact, "read": {"share": 1.5}}
    [read] = answers_of("estimate", content)
    assert read == ("Read", "1.50 times", "1,000 bytes, as some were read more than once")
    content["read"] = {"share": 0.25}
    assert answers_of("estimate", content) == [("Read", "25.00 %", "of 1,000 bytes")]


def test_aggregates_of_many_rows_say_where_the_others_are() -> None:
    groups = [f"g{own % 12}" for own in range(40)]
    stream = pa.table({"t": range(40), "k": range(40), "group": groups})
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 0}
    join["aggregates"] = "count(*) by left.group"
    for found in (
        winnow.estimate(stream, stream, **join),
        winnow.sample(stream, stream, **join, memory=40),
    ):
        where = "aggregates_out, or .aggregates in Python"
        assert f"the first 10 of 12 rows; all: {where}" in str(found)
        (of_all,) = found.aggregates.values()
        assert of_all.num_rows == 12


def test_a_plot_over_time_says_that_it_is_of_all_groups_together() -> None:
    stream = pa.table({"t": range(40), "k": range(40), "group": [own % 2 for own in range(40)]})
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 0}
    for groups, told in ((" by left.group", True), ("", False)):
        plot = winnow.estimate(stream, stream, **join, aggregates=f"count(*){groups}").plot()
        title = plot.axes[0].get_title(loc="left").replace("\n", " ")
        assert title.startswith(f"count(*){groups} over time")
        assert ("all groups together" in title) is told


def test_a_profile_of_tuples_that_match_nothing_says_none() -> None:
    begin = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - as files without a zone have it
    sides = [
        pa.table({
            "at": pa.array([begin + dt.timedelta(minutes=late + own) for own in range(40)]),
            "k": [f"o{own}" for own in range(40)],
        })
        for late in (0, 7)
    ]  # fmt: skip
    found = winnow.profile(*sides, on="k", time="at", window_left="10min", window_right=0)
    lines = [[cell.strip() for cell in line.split("│")] for line in str(found).splitlines()]
    told = {line[1]: line[2:4] for line in lines if len(line) == 5}
    assert told["window"] == ["10 minutes", "0"]
    assert told["best held for (k_opt)"] == ["7 minutes", "none"]
    assert told["window that keeps 95 %"] == ["7 minutes", "none"]


def test_what_replays_contradict_is_left_out_without_a_guess_at_why() -> None:
    basis = {"even": 0.1, "even_interval": None, "best": 0.1, "best_interval": None}
    point = {"memory": "1%", "tuples": {"left": 1, "right": 1}, "age": basis, "frequency": basis}
    console = Console(file=io.StringIO(), width=80)
    _print_models([point], console)
    assert console.file.getvalue() == (  # type: ignore[attr-defined]
        "left out: predictions by age and frequency, which replays do not confirm\n"
    )
    content = {"policy": {"estimator": "history"}, "predicted": {"model": "age"}}
    assert _unmet(content) == (
        "the age model does not fit these streams, as this replay shows: its prediction is left out"
    )


def test_a_profile_tells_how_many_candidates_were_tried_with_the_memory_that_stands_for_all() -> (
    None
):
    recall = {"value": 0.5, "low": None, "high": None}
    trial = {
        "memory": "1%", "tuples": {"left": 1, "right": 1}, "policy": "yield", "split": "pooled",
        "options": "--policy yield --split pooled", "measure": "recall", "recall": recall,
        "next": None, "candidates": 2, "grid": 9, "stretches": 3, "sampled": "keys", "whole": True,
        "outputs": 1_000,
    }  # fmt: skip
    console = Console(file=io.StringIO(), width=80)
    _print_advice([trial, trial | {"memory": "5%", "candidates": 9}], console)
    said = console.file.getvalue()  # type: ignore[attr-defined]
    assert "tried: 9 candidates on 3 parts of the archive's keys" in said
    assert "50.00 % on these only" in said


@pytest.mark.filterwarnings("ignore:the exact join")
def test_peaks_of_two_memories_are_told_to_be_added_up() -> None:
    streams = {own: pa.table({"t": [at], "v": [1]}) for own, at in (("a", 0), ("b", 100))}
    join = {"time": "t", "window": 0, "memory": 2}
    for split, most, said in (("even", 2, "{}, peaks added up"), ("pooled", 1, "{}")):
        several = winnow.multijoin(streams, predicate="equi:v", split=split, **join)
        both = winnow.replay(*streams.values(), on="v", policy="prob", split=split, **join)
        for every, found in (("total", several), ("both", both)):
            [bars] = memory(found.report)
            assert isinstance(bars, Bars)
            assert bars.names[-1] == said.format(every)
            assert bars.series[0].values == [1, 1, most]


@pytest.mark.parametrize(
    ("scale", "exact"), [(1e-6, "7.000e-06"), (1e99, "7.000e+99"), (1, "7.00")]
)
def test_importance_that_is_tiny_or_huge_keeps_its_digits(scale: float, exact: str) -> None:
    own = pa.table({"k": [1, 1, 1], "t": [0, 1, 2], "i": [scale, scale, scale]})
    found = winnow.replay(
        own, own, on="k", time="t", importance="i", window=1, policy="dgl", memory=2
    )
    lines = [[cell.strip() for cell in line.split("│")] for line in str(found).splitlines()]
    assert {line[1]: line[3] for line in lines if len(line) == 5}["exact"] == exact
    assert f" of {exact}, lost" in in_a_line(found.report)


def test_tables_fold_headings_and_words_and_cut_no_number() -> None:
    table = table_of(("", "null keys", "memory"), [("next smaller fails", "1", "1,250,000,000")])
    console = Console(file=io.StringIO(), width=table.least_width)
    console.print(table)
    shown: str = console.file.getvalue()  # type: ignore[attr-defined]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shown.splitlines()]
    assert [" ".join(own).split() for own in zip(*filter(None, cells), strict=True)] == [
        ["next", "smaller", "fails"], ["1"], ["1,250,000,000"],
    ]  # fmt: skip


def test_keys_of_several_columns_are_printed_as_values_with_commas() -> None:
    stream = pa.table({"t": range(40), "state": ["Texas"] * 40, "size": [3] * 40})
    found = winnow.replay(
        stream, stream, on=["state", "size"], time="t", window=9, memory=4, policy="recent"
    )
    assert "│ Texas, 3 │" in str(found)
