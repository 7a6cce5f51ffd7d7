"""Plots of a profile as data: age curves, key frequencies, lags, drift, and recall by memory."""

from __future__ import annotations

from functools import partial

import numpy as np

from engine.models.profile.advice import MODELS
from engine.models.profile.model import ArrivalProfile
from engine.report.charts import Chart, Lines, Series
from engine.report.profile_bins import ages_of, lags_of
from engine.report.profile_plots import drift_of, matches_label, one_of
from engine.report.profile_table import print_profile
from engine.report.shown import Shown
from engine.report.tables import time_scale
from engine.runtime.streams import SIDES


def profile_shown(profile: ArrivalProfile) -> Shown:
    """Return what is shown of a profile."""
    printed, drawn = partial(print_profile, profile), partial(_charts, profile)
    return Shown("profile", profile.content(), printed, drawn)


def _charts(profile: ArrivalProfile) -> list[Chart]:
    return [
        *_recall(profile), *_ages(profile), *_drift(profile), *_lags(profile),
        *_frequencies(profile),
    ]  # fmt: skip


def _recall(profile: ArrivalProfile) -> list[Chart]:
    points = profile.advice["memory"]
    if not points:
        return []
    series = [
        Series(
            f"{model} model, {'best split' if kind == 'best' else 'each its share'}",
            [*(100 * own[model][kind] for own in points), 100.0],
        )
        for model in MODELS
        for kind in ("best", "even")
    ]
    xs = [*(own["percent"] for own in points), 100]
    return [
        Lines("Expected recall by memory", "memory (% of what the exact join needs)", "recall (%)",
              xs, series, percent=True)
    ]  # fmt: skip


def _ages(profile: ArrivalProfile) -> list[Chart]:
    charts: list[Chart] = []
    for side, stream, window in zip(SIDES, profile.streams, profile.windows, strict=True):
        scale, unit = time_scale(max(1, window), profile.unit)
        bins = ages_of(profile, SIDES.index(side))
        edges = (bins.edges * scale).tolist()
        title = f"Age curve of {side}: {stream.age.matches:.3g} matches a tuple"
        matches = [Series("matches", bins.heights(stream.age.buckets))]
        label = matches_label(bins, scale, unit)
        charts.append(Lines(title, f"age ({unit})", label, edges, matches, steps=True))
    return charts


def _drift(profile: ArrivalProfile) -> list[Chart]:
    length, unit = time_scale(max(1, profile.ticks), profile.unit)
    scale, of_age = time_scale(max(1, *profile.windows), profile.unit)
    bins = profile.streams[0].drift
    if not bins or profile.span is None:
        return []
    begin = profile.span[0]
    xs = [((own["from"] + own["to"]) / 2 - begin) * length for own in bins]
    panels = (
        ("rate", 1 / length, "Rate over time", f"tuples a {one_of(unit)}"),
        ("mean_age", scale, "Age of the stored tuple at matches", f"mean age ({of_age})"),
        ("key_distance", 1.0, "Change of key shares over time", "L1 distance, 0 to 2"),
    )
    return [
        Lines(title, f"time since the first tuple ({unit})", y, xs, [
            Series(side, [None if own is None else factor * own for own in values])
            for side, values in zip(SIDES, drift_of(profile, name), strict=True)
        ])
        for name, factor, title, y in panels
    ]  # fmt: skip


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
        Lines(title, f"right.ts - left.ts ({unit})", f"matches a {one_of(unit)} of lag",
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
        series = [Series("counted", ranked[shown].tolist())]
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
