"""``winnow explain``."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from engine.commands.asked import Asked
from engine.commands.bars import progress_bars
from engine.commands.telling import Telling, telling
from engine.jobs.explain import Measured, explain
from engine.jobs.explain_archives import measured_archives
from engine.multiway.orders.problem import JoinStatistics, OrderingProblem
from engine.options.explain import EXPLAIN, SHOWN, Question, check_options, question, statistics
from engine.options.where import STANDARD_OUTPUT
from engine.report.envelope import Report, check_place
from engine.report.order_tables import explain_shown
from engine.runtime.storage.uris import place_of

COMMAND = EXPLAIN


def show(
    told: Telling,
    join: JoinStatistics,
    asks: Question,
    measured: Sequence[Measured] = (),
    unit: str | None = None,
) -> None:
    """Explain the orders of a join; print the result or write it.

    Parameters
    ----------
    asks : Asked
    measured : sequence of Measured
        Runs to compare with their expected comparisons.
    unit : {"second", "tick"}, optional
        Of all times, where it is known.

    Raises
    ------
    SpecError
        If the method does not fit the statistics.
    OutputError
        If the JSON cannot be written.
    """
    content: dict[str, Any] = {"unit": unit}
    content |= explain(OrderingProblem(join, asks.method, asks.tau), measured, asks.top)
    shown = explain_shown(content, SHOWN if asks.top is None else asks.top)
    if asks.json == STANDARD_OUTPUT:
        told.write(shown)
        sys.stdout.write(json.dumps(content, indent=2, allow_nan=False) + "\n")
        return
    if asks.json is not None:
        Report(content).save(place_of(asks.json))
    told.tell(shown)


def run(asked: Asked) -> int:
    """Explain the join that the options describe."""
    given = asked.given
    check_options(given)
    asks = question(given)
    told = telling(asked, given)
    if asks.json not in {None, STANDARD_OUTPUT}:
        check_place(place_of(str(asks.json)))
    if "stream" in given:
        with progress_bars() as progress:
            found = measured_archives(given, progress)
        show(told, found.statistics, asks._replace(tau=found.tau), found.measured, found.unit)
    else:
        show(told, statistics(given), asks)
    return 0
