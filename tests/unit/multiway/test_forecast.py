"""What an exact join is expected to give: tuples are tried as they arrive, with what they reach."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
from multiway_cases import PREDICATES, random_streams

import engine.multiway.exact.forecast as forecasting
from engine.multiway.exact import ExactJoin
from engine.multiway.exact.forecast import forecast
from engine.multiway.streams import windows_of


@pytest.mark.parametrize("kind", PREDICATES)
@pytest.mark.parametrize("graph", ["clique", "star"])
def test_all_tuples_tried_one_by_one_give_all_outputs(
    kind: str, graph: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = random_streams(5, (40, 25, 30), kind)
    monkeypatch.setattr(forecasting, "_SAMPLE", 1000)
    monkeypatch.setattr(forecasting, "_SHORT", 1e9)
    monkeypatch.setattr(forecasting, "SECONDS", 1e9)
    for by_rows in ([False] * 3, [True, False, True]):
        for given in ({}, {"slices": (20, 40)}, {"start_ts": 30}):
            join = ExactJoin(
                streams, windows_of([9, 6, 7], by_rows), PREDICATES[kind], graph=graph, **given
            )  # type: ignore[arg-type]
            low, high = given.get("slices", (given.get("start_ts", 0), 99))  # type: ignore[misc]
            tuples = int(np.count_nonzero((streams.ts >= low) & (streams.ts < high)))
            monkeypatch.setattr(forecasting, "PLACES", tuples)
            monkeypatch.setattr(forecasting, "_MOST", tuples)
            found = forecast(join)
            assert found is not None
            assert found.outputs == pytest.approx(join.count().outputs)
            assert found.seconds > 0


def test_few_tuples_tell_how_many_outputs_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forecasting, "_SHORT", 60.0)
    monkeypatch.setattr(forecasting, "SECONDS", 60.0)
    off = []
    for seed in range(20):
        streams = random_streams(seed, (3000, 2000, 1000), "band", span=3000, distinct=40)
        join = ExactJoin(streams, windows_of([60, 60, 60]), PREDICATES["band"])
        found = forecast(join, lambda part, join=join: join.counted(part))  # type: ignore[misc]
        assert found is not None
        off.append(found.outputs / join.count().outputs)
    assert 0.8 < np.mean(off) < 1.25
    assert max(off) < 4
    assert min(off) > 0.25


def test_what_a_thread_waits_for_is_not_expected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that join other slices at the same time make a trial of microseconds wait."""
    hours = itertools.count(step=3600.0)
    clocks = SimpleNamespace(perf_counter=lambda: next(hours), thread_time=time.thread_time)
    monkeypatch.setattr(forecasting, "time", clocks)
    found = forecast(
        ExactJoin(random_streams(5, (40, 25, 30), "band"), windows_of([9] * 3), PREDICATES["band"])
    )
    assert found is not None
    assert found.seconds < 3600


def test_nothing_is_expected_of_nothing() -> None:
    streams = random_streams(0, (20, 0, 20), "equi")
    assert forecast(ExactJoin(streams, windows_of([9] * 3), PREDICATES["equi"])) is None
