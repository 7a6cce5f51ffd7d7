"""Star joins of several streams for tests, and one way to run them through the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import naive_star
import numpy as np
import pytest
from hypothesis import strategies as st
from replay_cases import IMPORTANCES, Rows, batch_of, parameters

from engine.facts.access import access_by
from engine.facts.relation import BEFORE, NEVER
from engine.lanes.profile import profile_side
from engine.replay.settings import UNLIMITED
from engine.star.index import StarFacts, star_index
from engine.star.lane import StarReplay
from engine.star.settings import StarSettings

Fact = tuple[tuple[int | None, ...], int | None, int | None, int]
"""(attributes, begin, end, what tells it apart)"""


class StarCase(NamedTuple):
    """One replay, in the oracle's terms."""

    streams: tuple[Rows, ...]
    facts: tuple[Fact, ...]
    windows: tuple[int, ...]
    budgets: tuple[int | None, ...]
    policy: str
    params: dict[str, Any]
    estimator: str = "memory"
    probe: str = "before_admission"
    combine: str = "min"
    start_ts: int | None = None
    seed: int = 0
    pooled: bool = False


class StarRun(NamedTuple):
    """What the engine did with a case."""

    outputs: list[naive_star.Output]
    retained: list[tuple[int, list[list[int]]]]
    peaks: list[int]
    importance: float
    counted: int
    by_bin: list[int]
    by_fact: dict[int, int]
    ages: list[list[int]]
    peak: int


def star_facts(facts: Sequence[Fact], streams: int) -> StarFacts:
    """Return facts as the engine has them, each once and none with a null."""
    kept = [i for i, fact in enumerate(facts) if fact not in facts[:i] and None not in fact[0]]
    values = np.array([facts[i][0] for i in kept], np.int64).reshape(-1, streams)
    begin = [BEFORE if facts[i][1] is None else facts[i][1] for i in kept]
    end = [NEVER if facts[i][2] is None else facts[i][2] for i in kept]
    return StarFacts(
        tuple(np.ascontiguousarray(column) for column in values.T),
        np.array(begin, np.int64),
        np.array(end, np.int64),
        np.array(kept, np.int64),
    )


def replayed(
    case: StarCase, *, emit: bool = True, step: bool = False, chunk: int = 4, ages: int = 0
) -> StarRun:
    """Replay a case; with `step` instant by instant, to see what is retained after each."""
    batches = [batch_of(rows) for rows in case.streams]
    facts = star_facts(case.facts, len(batches))
    groups = [
        access_by("hash", attribute).find(batch.key)
        for attribute, batch in zip(facts.attributes, batches, strict=True)
    ]
    index = star_index(batches, groups, facts)
    params = dict(case.params)
    curves = [None if c is None else np.array(c) for c in params.pop("curves", ())]
    settings = StarSettings(
        case.windows, policy=case.policy, parameters=params, estimator=case.estimator,
        probe=case.probe, combine=case.combine, start_ts=case.start_ts, seed=case.seed,
        pooled=case.pooled,
    )  # fmt: skip
    profiles = []
    for batch, window, until in zip(batches, case.windows, index.until, strict=True):
        profiles.append(profile_side([batch], window, lambda _, until=until: until))
    budgets = [UNLIMITED if k is None else k for k in case.budgets]
    rows = [batch.row for batch in batches]
    edges = np.arange(0, 26, 4)
    lane = StarReplay(
        settings, index, rows, profiles, budgets, curves=curves, emit=emit, edges=edges,
        age_buckets=ages, chunk=chunk,
    )  # fmt: skip
    outputs, retained = [], []
    instants = np.unique(np.concatenate([batch.ts for batch in batches])).tolist()
    for t in [*(instants if step else ()), None]:
        for out in lane.run() if t is None else lane.run(t + 1):
            for members, ts, importance, fact in zip(*out, strict=True):
                own = tuple(int(r[at]) for r, at in zip(rows, members, strict=True))
                outputs.append((own, int(ts), float(importance), int(facts.row[fact])))
        if t is not None:
            kept = zip(rows, lane.retained(), strict=True)
            retained.append((t, [sorted(r[at].tolist()) for r, at in kept]))
    outputs.sort(key=lambda output: (output[1], output[0], output[3]))
    counted = zip(facts.row[index.facts].tolist(), lane.by_fact.tolist(), strict=True)
    return StarRun(
        outputs, retained, list(lane.peaks), lane.importance, lane.outputs, lane.by_bin.tolist(),
        {f: n for f, n in counted if n}, lane.ages.tolist(), lane.peak,
    )  # fmt: skip


def expected(case: StarCase) -> naive_star.StarReplay:
    """Return what the oracle makes of a case."""
    return naive_star.replay_star(
        case.streams, case.facts, windows=case.windows, budgets=case.budgets, policy=case.policy,
        params=case.params, estimator=case.estimator, probe=case.probe, combine_name=case.combine,
        start_ts=case.start_ts, seed=case.seed, pooled=case.pooled,
    )  # fmt: skip


def check(case: StarCase) -> None:
    """Hold the engine equal to the oracle: rows, memories, peaks, and sums when only counting."""
    ref, comp = expected(case), replayed(case, step=True)
    assert comp.retained == ref.retained
    assert comp.outputs == ref.outputs
    assert comp.peaks == ref.peaks
    assert comp.peak == max((sum(map(len, rows)) for _, rows in ref.retained), default=0)
    counted = replayed(case, emit=False)
    assert counted.counted == comp.counted == len(ref.outputs)
    total = math.fsum(o[2] for o in ref.outputs)
    for run in (comp, counted):
        assert run.importance == pytest.approx(total, rel=1e-12, abs=1e-12)
    bins = np.zeros(7, np.int64)
    by_fact: dict[int, int] = {}
    for _, ts, _, fact in ref.outputs:
        bins[min(ts // 4, 6)] += 1
        by_fact[fact] = by_fact.get(fact, 0) + 1
    assert counted.by_bin == bins.tolist()
    assert counted.by_fact == by_fact


ESTIMATORS = ("memory", "window", "history")
PROBES = ("before_admission", "after_admission")
COMBINES = ("min", "sum", "product", "max", "mean")


@st.composite
def star_parameters(draw: Any, policy: str, streams: int) -> dict[str, Any]:
    """Draw legal parameters of a policy."""
    if policy != "age":
        found: dict[str, Any] = draw(parameters(policy))
        return found
    curve = st.lists(st.sampled_from([0.0, 1.0, 0.5, 3.0]), min_size=1, max_size=6)
    return {"curves": [draw(curve) for _ in range(streams)]}


@st.composite
def star_cases(
    draw: Any, policy: str, estimator: str | None = None, probe: str | None = None
) -> StarCase:
    """Draw a case of 2 to 4 streams: ties, gaps, nulls, a relation that changes."""
    streams = draw(st.sampled_from([2, 3, 3, 3, 4]))
    key = st.sampled_from([0, 0, 1, 2, None])
    row = st.tuples(st.integers(0, draw(st.sampled_from([4, 12, 25]))), key, IMPORTANCES)
    tables = [draw(st.lists(row, max_size=36 // streams)) for _ in range(streams)]
    tick = st.one_of(st.none(), st.integers(0, 26))
    values = st.tuples(*[st.sampled_from([0, 0, 1, 2, 2, None])] * streams)
    fact = st.tuples(values, tick, tick, st.integers(0, 1)).filter(
        lambda f: f[1] is None or f[2] is None or f[1] < f[2]
    )
    facts = draw(st.lists(fact, max_size=draw(st.sampled_from([3, 8, 14]))))
    budget = st.one_of(st.integers(0, 4), st.integers(0, 4), st.none())
    return StarCase(
        tuple(tables),
        tuple(facts),
        tuple(draw(st.sampled_from([0, 2, 5, 9, 40])) for _ in range(streams)),
        tuple(draw(budget) for _ in range(streams)),
        policy,
        draw(star_parameters(policy, streams)),
        estimator or draw(st.sampled_from(ESTIMATORS)),
        probe or draw(st.sampled_from(PROBES)),
        draw(st.sampled_from(COMBINES)),
        draw(st.one_of(st.none(), st.integers(0, 25))),
        draw(st.integers(0, 3)),
    )


def busy_star(policy: str, seed: int, streams: int = 3, size: int = 40) -> StarCase:
    """Return streams of many rows an instant, few keys, small budgets, facts that come and go."""
    rng = np.random.default_rng([seed, 7])
    span = int(rng.choice([8, 20, 25]))
    levels = [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.5, 1.0], list(rng.random(50) * 3)][seed % 4]
    tables = [
        [
            (
                int(rng.integers(0, span)),
                None if rng.random() < 0.03 else int(rng.integers(0, 3)),
                float(rng.choice(levels)),
            )
            for _ in range(size)
        ]
        for _ in range(streams)
    ]
    facts: list[Fact] = []
    for i in range(14):
        begin, end = sorted(rng.choice(span + 2, 2, replace=False).tolist())
        facts.append(
            (
                tuple(int(rng.integers(0, 3)) for _ in range(streams)),
                None if rng.random() < 0.5 else begin,
                None if rng.random() < 0.5 else end,
                i % 3,
            )
        )
    params: dict[str, Any] = {}
    if policy == "dgl":
        params = [{}, {"beta": 0.3}, {"beta": 0.1, "alpha": 2.0}, {"initial": "importance"}][
            seed // 2 % 4
        ]
    elif policy in {"additive", "multiplicative", "prob"} and seed % 3 == 0:
        params = {"ties": "importance"}
    elif policy == "age":
        params = {"curves": [rng.integers(0, 4, 4).astype(float).tolist() for _ in range(streams)]}
    elif policy == "custom":
        from replay_cases import CUSTOM  # noqa: PLC0415

        params = {"function": CUSTOM[seed // 2 % 3], "ties": ("ts", "importance")[seed // 2 % 2]}
    return StarCase(
        tuple(tables),
        tuple(facts),
        tuple(int(rng.choice([3, 6, 10])) for _ in range(streams)),
        tuple(int(rng.integers(1, 9)) for _ in range(streams)),
        policy,
        params,
        ESTIMATORS[seed % 3],
        PROBES[seed // 3 % 2],
        COMBINES[seed % 5],
        seed=seed,
    )
