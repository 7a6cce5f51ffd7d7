"""Plots of a profile: recall by memory, age curves, drift, lags, and key frequencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from engine.models.profile.advice import MODELS
from engine.models.profile.model import ArrivalProfile
from engine.report import figure_files, figures
from engine.report.charts import Chart, Lines, Series
from engine.report.profile_bins import Ages, ages_of, lags_of, rates_of
from engine.report.profile_table import print_profile
from engine.report.shown import Shown
from engine.report.tables import length, time_scale
from engine.runtime.errors import chosen
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES


def profile_shown(profile: ArrivalProfile) -> Shown:
    """Return what is shown of a profile."""
    printed, drawn = partial(print_profile, profile), partial(_charts, profile)
    return Shown("profile", profile.content(), printed, drawn)


def _charts(profile: ArrivalProfile) -> list[Chart]:
    return [chart for made in PLOTS.values() for chart in made(profile)]


def figure_of(profile: ArrivalProfile, name: str = "age_curves") -> Any:  # noqa: ANN401 - matplotlib's
    """Return one of `PLOTS` as a figure."""
    return figures.figure_of(PLOTS[chosen("plot", name, [*PLOTS])](profile))


def draw(profile: ArrivalProfile, folder: Place) -> list[Place]:
    """Draw every plot as PNG and SVG.

    Raises
    ------
    OutputError
        If one cannot be written.
    """
    return figure_files.save_each(((name, figure_of(profile, name)) for name in PLOTS), folder)


def _recall(profile: ArrivalProfile) -> list[Chart]:
    """Return the predictions that replays confirm, which are those that are printed."""
    points = profile.advice["memory"]
    lines = {
        f"{model} model, {kind} split": _confirmed(points, model, kind)
        for model in MODELS
        for kind in ("best", "even")
    }
    series = [
        Series(name, [*values, None if values[-1] is None else 100.0])
        for name, values in lines.items()
        if any(own is not None for own in values)
    ]
    if not series:
        return []
    xs = [*(own["percent"] for own in points), 100]
    fits = profile.fit["model"]
    title = "Expected recall by memory" + (f": the {fits} model fits better" if fits else "")
    return [
        Lines(title, "memory (% of what the exact join needs)", "recall (%)", xs, series,
              percent=True)
    ]  # fmt: skip


def _confirmed(points: list[dict[str, Any]], model: str, kind: str) -> list[float | None]:
    return [
        None if own[model][f"{kind}_interval"] is None else 100 * own[model][kind] for own in points
    ]


def _ages(profile: ArrivalProfile) -> list[Chart]:
    charts: list[Chart] = []
    for side, stream, window in zip(SIDES, profile.streams, profile.windows, strict=True):
        if not window:  # no tuple of it is ever stored
            continue
        scale, unit = time_scale(window, profile.unit)
        bins = ages_of(profile, SIDES.index(side))
        edges = (bins.edges * scale).tolist()
        title = f"Age curve of {side}: {stream.age.matches:.3g} matches a tuple"
        if stream.age.matches:
            title += f", k_opt {length(stream.age.k_opt, profile.unit)}"
        series = [Series("matches", bins.heights(stream.age.buckets))]
        for name in ("monitor", "retain"):
            found = (profile.online[name] or {}).get(side)
            if found and found["buckets"]:
                label = f"{name}: {found['tuples']:,} tuples"
                series.append(Series(label, bins.heights(found["buckets"])))
        label = _matches_label(bins, scale, unit)
        charts.append(Lines(title, f"age ({unit})", label, edges, series, steps=True))
    return charts


def _matches_label(bins: Ages, scale: float, unit: str) -> str:
    """Return what the height of an age curve is."""
    if bins.even:
        return "matches a tuple in a bucket"
    return f"matches a tuple in {bins.wide * scale:.3g} {unit} of age"


def _one_of(unit: str) -> str:
    """Return a unit as it stands behind "a"."""
    return unit if " " in unit or len(unit) < 3 else unit.removesuffix("s")


def _drift(profile: ArrivalProfile) -> list[Chart]:
    span, unit = time_scale(max(1, profile.ticks), profile.unit)
    scale, of_age = time_scale(max(1, *profile.windows), profile.unit)
    bins = profile.streams[0].drift
    if not bins or profile.span is None:
        return []
    begin = profile.span[0]
    edges = [(own["from"] - begin) * span for own in bins]
    edges.append((bins[-1]["to"] + 1 - begin) * span)
    panels = (
        ("rate", 1 / span, "Rate over time", f"tuples a {_one_of(unit)}"),
        ("mean_age", scale, "Age of the stored tuple at matches", f"mean age ({of_age})"),
        ("key_distance", 1.0, "Change of key shares over time", "L1 distance, 0 to 2"),
    )
    return [
        Lines(title, f"time since the first tuple ({unit})", y, edges, [
            Series(side, [None if own is None else factor * own for own in values])
            for side, values in zip(SIDES, _drift_of(profile, name), strict=True)
        ], steps=True)
        for name, factor, title, y in panels
    ]  # fmt: skip


def _drift_of(profile: ArrivalProfile, name: str) -> list[list[float | None]]:
    """Return a field of each side's time bins."""
    if name == "rate":
        return [rates_of(profile, side) for side in range(len(SIDES))]
    return [[own[name] for own in stream.drift] for stream in profile.streams]


def _lags(profile: ArrivalProfile) -> list[Chart]:
    edges, matches = lags_of(profile)
    if not matches.size:
        return []
    scale, unit = time_scale(max(1, *profile.windows), profile.unit)
    widths, same = np.diff(edges), int(np.searchsorted(edges, 0))
    heights: list[float | None] = (matches / (widths * scale)).tolist()
    title = "Matches by lag"
    if matches[same] and 2 * widths[same] < widths.mean():
        heights[same] = None  # so thin a bin would be the only one that is seen
        title += f", without {matches[same]:,} simultaneous ones"
    return [
        Lines(title, f"right.ts - left.ts ({unit})", f"matches a {_one_of(unit)} of lag",
              (edges * scale).tolist(), [Series("matches", heights)], steps=True)
    ]  # fmt: skip


def _frequencies(profile: ArrivalProfile) -> list[Chart]:
    charts: list[Chart] = []
    counts = profile.counts()
    for side, stream, own in zip(SIDES, profile.streams, counts[1:3], strict=True):
        ranked = np.sort(own)[::-1]
        ranked = ranked[ranked > 0]
        if not ranked.size:
            continue
        ranks = np.arange(1, ranked.size + 1)
        shown = np.unique(np.geomspace(1, ranked.size, 120).astype(np.int64)) - 1
        counted = "counted" if profile.frequencies.kind == "exact" else "sketched"
        series = [Series(counted, ranked[shown].tolist())]
        if stream.zipf_exponent is not None:
            weights = ranks.astype(np.float64) ** -stream.zipf_exponent
            fitted = (ranked.sum() * weights / weights.sum())[shown]
            series.append(Series(f"Zipf, exponent {stream.zipf_exponent:.2f}", fitted.tolist()))
        title = f"Keys of {side}: {stream.distinct_keys:,}"
        charts.append(
            Lines(title, "rank of the key", "tuples of the key", ranks[shown].tolist(), series,
                  log_x=True, log_y=True)
        )  # fmt: skip
    return charts


PLOTS: Mapping[str, Callable[[ArrivalProfile], list[Chart]]] = {
    "recall": _recall,
    "age_curves": _ages,
    "drift": _drift,
    "correlation": _lags,
    "key_frequencies": _frequencies,
}
