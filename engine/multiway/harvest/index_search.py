"""Where a tuple's candidates are in a physical basic window that is indexed."""

from __future__ import annotations

from engine.multiway.harvest.indexes import Index
from engine.multiway.meets import Condition
from engine.multiway.streams import Floats, MultiStreams
from engine.runtime.jit import kernel
from gpu_kernels.multiway.predicates import BAND, DISTANCE, INNER
from gpu_kernels.multiway.walk import first_at_or_after


@kernel
def _is_before(squared: bool, bound: float, key: float, sought: float) -> bool:
    """Tell whether a value lies before all candidates: so far that the predicate cannot hold.

    It is the predicate's own arithmetic, whose rounding is monotone, so no candidate is missed.
    """
    difference = sought - key
    if squared:
        return difference > 0.0 and difference * difference > bound
    return difference > bound


@kernel
def _first_value(
    values: Floats, low: int, high: int, squared: bool, bound: float, value: float
) -> int:
    """Return the first entry ``low <= entry < high`` that is not before all candidates."""
    while low < high:
        middle = (low + high) >> 1
        if _is_before(squared, bound, values[middle], value):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def first_entry(
    condition: Condition, index: Index, low: int, high: int, code: int, value: float
) -> int:
    """Return where a window's candidates begin, if it has any."""
    # a loop for each, for none to choose in
    if condition.kind == BAND:
        return _first_value(index.value, low, high, False, condition.bound, value)
    if condition.kind == DISTANCE:
        return _first_value(index.value, low, high, True, condition.bound, value)
    return first_at_or_after(index.code, low, high, code)


@kernel
def is_behind(condition: Condition, index: Index, entry: int, code: int, value: float) -> bool:
    """Tell whether an entry lies behind all candidates."""
    if condition.kind == BAND or condition.kind == DISTANCE:  # noqa: PLR1714 - compiled
        return _is_before(condition.kind == DISTANCE, condition.bound, value, index.value[entry])
    return bool(index.code[entry] != code)


@kernel
def sought(
    streams: MultiStreams, condition: Condition, place: int, chosen: int
) -> tuple[int, float]:
    """Return the code or the value that a tuple looks for; of inner that of a list."""
    own = streams.attributes
    if condition.kind == INNER:
        return own.item[chosen], 0.0
    if condition.kind == BAND or condition.kind == DISTANCE:  # noqa: PLR1714 - compiled
        return 0, own.value[place, 0]
    return own.code[place], 0.0


@kernel
def steps_of_search(entries: int) -> int:
    """Return the comparisons of a binary search among some entries: floor(log2 k) + 1, or 0."""
    steps = 0
    while entries > 0:
        entries >>= 1
        steps += 1
    return steps
