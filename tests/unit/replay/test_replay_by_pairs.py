"""Replays under any predicate, by pairs or by value, against the naive replay."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from replay_cases import Case, apart, batch_of, busy, case_arguments, expected, pooled
from thorough import THOROUGH, guarded, of_each_kind

from engine.facts.key_links import KeyLinks
from engine.lanes.profile import LaneProfile, profile_side
from engine.multiway.exact.join import ExactJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, no_attributes, windows_of
from engine.policies import POLICIES
from engine.replay import by_pairs, by_ranks
from engine.replay.by_pairs import arrivals_of, replay_pairs
from engine.replay.by_ranks import replay_band
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError
from engine.runtime.jit import Ints
from engine.runtime.streams import StreamBatch

BAND = 1
SPARES = not of_each_kind()
ALONE = "age", "custom"
"""Each with kernels that no other policy uses, which take longest to compile."""
POLICIES_BY_PAIRS = [
    *sorted(set(POLICIES) - {"yield", *ALONE}),
    *guarded(ALONE, "engine/replay", "engine/facts", "tests/unit/replay/test_replay_by_pairs.py"),
]
SEEDS = range(24 if THOROUGH else 8)


def meets(a: int, b: int) -> bool:
    return abs(a - b) <= BAND


def pairs_of(left: StreamBatch, right: StreamBatch, windows: tuple[int, int]) -> Iterator[Ints]:
    """Return the pairs of the exact band join, a few at once."""
    both = [np.concatenate(own) for own in zip(left, right, strict=True)]
    ts, row, key, importance = both
    own = no_attributes(ts.size)._replace(value=key.astype(np.float64)[:, None])
    first = np.array([0, left.ts.size, ts.size])
    streams = MultiStreams(first, ts, row, importance, own)
    return ExactJoin(streams, windows_of(windows), Predicate("band", ("k",), BAND)).members(5)


def check(case: Case, emit: bool = True, *, ranked: bool = False) -> None:
    ref = expected(case, meets=meets)
    left, right = batch_of(case.left), batch_of(case.right)
    settings, profile, budget, curves = case_arguments(case)
    lane = LaneReplay(settings, profile, budget, curves=curves, emit=emit, chunk=4, spares=SPARES)
    found = []
    arrivals, values = arrivals_of(left, right), (left.key * 1.0, right.key * 1.0)
    if ranked:
        outputs = replay_band(lane, arrivals, values, BAND)
    else:
        outputs = replay_pairs(lane, arrivals, pairs_of(left, right, case.windows))
    for out in outputs:
        assert (left.row[out.left_seq] == out.left_row).all()
        assert (right.row[out.right_seq] == out.right_row).all()
        columns = (out.left_row, out.right_row, out.ts, out.importance)
        found += zip(*(own.tolist() for own in columns), strict=True)
    if emit:
        assert sorted(found, key=lambda o: (o[2], o[0], o[1])) == ref.outputs
    assert lane.outputs == len(ref.outputs)
    assert lane.importance == pytest.approx(math.fsum(o[3] for o in ref.outputs), rel=1e-12)
    assert lane.peaks == (ref.peak_left, ref.peak_right)
    if ref.retained:
        assert [own.tolist() for own in lane.retained()] == list(ref.retained[-1][1:])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", POLICIES_BY_PAIRS)
def test_equals_the_oracle(policy: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_pairs, "PART_PAIRS", (1, 20, 1 << 22)[seed % 3])
    case = busy(policy, seed)
    if case.estimator == "history":
        case = case._replace(estimator=("memory", "window")[seed % 2])
    case = apart(case, seed) if seed % 4 == 3 else case
    case = pooled(case) if seed % 2 else case
    check(case, emit=seed % 5 != 4)
    for size in (1, 7, 1 << 14):
        monkeypatch.setattr(by_ranks, "PART_TUPLES", size)
        monkeypatch.setattr(by_ranks, "_TURNS", 0 if size == 1 else 3)
        check(case, emit=seed % 5 != 4, ranked=True)


@pytest.mark.parametrize("policy", ["prob", "dimpprob"])
def test_a_band_of_any_numbers_is_that_of_the_exact_join(policy: str) -> None:
    """Of infinite values, both zeros, and differences that rounding makes EPS."""
    rng = np.random.default_rng(3)
    choice = [-np.inf, np.inf, -0.0, 0.0, 0.1, 0.2, 0.3, 1e300, *rng.normal(0, 0.3, 20)]
    size, windows = 400, (30, 17)
    sides = [
        StreamBatch(
            np.sort(rng.integers(0, 300, size)), np.arange(size), np.zeros(size, np.int64),
            rng.integers(0, 5, size) / 4,
        )
        for _ in range(2)
    ]  # fmt: skip
    values = [rng.choice(choice, size) for _ in range(2)]
    ts, row, _, importance = (np.concatenate(own) for own in zip(*sides, strict=True))
    column = np.concatenate(values)[:, None]
    streams = MultiStreams(
        np.array([0, size, 2 * size]), ts, row, importance,
        no_attributes(2 * size)._replace(value=column),
    )  # fmt: skip
    exact = ExactJoin(streams, windows_of(windows), Predicate("band", ("v",), 0.1))
    profile = LaneProfile(*(profile_side([own], w) for own, w in zip(sides, windows, strict=True)))
    found = []
    for ranked in (False, True):
        lane = LaneReplay(ReplaySettings(*windows, policy=policy), profile, (9, 5))
        arrivals = arrivals_of(*sides)
        if ranked:
            outputs = replay_band(lane, arrivals, (values[0], values[1]), 0.1)
        else:
            outputs = replay_pairs(lane, arrivals, exact.members())
        found.append(
            [pair for out in outputs for pair in zip(out.left_row, out.right_row, strict=True)]
        )
        assert len(found[-1]) == lane.outputs > 100
    assert sorted(found[0]) == sorted(found[1])


@pytest.mark.parametrize("ranked", [False, True])
def test_more_tuples_at_once_than_ids_are_refused(
    monkeypatch: pytest.MonkeyPatch, *, ranked: bool
) -> None:
    monkeypatch.setattr(by_ranks if ranked else by_pairs, "_MOST", 9)
    told = r"tuples (are unexpired|match within).*join shorter windows"
    with pytest.raises(SpecError, match=told):
        check(busy("prob", 1), ranked=ranked)


def test_no_more_pairs_are_linked_the_longer_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tuple a tick on either side, all of which match: 110 pairs are unexpired at a time."""
    monkeypatch.setattr(by_pairs, "PART_PAIRS", 1)
    linked, link = [], LaneReplay.link

    def counting(
        lane: LaneReplay, links: tuple[KeyLinks, KeyLinks], new: tuple[Ints, Ints]
    ) -> None:
        linked.append(links[0].other.size // 2)
        link(lane, links, new)

    monkeypatch.setattr(LaneReplay, "link", counting)
    ticks, windows = np.arange(400), (9, 9)
    none = np.zeros(400, np.int64)
    batch = StreamBatch(ticks, ticks, none, np.ones(400))
    profile = LaneProfile(profile_side([batch], 9), profile_side([batch], 9))
    lane = LaneReplay(ReplaySettings(*windows, policy="prob"), profile, (4, 4), emit=False)
    for _ in replay_pairs(lane, arrivals_of(batch, batch), pairs_of(batch, batch, windows)):
        pass
    assert max(linked) < 300
