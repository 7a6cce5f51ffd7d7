"""A warning where the exact join has no outputs, of which any result is all."""

from __future__ import annotations

from engine.lanes.manifest import Prepared, StreamSummary
from engine.runtime.time_units import instant_text
from engine.runtime.warned import warn


def warn_of_no_outputs(outputs: int, prepared: Prepared) -> None:
    """Warn if an exact join of streams that both have tuples has no outputs, and say what to check.

    Parameters
    ----------
    outputs : int
        Of the exact join.
    prepared : Prepared
        Its streams.
    """
    (left, right), (early, late) = prepared.streams, sorted(map(_times, prepared.streams))
    if outputs or not (early and late):
        return

    def told(stream: StreamSummary) -> str:
        texts = (instant_text(own, prepared.unit, prepared.zone) for own in _times(stream))
        return " to ".join(texts)

    facts = "" if prepared.facts is None else " the facts,"
    remedy = f"check{facts} the join attributes, --window and --start-ts"
    if early[1] < late[0]:
        remedy = "their times do not overlap: check the time columns, their units and --window"
    warn(
        f"the exact join of left, with times {told(left)}, and right, with times {told(right)}, "
        f"has no outputs, of which any result is 100 %: {remedy}"
    )


def _times(stream: StreamSummary) -> tuple[int, ...]:
    """Return the first and the last tick of a stream; nothing if it has no tuples."""
    if stream.first_ts is None or stream.last_ts is None:
        return ()
    return stream.first_ts, stream.last_ts
