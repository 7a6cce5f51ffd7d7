"""The page of all figures: a table of verdicts, and of each figure its claims and measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reproduce.experiment import (
    DIFFERS,
    HOLDS,
    Data,
    Experiment,
    half_width,
    judged,
    series,
    verdict,
)

PAPERS = {
    "P1": "P1: window joins with importance semantics (CIKM 2006)",
    "P2": "P2: streams joined with relations (CASCON 2007)",
    "P3": "P3: sliding window multi-joins (VLDB 2003)",
    "P4": "P4: GrubJoin (EDBT 2007)",
    "P5": "P5: memory-limited windowed joins (VLDB 2004)",
}
WIDE = 9
"""Columns from which a table has lines for rows."""
INTRODUCTION = """\
# The papers' figures, reproduced

`make reproduce` measures every figure and table of the five papers, judges what the papers say of
them, and writes this page, its plots, `benchmarks/results/reproduce.json`, and all of it as one
HTML file, `build/reproduce/report.html`. `python benchmarks/reproduce --only P4:fig11` measures one
of them; with `--quick` it measures a few points of each, into `build/reproduce`; with `--again` it
writes what was measured.

No verdict is written by hand. Each claim is a predicate that is checked at every point: it *holds*
if the 95 % interval of the paired difference over seeds lies on the claimed side of 0, is *even* if
the interval includes 0, and *differs* otherwise. Numbers that a paper's text determines (examples,
costs) must be equal; numbers of unpublished streams or old machines hold within a factor of two. A
figure *holds* if all checks hold. The reasons given below explain; they decide nothing. Plots show
means and their 95 % intervals, tables means ± half of it; the HTML file also has the numbers.
"""


def number(value: float) -> str:
    """Return a number with about four digits."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose first column is text."""
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def table_of(experiment: Experiment, data: Data) -> str:
    """Return the lines of an experiment at its points."""
    columns = {line: series(data, line) for line in data}
    columns |= {name: series(data, line) for name, line in experiment.beyond}
    labels = [at for at in experiment.points if any(at in own for own in columns.values())]

    def cell(values: Any) -> str:  # noqa: ANN401 - an array or None
        if values is None or not values.size:
            return ""
        half = half_width(values)
        return number(float(values.mean())) + (
            f" ± {number(half)}" if half > 1e-6 * abs(values.mean()) else ""
        )

    if len(columns) < WIDE and (len(labels) > 1 or len(columns) < 2):
        rows = [[label, *(cell(own.get(label)) for own in columns.values())] for label in labels]
        return markdown([experiment.x, *columns], rows)
    rows = [[name, *(cell(own.get(at)) for at in labels)] for name, own in columns.items()]
    return markdown([experiment.x, *labels], rows)


def choices_of(experiment: Experiment, variants: Mapping[str, Data]) -> str:
    """Return how other choices of what is open come out, without a full stop."""
    words = [judged(experiment, data).verdict for data in variants.values()]
    return (
        f"Under {len(words)} other choices of what is open, with fewer seeds: "
        f"{words.count(HOLDS)} hold, {words.count(DIFFERS)} differ, the others hold in part"
    )


def claims_of(experiment: Experiment, data: Data) -> str:
    """Return the claims with their verdicts, and where they do not hold."""
    rows = []
    for says, checks in judged(experiment, data).claims:
        off: dict[str, list[str]] = {}
        for check in checks:
            if check.word != HOLDS:
                step, _, point = check.at.rpartition(", ")
                off.setdefault(f"{step} {check.word}" if step else check.word, []).append(point)
        where = "; ".join(
            f"{step}: {', '.join(points)}".removesuffix(": ") for step, points in off.items()
        )
        rows.append([says, verdict(checks), where.replace("|", "/")])
    lines = ["| the paper says | verdict | where not |", "|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in rows])


def section(experiment: Experiment, own: Mapping[str, Any], plot: str | None) -> str:
    """Return what the page says of one experiment."""
    title = f"### {experiment.name}: {experiment.title}"
    seeds = max((len(v) for line in own["data"].values() for v in line.values()), default=0)
    runs = f"Seeds 1 to {seeds}" if seeds > 1 else "One run"
    told = (
        f"**{own['verdict']}**. Set-up ({experiment.source}): {experiment.setup}. "
        f"Open: {experiment.free}. {runs}; {own['seconds']:.1f} CPU seconds at commit "
        f"{own['by']['commit']}."
    )
    parts = [
        title,
        told,
        claims_of(experiment, own["data"]),
    ]
    if own["verdict"] != HOLDS and experiment.reason:
        parts.insert(3, f"Why: {experiment.reason}")
    parts.append(f"![{experiment.title}]({plot})" if plot else table_of(experiment, own["data"]))
    if own.get("variants"):
        parts.append(f"{choices_of(experiment, own['variants'])}.")
    return "\n\n".join(parts)


def page_of(
    results: Mapping[str, Any], experiments: Sequence[Experiment], drawn: Mapping[str, str], *,
    quick: bool,
) -> str:  # fmt: skip
    """Return the page."""
    found = results["experiments"]
    rows = [
        f"| [{one.name}](#{anchor(one)}) | {one.title} | {found[one.name]['verdict']} |"
        for one in experiments
    ]
    words = [found[one.name]["verdict"] for one in experiments]
    spent = sum(own["seconds"] for own in found.values())
    partly = len(words) - words.count(HOLDS) - words.count(DIFFERS)
    counted = (
        f"Of {len(words)} figures and tables {words.count(HOLDS)} hold, {partly} hold in part, "
        f"and in {words.count(DIFFERS)} nothing holds. Together they took {spent:.0f} CPU seconds."
    )
    parts = [
        INTRODUCTION.rstrip(),
        counted,
    ]
    if quick:
        parts.append("This is a quick run: few points and seeds, so that intervals are wide.")
    parts.append("\n".join(["| figure | | verdict |", "|---|---|---|", *rows]))
    for paper, title in PAPERS.items():
        own = [one for one in experiments if one.name.startswith(f"{paper}:")]
        if own:
            parts.append(f"## {title}")
            parts += [section(one, found[one.name], drawn.get(one.name)) for one in own]
    return "\n\n".join(parts) + "\n"


def anchor(experiment: Experiment) -> str:
    """Return the link target of an experiment's heading."""
    text = f"{experiment.name}: {experiment.title}".lower()
    return "".join(c for c in text.replace(" ", "-") if c.isalnum() or c in "-_")
