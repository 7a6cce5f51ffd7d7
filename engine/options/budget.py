"""Memory budgets: as people write them, and split over lanes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from math import floor
from typing import Any, ClassVar, NamedTuple

from engine.options.kinds import Kind, as_text
from engine.policies import Across, Policy, ValueKind
from engine.replay.settings import UNLIMITED
from engine.runtime.errors import SpecError


def _decimal(value: Fraction) -> str:
    """Return a number as a decimal fraction, all of its digits."""
    with localcontext(prec=200):
        return f"{Decimal(value.numerator) / Decimal(value.denominator):f}"


class Amount(NamedTuple):
    """A number of tuples, or a share of what the exact join needs at its peak."""

    tuples: int | None = None
    share: Fraction | None = None

    def __str__(self) -> str:
        if self.share is not None:
            return f"{float(self.share * 100):g}%"
        return str(self.tuples)

    @property
    def exact(self) -> str:
        """The same text, to the last digit."""
        return str(self.tuples) if self.share is None else f"{_decimal(self.share * 100)}%"


Amounts = tuple[Amount | None, Amount | None]


class Split(NamedTuple):
    """How one memory is split over both sides.

    Attributes
    ----------
    kind : str
        A name of `SPLITS`, or `FIXED`.
    fraction : Fraction or None
        The left side's share of a fixed split.
    """

    kind: str
    fraction: Fraction | None = None

    def __str__(self) -> str:
        if self.fraction is None:
            return self.kind
        return _decimal(self.fraction)


FIXED = "fixed"
EVEN, EXPECTED, POOLED = Split("even"), Split("expected"), Split("pooled")
SPLITS = {split.kind: split for split in (EVEN, EXPECTED, POOLED)}
"""The splits that have names."""
ANY = Split("any")
"""Of a bound: the best of all splits, which may change from instant to instant."""
BOUNDED = {split.kind: split for split in (ANY, EVEN, EXPECTED)}
"""Those for which a bound may be asked."""


def parse_split(text: str, option: str, names: Mapping[str, Split] = SPLITS) -> Split:
    """Return the split that `text` names.

    Raises
    ------
    SpecError
        If it is none of `names` and no number from 0 to 1.

    Examples
    --------
    >>> parse_split("expected", "--split") == EXPECTED, parse_split("0.80", "--split").fraction
    (True, Fraction(4, 5))
    """
    cleaned = text.strip()
    if cleaned in names:
        return names[cleaned]
    if re.fullmatch(r"\d+(\.\d*)?|\.\d+", cleaned) and Fraction(cleaned) <= 1:
        return Split(FIXED, Fraction(cleaned))
    raise SpecError(
        f"{option} is {text!r}; choose one of {', '.join(names)}, or give the left stream's share "
        "of the memory, from 0 to 1, such as 0.8"
    )


class SplitKind(Kind):
    """A split, or in Python and job files a number, as text."""

    names: ClassVar[Mapping[str, Split]] = SPLITS

    def read(self, flag: str, value: Any) -> str:  # noqa: ANN401 - see Kind
        """Return the split's text, once checked."""
        return str(parse_split(as_text(flag, value), flag, self.names))


class BoundedKind(SplitKind):
    """A split, or all of them: one memory that a replay pools is one way to split it."""

    names = BOUNDED | {POOLED.kind: ANY}


def sides_of(total: int, fraction: Fraction) -> tuple[int, int]:
    """Return both sides' tuples of one memory, of which `fraction` is the left's.

    The left's is rounded to the nearest whole number, half of one up, so that 0.5 of an odd memory
    is the even split of it.

    Examples
    --------
    >>> sides_of(1099, Fraction(4, 5)), sides_of(5, Fraction(1, 2))
    ((879, 220), (3, 2))
    """
    left = floor(fraction * total + Fraction(1, 2))
    return left, total - left


TUPLE_BYTES = 350
"""What a tuple of a budget in bytes counts as: what the arrays of any policy take for one."""
_BYTES = {
    "": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*([KMGT]I?|)B", re.IGNORECASE)


def parse_bytes(text: str) -> int | None:
    """Return the bytes that `text` names, such as 10GB; None if it names none.

    Examples
    --------
    >>> parse_bytes("1.5KB"), parse_bytes("2 KiB"), parse_bytes("10")
    (1500, 2048, None)
    """
    size = _SIZE.fullmatch(text.strip())
    return None if size is None else int(Fraction(size[1]) * _BYTES[size[2].upper()])


def parse_amount(text: str, option: str) -> Amount:
    """Return the memory that `text` names.

    Bytes are as many tuples as they hold at `TUPLE_BYTES` each.

    Raises
    ------
    SpecError
        If it is neither a whole number of tuples nor bytes for one or more nor a percentage, or is
        negative.

    Examples
    --------
    >>> parse_amount("800", "--memory"), str(parse_amount("12.5%", "--memory"))
    (Amount(tuples=800, share=None), '12.5%')
    >>> parse_amount("64MB", "--memory").tuples, parse_amount("1 KiB", "--memory").tuples
    (182857, 2)
    """
    cleaned = text.strip()
    if (size := parse_bytes(cleaned)) is not None:
        if 0 < size < TUPLE_BYTES:
            raise SpecError(
                f"{option} is {text!r}, less than a tuple takes: give {TUPLE_BYTES}B or more, or 0"
            )
        return Amount(tuples=size // TUPLE_BYTES)
    if re.fullmatch(r"\d+", cleaned):
        return Amount(tuples=int(cleaned))
    if re.fullmatch(r"\d+(\.\d*)?\s*%|\.\d+\s*%", cleaned):
        return Amount(share=Fraction(cleaned.rstrip("% ")) / 100)
    raise SpecError(
        f"{option} is {text!r}; give a whole number of tuples, 0 or more, bytes such as 64MB, or a "
        "percentage of the exact join's peak such as 10%"
    )


def parse_amounts(
    memory: str | None, left: str | None, right: str | None, split: Split = EVEN
) -> Amounts:
    """Return the budgets of both sides; None where a side is exact.

    `memory` is the papers' M, half a side (an odd tuple goes left); a percentage of it is of each
    side's own peak. With another `split` the two are one memory, and there must be one; a
    percentage of it is of both peaks together.
    """
    if split != EVEN and (left is not None or right is not None):
        raise SpecError(
            f"--split {split} splits one memory over both streams: give --memory in place of "
            "--memory-left and --memory-right"
        )
    if memory is None:
        return (
            None if left is None else parse_amount(left, "--memory-left"),
            None if right is None else parse_amount(right, "--memory-right"),
        )
    if left is not None or right is not None:
        raise SpecError("--memory and --memory-left or --memory-right exclude each other: give one")
    return divided(parse_amount(memory, "--memory"), split)


def divided(amount: Amount, split: Split = EVEN) -> Amounts:
    """Return the memory of each side when both together have `amount`.

    What depends on the streams is left to `engine.jobs.split.lane_budgets`: a percentage stands
    twice, and a number of tuples to be split as expected is halved.
    """
    if amount.tuples is None:
        return amount, amount
    half = Fraction(1, 2)
    left, right = sides_of(amount.tuples, half if split.fraction is None else split.fraction)
    return Amount(tuples=left), Amount(tuples=right)


def split_budget(amount: Amount | None, peaks: Sequence[int]) -> list[int]:
    """Split one side's memory over the lanes of one join, by window size.

    Parameters
    ----------
    peaks : sequence of int
        Most unexpired tuples of the side at once, lane by lane.

    Returns
    -------
    list of int
        K of each lane. A percentage is of each lane's own peak, rounded down; a number of tuples
        is split in proportion to the peaks by largest remainder, and its sum is never exceeded.

    Examples
    --------
    >>> split_budget(Amount(tuples=10), [30, 10, 0]), split_budget(None, [5]) == [UNLIMITED]
    ([8, 2, 0], True)
    """
    if amount is None:
        return [UNLIMITED] * len(peaks)
    if amount.share is not None:
        return [int(amount.share * peak) for peak in peaks]
    tuples = amount.tuples or 0
    total = sum(peaks)
    if len(peaks) == 1 or total == 0:
        return [tuples] * len(peaks) if len(peaks) == 1 else [0] * len(peaks)
    shares = [tuples * peak // total for peak in peaks]
    remainders = sorted(range(len(peaks)), key=lambda i: (-(tuples * peaks[i] % total), i))
    for i in remainders[: tuples - sum(shares)]:
        shares[i] += 1
    return shares


def check_split(split: Split, memory: Amounts, policy: Policy, *, through: bool) -> None:
    """Raise `SpecError` if there is no single memory, or no model to split it by.

    `through`: whether the streams join through facts.
    """
    if split == EVEN:
        return
    if None in memory:
        raise SpecError(f"--split {split} splits one memory over both streams: give --memory")
    if split == POOLED and policy.across is Across.NEVER:
        raise SpecError(
            f"policy {policy.name} samples each side, which needs a memory of its own: give "
            "another split than pooled"
        )
    if through and split == EXPECTED and policy.value_kind is not ValueKind.AGE:
        raise SpecError(
            f"--split {split} goes by how often join attributes arrive, and these are joined "
            "through facts: use policy age, or --memory-left and --memory-right"
        )


def divided_evenly(tuples: int, parts: int) -> list[int]:
    """Return even parts of a memory, the rest to the first of them.

    >>> divided_evenly(8, 3)
    [3, 3, 2]
    """
    each, rest = divmod(tuples, max(1, parts))
    return [each + (at < rest) for at in range(parts)]
