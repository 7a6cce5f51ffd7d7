"""Puts what the passes over the lanes counted together to one profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.jobs.profile.task import SideSurvey
from engine.lanes.manifest import Prepared
from engine.models.frequency import KeyCounts, added
from engine.models.profile.advice import Evidently, SideFit, advise, exposures, fit_report, fit_side
from engine.models.profile.kernel import BITS, PassCounts
from engine.models.profile.keys import gathered
from engine.models.profile.lane_pass import LaneCounts, PassSettings
from engine.models.profile.model import ArrivalProfile
from engine.models.profile.parts import Frequencies, StreamProfile
from engine.models.profile.statistics import (
    age_curve,
    correlation,
    online_report,
    top_share,
    zipf_exponent,
)
from engine.options.profile import ProfileOptions

Pair = tuple[int, int]


class Together:
    """The lanes' counts, added up.

    Parameters
    ----------
    settings : PassSettings
        As the lanes were given them.
    counts : sequence of LaneCounts
        Of the same lanes.
    keys : int or None
        Most keys that are listed.
    peaks : (int, int)
        Of left and right.
    """

    def __init__(
        self,
        settings: PassSettings,
        surveys: Sequence[tuple[SideSurvey, SideSurvey]],
        counts: Sequence[LaneCounts],
        keys: int | None,
        peaks: Pair,
    ) -> None:
        self.settings, self.surveys, self.counts = settings, surveys, counts
        self.peaks = peaks
        sums = {
            name: np.sum([getattr(one.found, name) for one in counts], axis=0)
            for name in PassCounts._fields
        }
        self.found = PassCounts(**sums)
        self.simultaneous = sum(one.simultaneous for one in counts)
        self.rows: Pair = tuple(sum(rows) for rows in settings.rows)  # type: ignore[assignment]
        self.ticks = settings.edges[-1] - settings.edges[0]
        self.bins = len(settings.edges) - 1
        self.step = math.gcd(*(own.step for pair in surveys for own in pair)) or 1
        self.keys = added([one.keys for one in counts])
        if keys is not None:
            self.keys = _most_frequent(self.keys, keys)

    def ages(self, side: int, bins: slice = slice(None)) -> list[int]:
        """Return a side's matches by age bucket, of all time bins or some."""
        found = self.found.ages[side, bins, : self.settings.buckets[side]]
        return [int(number) for number in found.sum(axis=0)]

    def exposed(self, side: int) -> tuple[list[int], list[int]]:
        """Return the ticks that a side's tuples of both halves spent in each age bucket."""
        n, window = self.settings.buckets[side], self.settings.windows[side]
        first, second = (
            exposures(self.found.reached[side, half, :n], self.found.partly[side, half, :n], window)
            for half in (0, 1)
        )
        return first, second

    def fit(self, side: int) -> SideFit:
        """Compare the models on a side."""
        if not self.settings.windows[side]:
            return SideFit(0, 0.0, 0.0)
        middle = self.bins // 2
        ticks = self.settings.edges[middle] - self.settings.edges[0]
        evidence = gathered([one.evidence[side] for one in self.counts])
        late = self.found.late[side, : self.settings.buckets[side]].tolist()
        matches = self.ages(side, slice(middle)), late
        return fit_side(matches, self.exposed(side), evidence, ticks)

    def distinct(self, side: int) -> int:
        """Return the distinct keys of a side."""
        if self.settings.keys is None:
            return int((self.keys[1 + side] > 0).sum())
        return sum(one.distinct[side] for one in self.counts)

    def stream(self, side: int) -> StreamProfile:
        """Return the profile of a side."""
        own = [pair[side] for pair in self.surveys]
        some = [one for one in own if sum(one.rows)]
        rows, counts = self.rows[side], self.keys[1 + side]
        distinct = self.distinct(side)
        importance = math.fsum(one.mean_importance * sum(one.rows) for one in own)
        return StreamProfile(
            rows,
            rows / self.ticks,
            self.peaks[side],
            sum(one.held for one in own) / self.ticks,
            importance / rows if rows else 0.0,
            (min((one.least for one in some), default=0.0),
             max((one.greatest for one in some), default=0.0)),
            age_curve(
                np.array(self.ages(side), np.int64), rows, self.settings.windows[side]
            ),
            distinct,
            zipf_exponent(counts),
            top_share(counts, rows, distinct),
            tuple(self.drift(side)),
        )  # fmt: skip

    def drift(self, side: int) -> list[dict[str, Any]]:
        """Return a side by time bin."""
        edges, rows = self.settings.edges, self.settings.rows[side]
        matches = self.found.ages[side].sum(axis=1).tolist()
        sums = [low + (high << BITS) for low, high in self.found.age_sums[side].tolist()]
        far = [sum(int(one.distances[side, b]) for one in self.counts) for b in range(self.bins)]
        found = []
        for b in range(self.bins):
            known = b and rows[b] and rows[b - 1]
            found.append(
                {
                    "from": edges[b],
                    "to": edges[b + 1] - 1,
                    "rows": rows[b],
                    "rate": rows[b] / (edges[b + 1] - edges[b]),
                    "matches": matches[b],
                    "mean_age": sums[b] / matches[b] if matches[b] else None,
                    "key_distance": far[b] / (rows[b] * rows[b - 1]) if known else None,
                }
            )
        return found

    def exact(self, streams: Sequence[StreamProfile]) -> dict[str, Any]:
        """Return what the exact join gives."""
        outputs = self.simultaneous + sum(sum(self.ages(side)) for side in range(2))
        left, right = streams
        pairs = left.rows * right.mean_window + right.rows * left.mean_window
        return {
            "outputs": outputs,
            "simultaneous": self.simultaneous,
            "selectivity": min(1.0, outputs / pairs) if pairs else 0.0,
        }

    def frequencies(self, prepared: Prepared) -> Frequencies:
        """Return the frequency model."""
        listed = [int(self.keys[1 + side].sum()) for side in range(2)]
        rest = {"keys": 0, "left": 0, "right": 0}
        if self.settings.keys is not None:
            distinct = max(self.distinct(side) for side in range(2))
            rest = {
                "keys": max(0, distinct - self.keys.codes.size),
                "left": max(0, self.rows[0] - listed[0]),
                "right": max(0, self.rows[1] - listed[1]),
            }
        left, right = (max(one.error[side] for one in self.counts) for side in range(2))
        return Frequencies(
            "exact" if self.settings.keys is None else "sketch", self.keys, rest, (left, right),
            prepared.seed, prepared.keys,
        )  # fmt: skip

    def basis(self, streams: Sequence[StreamProfile], rest: dict[str, int]) -> Evidently:
        """Return what the advice rests on; keys of different groups are different keys."""
        parts = [one.keys for one in self.counts] if self.settings.keys is None else [self.keys]
        columns = []
        for name, values in zip(KeyCounts._fields, zip(*parts, strict=True), strict=True):
            each = 0.0 if name == "codes" else rest[name] / max(1, rest["keys"])
            columns.append(np.concatenate([*values, np.full(rest["keys"], each)]))
        return Evidently(
            self.settings.windows,
            self.rows,
            (streams[0].peak, streams[1].peak),
            (streams[0].mean_window, streams[1].mean_window),
            (streams[0].age, streams[1].age),
            sum(self.ages(0)) + sum(self.ages(1)),
            self.simultaneous,
            self.ticks,
            KeyCounts(*columns),
        )


def _most_frequent(counts: KeyCounts, most: int) -> KeyCounts:
    """Return the keys of most tuples on both sides together, ascending."""
    order = np.lexsort((counts.codes, -(counts.left + counts.right)))[:most]
    kept = np.sort(order)
    return KeyCounts(*(values[kept] for values in counts))


def build_profile(
    options: ProfileOptions,
    prepared: Prepared,
    span: Pair | None,
    whole: Together,
    trials: Sequence[dict[str, Any]],
) -> ArrivalProfile:
    """Return the profile, with what trials advise."""
    settings = whole.settings
    streams = whole.stream(0), whole.stream(1)
    frequencies = whole.frequencies(prepared)
    fit = fit_report(whole.fit(0), whole.fit(1))
    turns = tuple(sum(one.turns[side] for one in whole.counts) for side in range(2))
    left, right = (np.array(whole.ages(side), np.int64) for side in range(2))
    weighed = {"combine": options.base.combine, "importance": options.base.importance}
    return ArrivalProfile(
        prepared.unit,
        settings.windows,
        span,
        streams,
        whole.exact(streams),
        frequencies,
        correlation(left, right, whole.simultaneous, settings.windows),
        fit,
        advise(whole.basis(streams, frequencies.rest), fit, trials, weighed),
        online_report(
            whole.found, (turns[0], turns[1]), whole.rows, settings.buckets, options.monitor,
            options.retain,
        ),
        whole.step,
    )  # fmt: skip
