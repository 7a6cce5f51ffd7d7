"""The report as one HTML file: every figure with its claims, plots and tables, and every engine."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.report.answers import Answer
from engine.report.blocks import Grid, Link
from engine.report.charts import Bars, Chart, Lines, Series
from engine.report.tables import CommandLine
from reproduce.document import Content, Part, document_of
from reproduce.experiment import DIFFERS, HOLDS, Data, Experiment, half_width, series
from reproduce.page import PAPERS, choices_of, claims_of, table_of
from reproduce.record import ROOT

TERMS = {
    "holds": "The 95 % interval of the paired difference over seeds lies on the side that the "
    "paper claims; or a number without randomness is as claimed.",
    "even": "That interval includes 0: the measurements do not decide.",
    "differs": "The interval lies on the other side, or the number is another.",
    "OPT": "The best possible result in this memory, with the whole future known.",
    "certificate": "An upper bound of the best possible result, which is proven.",
    "yield": "winnow's own policy: importance a tick that a tuple is expected to bring.",
    "z": "The throttle fraction of window harvesting.",
    "seed": "The number from which an experiment's streams are drawn.",
}


def grid(text: str, title: str = "", links: Mapping[str, str] = {}) -> Grid:
    """Return a table of Markdown; a first cell that is in `links` leads there."""
    lines = [
        [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        for line in text.replace("|  |", "| - |").splitlines()
    ]
    head, _, *rows = lines
    width = len(head)
    rows = [(row + [""] * width)[:width] for row in rows]
    rows = [[Link(row[0], links[row[0]]) if row[0] in links else row[0], *row[1:]] for row in rows]
    numbers = [
        at > 0 and all(not row[at] or row[at][0] in "0123456789-" for row in rows)
        for at in range(width)
    ]
    return Grid(title, head, numbers, [rows] if rows else [])


def charts_of(experiment: Experiment, data: Data) -> list[Chart]:
    """Return the plots of a figure: what the paper plots, and what stands beyond it."""
    lines = [line for line in (experiment.drawn or data) if line in data]
    if experiment.drawn == () or len(experiment.points) < 2 or not lines:
        return []
    found = {line: series(data, line) for line in lines}
    charts = [_chart(experiment, experiment.title, experiment.y, found)]
    beyond = {name: series(data, line) for name, line in experiment.beyond}
    beyond = {name: own for name, own in beyond.items() if own}
    if beyond:
        charts.append(_chart(experiment, "Beyond the paper", "ratio", beyond))
    return charts


def _chart(
    experiment: Experiment, title: str, y: str, found: Mapping[str, Mapping[str, Any]]
) -> Chart:
    labels = [at for at in experiment.points if any(at in own for own in found.values())]
    try:
        places = sorted((float(label), label) for label in labels)
    except ValueError:  # names
        bars = [
            Series(name, [float(own[at].mean()) if at in own else None for at in labels])
            for name, own in found.items()
        ]
        return Bars(title, y, labels, bars)
    order = [label for _, label in places]
    curves = []
    for name, own in found.items():
        middle = [float(own[at].mean()) if at in own else None for at in order]
        half = [half_width(own[at]) if at in own else 0.0 for at in order]
        known = [(m, h) for m, h in zip(middle, half, strict=True)]
        low = [None if m is None else m - h for m, h in known]
        high = [None if m is None else m + h for m, h in known]
        if experiment.logarithmic:  # an interval may reach below 0, which has no place there
            low = [
                None if m is None or at is None else max(at, m / 10)
                for m, at in zip(middle, low, strict=True)
            ]
        curves.append(Series(name, middle, low, high))
    return Lines(
        title, experiment.x, y, [place for place, _ in places], curves, order,
        log_y=experiment.logarithmic,
    )  # fmt: skip


def anchor(name: str) -> str:
    """Return the place of a figure in the page."""
    return name.replace(":", "-")


def figure_part(experiment: Experiment, own: Mapping[str, Any], out: Path) -> Part:
    """Return what is told of one figure."""
    seeds = max((len(v) for line in own["data"].values() for v in line.values()), default=0)
    runs = f"seeds 1 to {seeds}" if seeds > 1 else "one run"
    told = (
        f"Verdict: {own['verdict']}. Set-up ({experiment.source}): {experiment.setup}. Open: "
        f"{experiment.free}. {runs[0].upper()}{runs[1:]}; {own['seconds']:.1f} CPU seconds at "
        f"commit {own['by']['commit']}."
    )
    contents: list[Content] = [told, grid(claims_of(experiment, own["data"]))]
    if own["verdict"] != HOLDS and experiment.reason:
        contents.append(f"Why: {experiment.reason}")
    contents += charts_of(experiment, own["data"])
    contents.append(grid(table_of(experiment, own["data"]), "Means ± half the 95 % interval"))
    if own.get("variants"):
        contents.append(f"{choices_of(experiment, own['variants'])}.")
    module = getattr(inspect.unwrap(experiment.measure), "func", experiment.measure).__module__
    source = Path(inspect.getsourcefile(sys.modules[module]) or "")
    place = os.path.relpath(source, out.parent)
    name = str(source.relative_to(ROOT)) if source.is_relative_to(ROOT) else source.name
    contents.append(Grid("", ["experiment"], [False], [[[Link(name, place)]]]))
    contents.append(CommandLine(f"python benchmarks/reproduce --only {experiment.name}"))
    return Part(f"{experiment.name}: {experiment.title}", contents, anchor(experiment.name), True)


def peers_parts(record: Mapping[str, Any]) -> list[Part]:
    """Return what is told of other engines."""
    from peers import tables  # noqa: PLC0415 - not without measurements

    rows = record["rows"]
    if not rows:
        return []
    contents: list[Content] = [tables.leads(rows), tables.made_by(record), *tables.charts(rows)]
    contents.append(grid(tables.exact(rows), "Exact joins, the fastest query of each engine"))
    approximate = tables.approximate(rows)
    if approximate.count("\n") > 1:
        contents.append(grid(approximate, "winnow within less memory, or less work"))
    contents += [line.removeprefix("- ") for line in tables.left_out(rows).splitlines()]
    contents.append(CommandLine("python benchmarks/peers"))
    return [Part("Other engines on the same data", contents, "peers")]


def report_of(
    results: Mapping[str, Any], experiments: Sequence[Experiment],
    peers: Mapping[str, Any], out: Path, *, quick: bool,
) -> str:  # fmt: skip
    """Return the page; `peers` is the record of other engines."""
    found = results["experiments"]
    words = [found[one.name]["verdict"] for one in experiments]
    parted = len(words) - words.count(HOLDS) - words.count(DIFFERS)
    spent = sum(found[one.name]["seconds"] for one in experiments)
    cards = [
        Answer("figures and tables", f"{len(words)}", "of five papers"),
        Answer(HOLDS, f"{words.count(HOLDS)}", "every claim, at every point"),
        Answer("holds in part", f"{parted}", "each says where not, and why"),
        Answer(DIFFERS, f"{words.count(DIFFERS)}", "no claim holds"),
        Answer("measured in", f"{spent:,.0f} s", "of CPU"),
    ]
    links = {one.name: f"#{anchor(one.name)}" for one in experiments}
    index = [
        [Link(one.name, links[one.name]), one.title, found[one.name]["verdict"]]
        for one in experiments
    ]
    first: list[Content] = [Grid("", ["figure", "", "verdict"], [False] * 3, [index])]
    first.append(
        "No verdict is written by hand: each claim is checked at every point of the measurements. "
        "The reasons below explain; they decide nothing."
    )
    if quick:
        first.append("This is a quick run: few points and seeds, so that intervals are wide.")
    parts = [Part("Verdicts", first, "verdicts"), *peers_parts(peers)]
    for paper, title in PAPERS.items():
        own = [one for one in experiments if one.name.startswith(f"{paper}:")]
        if own:
            parts.append(Part(title, [], paper))
            parts += [figure_part(one, found[one.name], out) for one in own]
    by = {own["by"]["commit"]: own["by"] for own in found.values()}
    versions = next(iter(by.values()), {}).get("versions", {})
    made = ", ".join(f"{name} {version}" for name, version in versions.items())
    return document_of(
        "winnow: the papers' figures, and other engines", "What winnow gives beside what papers "
        "print and what other engines take.", cards, parts,
        f"Made by winnow at {', '.join(by)}. {made}", TERMS,
    )  # fmt: skip
