"""The short ways of a harvested join: they find what the plain ones find, number for number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from multiway_cases import PREDICATES, random_streams

from engine.multiway.harvest import matching, untimed
from engine.multiway.harvest.adapt import plan_from, quick_setting, setting_of
from engine.multiway.harvest.layout import admitted_all
from engine.multiway.harvest.learner import Learnt
from engine.multiway.harvest.learnt_layout import JoinShape, pairwise
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.predicate import condition
from engine.multiway.streams import basic_counts, windows_of


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 127, 128, 129, 136, 300, 1000, 5000])
def test_sums_are_those_of_numpy(size: int) -> None:
    values = np.random.default_rng(size).random(size)
    assert pairwise(values) == values.sum()


def test_quick_settings_are_the_optimisers() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, basic_window = int(rng.integers(2, 5)), int(rng.integers(1, 5))
        windows = windows_of(rng.integers(0, 40, m).tolist())
        basic = basic_counts(windows, basic_window)
        orders = [rng.permutation([j for j in range(m) if j != i]).tolist() for i in range(m)]
        ages = np.zeros((m, m - 1, max(basic)))
        for i, hop in np.ndindex(m, m - 1):
            n = basic[orders[i][hop]]
            ages[i, hop, :n] = rng.integers(0, 6, n) * rng.random() * (rng.random() < 0.8)
        read = rng.integers(0, 1000, (m, m - 1)) * float(rng.random())
        passes = read * rng.random((m, m - 1)) * (rng.random((m, m - 1)) < 0.9)
        rates = rng.random(m) * (rng.random(m) < 0.9)
        learnt = Learnt(np.zeros((m, 3)), read, passes, rates, ages)
        throttle = float(rng.choice([0.05, 0.1, 0.3, 0.7]))
        settings = HarvestSettings(basic_window, throttle=throttle)
        shape = JoinShape(np.array(orders), np.array(basic), windows.size, basic_window)
        found = quick_setting(learnt, shape, throttle, settings)
        assert found is not None
        setting, plan = found
        plain = setting_of(learnt, windows, orders, throttle, settings)
        assert setting.counts.tolist() == plain.counts.tolist()
        for hops, others in zip(setting.rankings, plain.rankings, strict=True):
            assert [own.tolist() for own in hops] == [own.tolist() for own in others]
        for own, other in zip(plan, plan_from(plain, orders, windows, basic_window), strict=True):
            assert own.tolist() == other.tolist()


@pytest.mark.parametrize("shred", [2.0, 0.3])
def test_long_runs_are_found_in_sorted_blocks(shred: float) -> None:
    rng = np.random.default_rng(1)
    size = 5 * matching.BLOCK
    streams = random_streams(2, (size, size), "band", span=10)
    value = rng.integers(0, 200, 2 * size) * 0.5
    streams = streams._replace(attributes=streams.attributes._replace(value=value[:, None]))
    predicate, admitted = PREDICATES["band"], admitted_all(streams)
    long = matching.matching_of(streams, np.array([10**6] * 2), predicate)
    short = long._replace(value=np.zeros(0))
    assert long.value.size
    for given in (long, short):
        given.position[:] = np.arange(2 * size)
    answers = []
    for given in (long, short):
        for begin, end in ((0, size), (5, 4200), (4000, 9000), (matching.BLOCK, size)):
            found = np.empty(size + 1, np.int64)
            number = matching.find_matches(
                streams, condition(predicate), admitted, given, 7, 1, size + begin, size + end,
                shred, found, 0,
            )  # fmt: skip
            answers.append(found[:number].tolist())
    assert answers[:4] == answers[4:]
    positions = np.arange(size)[::-1]
    read = np.floor((positions + 1) * shred) > np.floor(positions * shred)
    near = np.abs(value[size:] - value[7]) <= predicate.bound
    assert answers[0] == (size + np.flatnonzero(near & (read | (shred > 1)))).tolist()


@pytest.mark.parametrize("kind", ["band", "equi", "cosine"])
@pytest.mark.parametrize("start", [None, 30])
def test_spans_and_slices_make_no_difference(
    kind: str, start: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = random_streams(4, (300, 280, 310), kind, span=90)

    def run(**given: Any) -> tuple[list[Any], list[Any], int, float]:
        settings = HarvestSettings(3, throttle=0.4, adapt_every=4, shred=0.4)
        join = GrubJoin(
            streams, windows_of([9, 8, 11]), PREDICATES[kind], settings, [[1, 2], [2, 0], [0, 1]],
            start_ts=start, **given,
        )  # fmt: skip
        rows = [row for part in join.run() for row in part.members.tolist()]
        return rows, join.steps, join.peak, join.importance

    whole = run()
    assert whole[0]
    monkeypatch.setattr(untimed, "SPAN", 100)
    monkeypatch.setattr(untimed, "SLICE", 16)
    monkeypatch.setattr(untimed, "CHUNK", 7)
    assert run() == whole
    counted = run(emit=False)
    assert counted == ([], *whole[1:])
