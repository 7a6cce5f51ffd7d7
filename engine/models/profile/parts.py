"""The parts of a profile, and what its file holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from engine.models.frequency import KeyCounts
from engine.runtime.jit import Ints
from engine.runtime.streams import SIDES


@dataclass(frozen=True)
class AgeCurve:
    """The age model of one stream (P5 2.2): what its tuples match while they are stored.

    Attributes
    ----------
    buckets : tuple of float
        p_i: expected matches of a tuple at an age a in bucket ``((a - 1) * n) // W_i``.
    matches : float
        n_i, their sum.
    k_opt : int
        Ticks for which a tuple is best held: least argmax of C(k) / k, the end of a bucket.
    peak_age : int
        Last tick of the bucket of most matches; 0 where there are none.
    within : dict of str to int
        By percent of the matches, the age up to which they are made.
    """

    buckets: tuple[float, ...]
    matches: float
    k_opt: int
    peak_age: int
    within: dict[str, int]


@dataclass(frozen=True)
class StreamProfile:
    """One stream.

    Attributes
    ----------
    rows : int
        Tuples that take part.
    rate : float
        Tuples a tick of the span of both streams.
    peak : int
        Most unexpired tuples at once, added up over the lanes: what the exact join needs.
    mean_window : float
        Unexpired tuples on average over the span.
    mean_importance : float
    importance_range : (float, float)
        Least and greatest; (0, 0) without rows.
    age : AgeCurve
    distinct_keys : int
        Estimated where the frequencies are a sketch.
    zipf_exponent : float or None
        Most likely exponent of the frequencies by rank; None with fewer than two keys.
    top_share : dict of str to float
        Part of the rows that have the most frequent key ("1"), the ten ("10"), and 1 % of the keys.
    drift : tuple of dict
        By time bin: from, to, rows, rate, mean_age (None without matches) and key_distance (L1, 0
        to 2, from the bin before; None for the first and next to a bin without rows).
    """

    rows: int
    rate: float
    peak: int
    mean_window: float
    mean_importance: float
    importance_range: tuple[float, float]
    age: AgeCurve
    distinct_keys: int
    zipf_exponent: float | None
    top_share: dict[str, float]
    drift: tuple[dict[str, Any], ...]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """The frequency model of both streams (P5 2.1): tuples of each key.

    Attributes
    ----------
    kind : {"exact", "sketch"}
        A sketch lists the frequent keys alone.
    counts : KeyCounts
        Codes ascending.
    rest : dict of str to int
        keys, left and right: what is not listed; keys are estimated.
    error : (int, int)
        By which the counts of either stream are too great, at most; 0 where they are exact.
    seed : int
        Of the codes: those of another seed, or of keys of other types, are other codes.
    keys : tuple of str
        Types of the join attributes.
    """

    kind: str
    counts: KeyCounts
    rest: dict[str, int]
    error: tuple[int, int]
    seed: int
    keys: tuple[str, ...]


class Correlation(NamedTuple):
    """Matches by ``right.ts - left.ts``.

    Attributes
    ----------
    edges : (n + 1,) int64
        Bin j holds the lags ``edges[j] <= lag < edges[j + 1]``; lag 0 has a bin of its own.
    matches : (n,) int64
    """

    edges: Ints
    matches: Ints


def plain(stream: StreamProfile) -> dict[str, Any]:
    """Return a stream as JSON holds it."""
    found = {own.name: getattr(stream, own.name) for own in fields(stream)}
    found["age"] = {own.name: getattr(stream.age, own.name) for own in fields(stream.age)}
    found["age"]["buckets"] = list(stream.age.buckets)
    return found | {"importance_range": list(stream.importance_range), "drift": list(stream.drift)}


def frequencies_of(content: Mapping[str, Any]) -> Frequencies:
    """Return the frequencies that a file holds."""
    counts = KeyCounts(*(whole(content[name]) for name in ("codes", *SIDES)))
    if len({values.size for values in counts}) != 1:
        raise ValueError("frequencies.codes, left and right are not of one length")
    if (counts.codes[1:] <= counts.codes[:-1]).any():
        raise ValueError("frequencies.codes do not ascend")
    return Frequencies(
        str(content["kind"]), counts, dict(content["rest"]), both(content["error"]),
        int(content["seed"]), tuple(map(str, content["keys"])),
    )  # fmt: skip


def stream_of(content: Mapping[str, Any]) -> StreamProfile:
    """Return a stream as a file holds it."""
    values = {own.name: content[own.name] for own in fields(StreamProfile)}
    age = {own.name: content["age"][own.name] for own in fields(AgeCurve)}
    age["buckets"] = tuple(map(float, age["buckets"]))
    if not age["buckets"]:
        raise ValueError("age.buckets are empty")
    low, high = values["importance_range"]
    return StreamProfile(
        **values
        | {
            "rows": int(values["rows"]),
            "rate": float(values["rate"]),
            "peak": int(values["peak"]),
            "importance_range": (float(low), float(high)),
            "age": AgeCurve(**age),
            "drift": tuple(values["drift"]),
        }
    )


def whole(values: Any) -> Ints:  # noqa: ANN401 - whatever JSON holds
    """Return a list of JSON's as (n,) int64."""
    return np.array(values, np.int64)


def both(content: Mapping[str, Any]) -> tuple[int, int]:
    """Return the whole numbers of left and right."""
    left, right = (int(content[side]) for side in SIDES)
    return left, right
