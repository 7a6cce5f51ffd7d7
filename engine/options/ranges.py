"""Lists and ranges as people write them: ``200,400``, ``100:2000:100``, ``1%:100%:x2``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from engine.runtime.errors import SpecError

MOST_VALUES = 10_000
"""Values in one list: more of them are a slip of the pen."""


def parts_of(text: str, option: str) -> list[str]:
    """Return what stands between the commas.

    Raises
    ------
    SpecError
        If there is nothing, or nothing between two commas.
    """
    parts = [part.strip() for part in text.split(",")]
    if "" in parts:
        raise SpecError(f"{option} is {text!r}; give one value or several with commas, none empty")
    return parts


def expand(
    text: str,
    option: str,
    value: Callable[[str], Fraction],
    step: Callable[[str], Fraction] | None = None,
    default: Fraction | None = None,
) -> list[Fraction]:
    """Return the values of a range: of ``first:last:step`` up to and of the last one if it is met.

    Parameters
    ----------
    text : str
        ``first:last:step``, a single value, or ``first:last:xfactor``, to which the last value
        always belongs.
    option : str
        For messages.
    value : callable
        Reads the first and the last one.
    step : callable, optional
        Reads the step; by default `value`.
    default : Fraction, optional
        The step where none is given; None: one must be.

    Raises
    ------
    SpecError
        If it is none of these, or has more than `MOST_VALUES` values.

    Examples
    --------
    >>> [int(v) for v in expand("100:900:x2", "--memory", Fraction)]
    [100, 200, 400, 800, 900]
    """
    words = [word.strip() for word in text.split(":")]
    if len(words) == 1:
        return [value(text)]
    if len(words) > 3 or "" in words:
        raise SpecError(
            f"{option} has the range {text!r}; write first:last:step or first:last:xfactor, such "
            "as 100:2000:100 or 1%:100%:x2"
        )
    first, last = value(words[0]), value(words[1])
    if first > last:
        raise SpecError(f"{option} has the range {text!r}, which goes down: swap its ends")
    if len(words) == 2 and default is None:
        raise SpecError(
            f"{option} has the range {text!r} without a step; write it as a third part, such as "
            f"{text}:{words[0] if first > 0 else words[1]}"
        )
    if len(words) == 2:
        return list(_steps(first, last, default or Fraction(1), text, option))
    if words[2][0] in "xX*":
        return list(_factors(first, last, words[2][1:], text, option))
    return list(_steps(first, last, (step or value)(words[2]), text, option))


def _steps(
    first: Fraction, last: Fraction, step: Fraction, text: str, option: str
) -> Iterator[Fraction]:
    if step <= 0:
        raise SpecError(f"{option} has the range {text!r} with a step of 0: give a greater one")
    count = int((last - first) / step) + 1
    if count > MOST_VALUES:
        raise SpecError(
            f"{option} has the range {text!r} of {count:,} values; give a greater step, for at "
            f"most {MOST_VALUES:,}"
        )
    for i in range(count):
        yield first + i * step


def _factors(
    first: Fraction, last: Fraction, factor: str, text: str, option: str
) -> Iterator[Fraction]:
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", factor) or Fraction(factor) < Fraction("1.001"):
        raise SpecError(
            f"{option} has the range {text!r} with the factor {factor!r}; give a number of 1.001 "
            "or more, as in x2 or x1.5"
        )
    if first <= 0:
        raise SpecError(
            f"{option} has the range {text!r}, whose first value 0 stays 0 by any factor: begin "
            "above it"
        )
    while first < last:
        yield first
        first *= Fraction(factor)
    yield last


def distinct(values: list[Fraction]) -> list[Fraction]:
    """Return the values once each, in the order of their first appearance."""
    return list(dict.fromkeys(values))
