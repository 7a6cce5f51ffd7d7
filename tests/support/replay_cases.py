"""Streams and settings for the replay tests, and one way to run them through the engine."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import naive
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from engine.facts.index import FactIndex, fact_index
from engine.facts.key_links import KeyLinks
from engine.facts.links import Links
from engine.facts.relation import BEFORE, NEVER, Facts
from engine.lanes.profile import LaneProfile, profile_side
from engine.policies import POLICIES
from engine.replay.lane import LaneReplay
from engine.replay.ranks import RetentionPlan
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.streams import StreamBatch

Rows = list[tuple[int, int | None, float]]
Fact = tuple[int, int, int | None, int | None, int]
"""(a, b, begin, end, what tells it apart)"""


class Case(NamedTuple):
    """One replay, in the oracle's terms."""

    left: Rows
    right: Rows
    windows: tuple[int, int]
    budgets: tuple[int | None, int | None]
    policy: str
    params: dict[str, Any]
    estimator: str = "memory"
    probe: str = "before_admission"
    combine: str = "min"
    start_ts: int | None = None
    seed: int = 0
    fact: tuple[Fact, ...] | None = None
    pooled: bool = False


def batch_of(rows: Rows) -> StreamBatch:
    """Return the rows that take part, in arrival order."""
    order = sorted(
        (i for i, row in enumerate(rows) if row[1] is not None), key=lambda i: (rows[i][0], i)
    )
    return StreamBatch(
        np.array([rows[i][0] for i in order], np.int64),
        np.array(order, np.int64),
        np.array([rows[i][1] for i in order], np.int64),
        np.array([rows[i][2] for i in order], np.float64),
    )


def cut(batch: StreamBatch, begin: int, end: int) -> StreamBatch:
    """Return the rows from tick `begin` on, before `end`."""
    low, high = np.searchsorted(batch.ts, [begin, end])
    return StreamBatch(*(array[low:high] for array in batch))


class Run(NamedTuple):
    """What the engine did with a case."""

    outputs: list[tuple[Any, ...]]
    retained: list[tuple[int, list[int], list[int]]]
    peaks: tuple[int, int]
    importance: float
    counted: int
    peak: int


class CaseArguments(NamedTuple):
    """A case in the engine's terms."""

    settings: ReplaySettings
    profile: LaneProfile
    budget: Any
    curves: Any


def case_arguments(case: Case) -> CaseArguments:
    """Return what a lane's replay is given for a case."""
    left, right = batch_of(case.left), batch_of(case.right)
    settings = ReplaySettings(
        *case.windows,
        policy=case.policy,
        parameters=case.params,
        estimator=case.estimator,
        probe=case.probe,
        combine=case.combine,
        start_ts=case.start_ts,
        seed=case.seed,
        pooled=case.pooled,
    )
    profile = LaneProfile(
        profile_side([left], case.windows[0]), profile_side([right], case.windows[1])
    )
    budget = (UNLIMITED if b is None else b for b in case.budgets)
    curves = (
        np.array(case.params[name]) if name in case.params else None
        for name in ("curve_left", "curve_right")
    )
    return CaseArguments(settings, profile, tuple(budget), tuple(curves))


def expected(case: Case, **given: Any) -> naive.Replay:
    """Return what the oracle makes of a case; `given` are more of its arguments."""
    return naive.replay(
        case.left,
        case.right,
        window_left=case.windows[0],
        window_right=case.windows[1],
        budget_left=case.budgets[0],
        budget_right=case.budgets[1],
        policy=case.policy,
        params=case.params,
        estimator=case.estimator,
        probe=case.probe,
        combine_name=case.combine,
        start_ts=case.start_ts,
        seed=case.seed,
        fact=case.fact,
        pooled=case.pooled,
        **given,
    )


class Keys(NamedTuple):
    """Dense ids of a case's keys, and through facts what they join and the facts' rows."""

    ids: Callable[[int, StreamBatch], NDArray[np.int32]]
    size: int
    key_links: tuple[KeyLinks, KeyLinks] | None = None
    rows: NDArray[np.int64] | None = None
    index: FactIndex | None = None


def facts_of(case: Case) -> Facts:
    """Return the facts of a case, each once."""
    once = {fact: i for i, fact in reversed(list(enumerate(case.fact or ())))}
    rows = sorted(
        (a, b, BEFORE if begin is None else begin, NEVER if end is None else end, i)
        for (a, b, begin, end, _), i in once.items()
    )
    return Facts(*(np.array(column, np.int64) for column in np.array(rows).reshape(-1, 5).T))


def keys_of(case: Case, left: StreamBatch, right: StreamBatch) -> Keys:
    """Return the ids of both streams' keys."""
    if case.fact is None:
        names = np.unique(np.r_[left.key, right.key])
        return Keys(lambda _, batch: np.searchsorted(names, batch.key).astype(np.int32), names.size)
    facts = facts_of(case)
    lane = [(left.ts, left.key)], [(right.ts, right.key)]
    index = fact_index(facts)
    links = Links(index, lane, None if case.estimator == "history" else case.windows)
    return Keys(
        lambda side, batch: links.ids(side, batch.ts, batch.key),
        links.size,
        links.key_links,
        facts.row,
        index,
    )


def run(
    case: Case,
    *,
    emit: bool = True,
    step: int | None = None,
    chunk: int = 4,
    plan: RetentionPlan | None = None,
    spares: bool | None = None,
) -> Run:
    """Replay a case in batches of `step` ticks (None: one batch), by its policy or by a plan."""
    left, right = batch_of(case.left), batch_of(case.right)
    settings, profile, budget, curves = case_arguments(case)
    keys = keys_of(case, left, right)
    lane = LaneReplay(
        settings, profile, budget, curves=curves, emit=emit, chunk=chunk, plan=plan,
        key_links=keys.key_links, facts=keys.index, spares=spares,
    )  # fmt: skip
    instants = np.unique(np.r_[left.ts, right.ts])
    edges = [] if instants.size == 0 else [int(instants[0]), int(instants[-1]) + 1]
    if step and edges:
        edges = [*range(edges[0], edges[1], step), edges[1]]
    outputs, retained = [], []
    for begin, end in pairwise(edges):
        a, b = cut(left, begin, end), cut(right, begin, end)
        for out in lane.push(a, keys.ids(0, a), b, keys.ids(1, b), keys.size):
            columns = [out.left_row, out.right_row, out.ts, out.importance]
            if keys.rows is not None:
                columns.append(keys.rows[out.fact])
            outputs += list(zip(*(x.tolist() for x in columns), strict=True))
        if step == 1 and a.ts.size + b.ts.size:
            rows = lane.retained()
            retained.append((begin, rows[0].tolist(), rows[1].tolist()))
    outputs.sort(key=lambda o: (o[2], o[0], o[1], *o[4:]))
    return Run(outputs, retained, lane.peaks, lane.importance, lane.outputs, lane.peak)


IMPORTANCES = st.sampled_from([0.0, 0.1, 0.25, 1.0, 1.0, 2.0, 3.0, 7.0, 0.3])
SCORE = (0.5, 2.0, 0.25)
SIZES = {"counters": [4, 8], "sample": [4, 8], "buckets": [1, 3, 40]}
"""Of what `yield` remembers."""


def rows(max_size: int = 40) -> st.SearchStrategy[Rows]:
    """Streams with ties, gaps, few keys, nulls, and rows out of order."""
    row = st.tuples(st.integers(0, 25), st.sampled_from([0, 0, 1, 2, 3, 4, None]), IMPORTANCES)
    return st.lists(row, max_size=max_size)


@st.composite
def parameters(draw: Any, policy: str) -> dict[str, Any]:
    """Draw legal parameters of a policy."""
    if policy in {"additive", "multiplicative"}:
        chosen = {
            name: draw(st.sampled_from([0.0, 0.5, 1.0, 2.0]))
            for name in draw(st.sets(st.sampled_from("ABD")))
        }
        if draw(st.booleans()):
            chosen["ties"] = draw(st.sampled_from(["ts", "importance"]))
        return chosen
    if policy == "prob":
        return {"ties": "importance"} if draw(st.booleans()) else {}
    if policy == "dgl":
        chosen = {}
        if draw(st.booleans()):
            chosen["alpha"] = draw(st.sampled_from([0.5, 1.0, 3.0, 100.0]))
        if draw(st.booleans()):
            chosen["beta"] = draw(st.sampled_from([0.0, 0.1, 0.3, 1.0, 5.0]))
        if draw(st.booleans()):
            chosen["initial"] = draw(st.sampled_from(["simpprob", "importance"]))
        return chosen
    if policy == "age":
        curve = st.lists(st.sampled_from([0.0, 1.0, 0.5, 3.0]), min_size=1, max_size=12)
        return {"curve_left": draw(curve), "curve_right": draw(curve)}
    if policy == "custom":
        ties = draw(st.sampled_from(["ts", "importance"]))
        return {"function": draw(st.sampled_from(CUSTOM)), "ties": ties}
    names = draw(st.sets(st.sampled_from(sorted(SIZES)))) if policy == "yield" else ()
    return {name: draw(st.sampled_from(SIZES[name])) for name in sorted(names)}


def cumulative(
    imp: float,
    m: float,  # noqa: ARG001
    age: float,  # noqa: ARG001
    lifetime: float,  # noqa: ARG001
    previous: float,
    produced: float,
) -> float:
    """Return a rolling average of what the tuple produced (P1 3.2, cumulative)."""
    return 0.5 * previous + imp * produced


def remaining(
    imp: float,
    m: float,
    age: float,
    lifetime: float,
    previous: float,  # noqa: ARG001
    produced: float,  # noqa: ARG001
) -> float:
    """Return what is still to be had at the present rate."""
    return imp * m * (lifetime - age) / lifetime


def undefined(
    imp: float,
    m: float,  # noqa: ARG001
    age: float,
    lifetime: float,
    previous: float,  # noqa: ARG001
    produced: float,
) -> float:
    """Return a priority that is not a number for a tuple with outputs at this instant."""
    return np.nan if produced > 0.0 else imp * (lifetime - age)


CUSTOM = [cumulative, remaining, undefined]


@st.composite
def cases(draw: Any, policy: str | None = None, max_rows: int = 40) -> Case:
    """Draw a whole case."""
    chosen = policy or draw(st.sampled_from(sorted(POLICIES)))
    window = draw(st.sampled_from([0, 1, 3, 7, 12, 40])), draw(st.sampled_from([0, 2, 5, 9, 40]))
    budget = st.one_of(st.integers(0, 12), st.none())
    return Case(
        draw(rows(max_rows)),
        draw(rows(max_rows)),
        window,
        (draw(budget), draw(budget)),
        chosen,
        draw(parameters(chosen)),
        draw(st.sampled_from(["memory", "window", "history"])),
        draw(st.sampled_from(["before_admission", "after_admission"])),
        draw(st.sampled_from(["min", "sum", "product", "max", "mean"])),
        draw(st.one_of(st.none(), st.integers(0, 25))),
        draw(st.integers(0, 3)),
    )


def pooled(case: Case) -> Case:
    """Return a case of one memory, which its policy can have."""
    case = case._replace(pooled=True, budgets=(case.budgets[0] or 3, case.budgets[1] or 0))
    if case.policy == "age":
        curve = case.params["curve_left"]
        other = (case.params["curve_right"] * len(curve))[: len(curve)]
        params = {**case.params, "curve_right": other}
        case = case._replace(windows=(case.windows[0],) * 2, params=params)
    if case.policy == "dimpprob" and case.estimator == "history":
        case = case._replace(estimator="memory")
    return case


ESTIMATORS = ("memory", "window", "history")
PROBES = ("before_admission", "after_admission")


def busy(policy: str, seed: int) -> Case:
    """Return 2 x 150 rows, many an instant, few keys, small budgets and much-tied importances."""
    rng = np.random.default_rng(seed)
    span = int(rng.choice([20, 60, 150]))
    levels = [[1.0], [1.0, 2.0, 3.0], [0.0, 0.0, 0.5, 1.0], list(rng.random(50) * 3)][seed % 4]
    keys = int(rng.choice([2, 4, 9]))

    def stream() -> list[tuple[int, int | None, float]]:
        ts = rng.integers(0, span, 150)
        if rng.random() < 0.5:
            ts = np.sort(ts)
        skewed = np.minimum(rng.geometric(0.4, 150) - 1, keys - 1)
        return [
            (int(t), None if rng.random() < 0.03 else int(k), float(rng.choice(levels)))
            for t, k in zip(ts, skewed, strict=True)
        ]

    params: dict[str, Any] = {}
    if policy == "dgl":
        params = [{}, {"beta": 0.3}, {"beta": 0.1, "alpha": 2.0}, {"initial": "importance"}][
            seed // 4 % 4
        ]
    elif policy in {"additive", "multiplicative", "prob"} and seed % 3 == 0:
        params = {"ties": "importance"}
    elif policy == "age":
        n = int(rng.choice([1, 4, 13]))
        params = {
            "curve_left": rng.integers(0, 4, n).astype(float).tolist(),
            "curve_right": rng.integers(0, 4, n).astype(float).tolist(),
        }
    elif policy == "custom":
        params = {"function": CUSTOM[seed // 2 % 3], "ties": ("ts", "importance")[seed // 2 % 2]}
    return Case(
        stream(),
        stream(),
        (int(rng.choice([3, 10, 40])), int(rng.choice([3, 10, 40]))),
        (int(rng.integers(1, 12)), int(rng.integers(1, 12))),
        policy,
        params,
        ESTIMATORS[seed % 3],
        PROBES[seed // 3 % 2],
        seed=seed,
    )


def apart(case: Case, seed: int) -> Case:
    """Return a case in which most tuples, in their order, have an instant to themselves."""
    rng = np.random.default_rng(seed)
    streams = list(case.left), list(case.right)
    order = sorted((row[0], side, i) for side in (0, 1) for i, row in enumerate(streams[side]))
    now = 0
    for _, side, i in order:
        now += int(rng.random() < 0.9)
        streams[side][i] = (now, *streams[side][i][1:])
    return case._replace(
        left=streams[0],
        right=streams[1],
        windows=(4 * case.windows[0], 4 * case.windows[1]),
        estimator="memory",
        probe="before_admission",
        start_ts=(None, now // 3)[seed % 2],
    )


def long_stream(rng: np.random.Generator, *, tied: bool) -> list[tuple[int, int | None, float]]:
    """Return 700 rows over 400 ticks and 26 keys."""
    ts = np.sort(rng.integers(0, 400, 700))
    keys = np.minimum(rng.geometric(0.15, 700) - 1, 25)
    levels = rng.choice([0.0, 1.0, 2.0, 5.0], 700) if tied else rng.random(700)
    return [(int(t), int(k), float(x)) for t, k, x in zip(ts, keys, levels, strict=True)]


@st.composite
def fact_cases(draw: Any, policy: str, max_rows: int = 40) -> Case:
    """Draw a case through a relation that changes: few attributes, several facts a pair."""
    tick = st.one_of(st.none(), st.integers(0, 26))
    attribute = st.integers(0, 4)
    fact = st.tuples(attribute, attribute, tick, tick, st.integers(0, 1)).filter(
        lambda f: f[2] is None or f[3] is None or f[2] < f[3]
    )
    facts = draw(st.lists(fact, max_size=draw(st.sampled_from([3, 12, 30]))))
    return draw(cases(policy, max_rows))._replace(fact=tuple(facts))


def busy_facts(policy: str, seed: int) -> Case:
    """Return a busy case whose keys are joined by 40 facts, of which many come and go."""
    rng = np.random.default_rng([seed, 5])
    case = busy(policy, seed)
    span = 1 + max(row[0] for row in case.left)
    facts = []
    for i in range(40):
        begin, end = sorted(rng.choice(span + 2, 2, replace=False).tolist())
        facts.append(
            (
                int(rng.integers(0, 5)),
                int(rng.integers(0, 5)),
                None if rng.random() < 0.3 else begin,
                None if rng.random() < 0.3 else end,
                i % 3,
            )
        )
    return case._replace(fact=tuple(facts))
