"""What an experiment is, and how its claims are judged: by its measurements alone.

A *line* of a figure has, at each *point* of its x-axis, one value for each seed. A *claim* of the
paper is a predicate on the lines, checked point by point; the word of each check is computed:

- *holds*: the 95 % interval of the paired difference over seeds lies on the claimed side of 0; or a
  number without randomness is as claimed;
- *even*: that interval includes 0;
- *differs*: it lies on the other side, or the number is another.

The verdict of a claim, and of a figure over all checks of its claims, is *holds* if all hold,
*differs* if none does, and otherwise in how many they hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Values = NDArray[np.float64]
Data = Mapping[str, Mapping[str, Sequence[float]]]
"""Values by seed, by line and point."""
Line = str | Callable[[Data], dict[str, Values]]
"""A line of the data, or one that is computed from others."""
HOLDS, EVEN, DIFFERS, MISSING = "holds", "even", "differs", "not measured"


class Check(NamedTuple):
    """A claim at one point, or at one step of an order there."""

    at: str
    word: str
    """`HOLDS`, `EVEN` or `DIFFERS`."""


class Claim(NamedTuple):
    """What a paper says of a figure, and how to check it."""

    says: str
    check: Callable[[Data], list[Check]]


class Experiment(NamedTuple):
    """A figure or table of a paper."""

    name: str
    """The paper and the figure, as in "P4:fig11"."""
    title: str
    source: str
    """Where the paper states the set-up."""
    setup: str
    """The set-up as the paper states it."""
    free: str
    """What the paper leaves open, and what is taken here."""
    x: str
    y: str
    points: Mapping[str, Any]
    """By label on the x-axis: what `measure` takes."""
    measure: Callable[..., dict[str, float]]
    """Returns a value a line, for a point and a seed; and for the keywords of a variant."""
    claims: tuple[Claim, ...]
    seeds: int = 1
    reason: str = ""
    """Why measurements differ, where they do. No part of a verdict."""
    quick: tuple[str, ...] = ()
    """Points of a quick run; unless given, the first and the last."""
    beyond: tuple[tuple[str, Line], ...] = ()
    """Computed lines that are shown too, such as a share of the optimum."""
    drawn: tuple[str, ...] | None = None
    """Lines of the plot; all unless given, and no plot if empty."""
    logarithmic: bool = False
    timed: bool = False
    """Whether it measures times, so that nothing else may run beside it."""
    variants: Mapping[str, Mapping[str, Any]] = {}
    """Other choices of what is left open: keywords of `measure` by name."""


def series(data: Data, line: Line) -> dict[str, Values]:
    """Return the values of a line by point; none of a line that was not measured."""
    if callable(line):
        return line(data)
    return {at: np.asarray(own, np.float64) for at, own in data.get(line, {}).items()}


def named(line: Line) -> str:
    """Return the name of a line."""
    return line if isinstance(line, str) else line.__name__


def combined(how: Callable[[Values, Values], Values], sign: str, a: Line, b: Line) -> Line:
    """Return a line computed from two, point by point and seed by seed."""

    def line(data: Data) -> dict[str, Values]:
        first, second = series(data, a), series(data, b)
        return {
            at: how(
                *(own[: min(first[at].size, second[at].size)] for own in (first[at], second[at]))
            )
            for at in first
            if at in second
        }

    line.__name__ = f"{_inner(a)} {sign} {_inner(b)}"
    return line


def _inner(line: Line) -> str:
    return f"({named(line)})" if callable(line) else line


def _ratio(x: Values, y: Values) -> Values:
    return np.where((x == 0) & (y == 0), 1.0, x / np.where(y == 0, np.nan, y))


def over(a: Line, b: Line) -> Line:
    """Return a / b; 1 where both are 0."""
    return combined(_ratio, "/", a, b)


def less(a: Line, b: Line) -> Line:
    """Return a - b."""
    return combined(operator.sub, "-", a, b)


def excess(a: Line, b: Line) -> Line:
    """Return a / b - 1, by how much a is above b."""
    return combined(lambda x, y: _ratio(x, y) - 1.0, "above", a, b)


def error(a: Line, b: Line) -> Line:
    """Return 1 - a / b, the relative error of a."""
    line = combined(lambda x, y: 1.0 - _ratio(x, y), "of", a, b)
    line.__name__ = f"error of {named(a)}"
    return line


def relative(line: Line, base: str) -> Line:
    """Return a line over its own value at the point `base`; nothing without that point."""

    def ratio(data: Data) -> dict[str, Values]:
        own = series(data, line)
        return {
            at: x[: own[base].size] / own[base][: x.size] for at, x in own.items() if base in own
        }

    ratio.__name__ = f"{named(line)} / its own at {base}"
    return ratio


def at_point(line: Line, *points: str) -> Line:
    """Return the mean of a line over points, under one label by which such can be compared."""

    def only(data: Data) -> dict[str, Values]:
        own = series(data, line)
        if not all(point in own for point in points):
            return {}
        return {"": np.mean([own[point] for point in points], axis=0)}

    only.__name__ = f"{named(line)} at {', '.join(points)}"
    return only


def half_width(values: Values) -> float:
    """Return half the 95 % interval of a mean (Student's t); 0 of a single value."""
    n = values.size
    if n < 2:
        return 0.0
    return float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))


def sign_of(differences: Values) -> str:
    """Return whether differences are above 0 (holds), below it (differs) or neither (even)."""
    mean, half = float(differences.mean()), half_width(differences)
    if mean - half > 0:
        return HOLDS
    return DIFFERS if mean + half < 0 else EVEN


def _chosen(found: Mapping[str, Values], at: Sequence[str] | None) -> Iterable[str]:
    return [label for label in found if at is None or label in at]


def order(
    says: str, *lines: Line | tuple[Line, ...], at: Sequence[str] | None = None,
    exact: Line | None = None, logs: bool = False,
) -> Claim:  # fmt: skip
    """Claim that each line is above the next; those of a tuple stand beside each other.

    Points at which both equal `exact` in every seed show no order and are left out. With `logs`
    (of times) it is the logarithms that are compared.
    """

    def check(data: Data) -> list[Check]:
        groups = [own if isinstance(own, tuple) else (own,) for own in lines]
        whole = {} if exact is None else series(data, exact)
        found = []
        for a, b in (pair for one, two in pairwise(groups) for pair in product(one, two)):
            above, below = series(data, a), series(data, b)
            for label, differences in series(data, _difference(a, b, logs=logs)).items():
                if at is not None and label not in at:
                    continue
                full = whole.get(label)
                if full is not None and all(
                    np.array_equal(own[label], full[: own[label].size]) for own in (above, below)
                ):
                    continue
                found.append(Check(f"{named(a)} > {named(b)}, {label}", sign_of(differences)))
        return found

    return Claim(says, check)


def _difference(a: Line, b: Line, *, logs: bool) -> Line:
    return combined(_log_ratio, "over", a, b) if logs else less(a, b)


def _log_ratio(x: Values, y: Values) -> Values:
    with np.errstate(divide="ignore", invalid="ignore"):  # of points that a claim leaves out
        return np.log(x / y)


def always(
    says: str, a: Line, relation: str, b: Line, at: Sequence[str] | None = None,
    within: float = 1e-9,
) -> Claim:  # fmt: skip
    """Claim that a line is ">=", "<=" or "=" another in every seed, but for a relative `within`."""
    signs = {">=": (1,), "<=": (-1,), "=": (1, -1)}[relation]

    def check(data: Data) -> list[Check]:
        differences, scale = series(data, less(a, b)), series(data, b)
        found = []
        for label in _chosen(differences, at):
            off = within * np.abs(scale[label][: differences[label].size])
            kept = all((sign * differences[label] >= -off).all() for sign in signs)
            found.append(
                Check(f"{named(a)} {relation} {named(b)}, {label}", HOLDS if kept else DIFFERS)
            )
        return found

    return Claim(says, check)


def rises(
    says: str, *lines: Line, sign: int = 1, at: Sequence[str] | None = None,
    exact: Line | None = None, logs: bool = False,
) -> Claim:  # fmt: skip
    """Claim that lines rise from each point to the next, until they equal `exact` in every seed."""

    def check(data: Data) -> list[Check]:
        whole = {} if exact is None else series(data, exact)
        found = []
        for line in lines:
            own = series(data, line)
            for a, b in pairwise(_chosen(own, at)):
                n = min(own[a].size, own[b].size)
                if a in whole and np.array_equal(own[a], whole[a][: own[a].size]):
                    continue
                first, second = (np.log(own[p][:n]) if logs else own[p][:n] for p in (a, b))
                word = sign_of(sign * (second - first))
                found.append(Check(f"{named(line)}, {a} to {b}", word))
        return found

    return Claim(says, check)


def falls(says: str, *lines: Line, **how: Any) -> Claim:  # noqa: ANN401 - as `rises` takes them
    """Claim that lines fall from each point to the next."""
    return rises(says, *lines, sign=-1, **how)


def printed(says: str, line: Line, at: str, value: float, within: float = 0.0) -> Claim:
    """Claim a printed number: the mean is it, but for a relative `within`."""
    return bounded(says, line, (at,), value - within * abs(value), value + within * abs(value))


def about(says: str, line: Line, at: str, value: float) -> Claim:
    """Claim a number that depends on streams or machines that are not published: factor two."""
    low, high = sorted((value / 2, value * 2))
    return bounded(says, line, (at,), low, high)


def bounded(
    says: str, line: Line, at: Sequence[str] | None = None, least: float = -np.inf,
    most: float = np.inf,
) -> Claim:  # fmt: skip
    """Claim that the mean of a line lies between bounds."""

    def check(data: Data) -> list[Check]:
        found = series(data, line)
        return [
            Check(
                f"{named(line)}, {label}",
                HOLDS if least <= found[label].mean() <= most else DIFFERS,
            )
            for label in _chosen(found, at)
        ]

    return Claim(says, check)


def peak(says: str, line: Line, first: float, last: float) -> Claim:
    """Claim that a line's greatest mean is at a point from `first` to `last`."""

    def check(data: Data) -> list[Check]:
        means = {label: own.mean() for label, own in series(data, line).items()}
        if len(means) < 3:  # a quick run tells nothing
            return []
        best = max(means, key=means.__getitem__)
        word = HOLDS if first <= float(best) <= last else DIFFERS
        return [Check(f"{named(line)} at {best}", word)]

    return Claim(says, check)


def verdict(checks: Sequence[Check]) -> str:
    """Return the verdict over checks."""
    held = sum(check.word == HOLDS for check in checks)
    if not checks:
        return MISSING
    if held == len(checks):
        return HOLDS
    return DIFFERS if not held else f"holds in {held} of {len(checks)} points"


class Judged(NamedTuple):
    """The verdict of an experiment, and the checks of each claim."""

    verdict: str
    claims: tuple[tuple[str, tuple[Check, ...]], ...]


def judged(experiment: Experiment, data: Data) -> Judged:
    """Judge an experiment by its measurements."""
    claims = tuple((claim.says, tuple(claim.check(data))) for claim in experiment.claims)
    return Judged(verdict([check for _, checks in claims for check in checks]), claims)
