"""Exact joins against the definition: every pair, by brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from thorough import THOROUGH

from engine.exact import COMBINES, ExactStream, all_pairs, count_pairs, emit_pairs, slices
from engine.runtime.errors import SpecError
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import StreamBatch

RULES = {
    "min": min,
    "sum": lambda x, y: x + y,
    "product": lambda x, y: x * y,
    "max": max,
    "mean": lambda x, y: (x + y) / 2,
}


def joined(chunks: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    none = np.zeros(0, np.int64)
    return tuple(np.concatenate([none, *(chunk[i] for chunk in chunks)]) for i in (0, 1))


class Case(NamedTuple):
    """One join."""

    left: StreamBatch
    right: StreamBatch
    windows: tuple[int, int]
    combine: str
    start_ts: int | None


def stream(ts: list[int], keys: list[int], importance: list[float]) -> StreamBatch:
    order = np.arange(len(ts))
    return StreamBatch(
        np.sort(np.array(ts, np.int64)),
        order,
        np.array(keys, np.int64),
        np.array(importance, np.float64),
    )


def brute(case: Case) -> list[tuple[int, int, int]]:
    """Every (time, left index, right index) of the exact result, in order (contract, 1)."""
    pairs = []
    for i, (t, k) in enumerate(zip(case.left.ts, case.left.key, strict=True)):
        for j, (u, other) in enumerate(zip(case.right.ts, case.right.key, strict=True)):
            near = u - t <= case.windows[0] if t <= u else t - u <= case.windows[1]
            late = case.start_ts is None or max(t, u) >= case.start_ts
            if k == other and near and late:
                pairs.append((int(max(t, u)), i, j))
    return sorted(pairs)


def gain(case: Case, pair: tuple[int, int, int]) -> float:
    _, i, j = pair
    return RULES[case.combine](case.left.importance[i], case.right.importance[j])


@st.composite
def streams(draw, keys, top: int) -> StreamBatch:  # noqa: ANN001
    size = draw(st.integers(0, 40))
    times = st.integers(-5, top)
    weights = st.sampled_from([0.0, 0.5, 1.0, 3.25]) | st.floats(0, 1e6)

    def some(values) -> list:  # noqa: ANN001
        return draw(st.lists(values, min_size=size, max_size=size))

    return stream(some(times), some(keys), some(weights))


@st.composite
def cases(draw) -> Case:  # noqa: ANN001
    keys = st.sampled_from(draw(st.sampled_from([[0], [1, 2, 3], [-(2**62), 0, 7, 2**61]])))
    top = draw(st.sampled_from([0, 5, 60]))
    window = st.sampled_from([0, 1, 4, 15, 1000])
    return Case(
        draw(streams(keys, top)),
        draw(streams(keys, top)),
        (draw(window), draw(window)),
        draw(st.sampled_from(COMBINES)),
        draw(st.none() | st.integers(-6, top + 1)),
    )


many = settings(deadline=None, max_examples=150 if THOROUGH else 50)


def between(batch: StreamBatch, begin: float, end: float) -> StreamBatch:
    inside = (batch.ts >= begin) & (batch.ts < end)
    return StreamBatch(*(column[inside] for column in batch))


class Streamed(NamedTuple):
    """A join done in batches: totals by key code."""

    join: ExactStream
    outputs: dict[int, int]
    importance: dict[int, float]


def run_stream(case: Case, cuts: list[int], *, forget: bool = False, **options: object) -> Streamed:
    """Push the case cut at `cuts`; `forget` drops and renumbers expired keys before each batch."""
    join = ExactStream(*case.windows, case.combine, case.start_ts, **options)
    table, by_code, gains = KeyTable(), {}, {}
    edges = [-math.inf, *sorted(set(cuts)), math.inf]
    for begin, end in itertools.pairwise(edges):
        left, right = between(case.left, begin, end), between(case.right, begin, end)
        if forget and begin > -math.inf:
            old_to_new = table.keep(join.live_ids(table.size, int(begin)))
            join.remap(old_to_new)
        ids = table.intern(left.key), table.intern(right.key).astype(np.int64)
        outputs, importance = np.zeros(table.size + 3, np.int64), np.zeros(table.size + 3)
        join.push(left, ids[0], right, ids[1], outputs, importance)
        for code, n, value in zip(table.keys.tolist(), outputs, importance, strict=False):
            by_code[code] = by_code.get(code, 0) + int(n)
            gains[code] = gains.get(code, 0.0) + float(value)
    return Streamed(join, by_code, gains)


@many
@given(cases(), st.lists(st.integers(-5, 60), max_size=6), st.booleans())
def test_stream_equals_brute_force_whatever_the_batches(
    case: Case, cuts: list[int], forget: bool
) -> None:
    pairs = brute(case)
    ran = run_stream(case, cuts, forget=forget)
    assert ran.join.outputs == len(pairs)
    assert ran.join.importance == pytest.approx(math.fsum(gain(case, p) for p in pairs), rel=1e-12)
    for code, outputs in ran.outputs.items():
        mine = [p for p in pairs if case.left.key[p[1]] == code]
        assert outputs == len(mine)
        assert ran.importance[code] == pytest.approx(math.fsum(gain(case, p) for p in mine))
    whole = run_stream(case, [])
    assert ran.join.importance == whole.join.importance


@many
@given(
    cases(),
    st.lists(st.integers(-5, 60), max_size=4),
    st.lists(st.integers(-8, 62), unique=True, max_size=5),
    st.integers(1, 7),
)
def test_stream_tallies_by_time_and_age(
    case: Case, cuts: list[int], edges: list[int], buckets: int
) -> None:
    edges = sorted(edges)
    options = {"time_bins": np.array(edges, np.int64), "age_buckets": buckets}
    join = run_stream(case, cuts, **options).join
    outputs, importance = [0] * len(edges), [0.0] * len(edges)
    ages = [0] * buckets, [0] * buckets
    for pair in brute(case):
        place = int(np.searchsorted(edges, pair[0], side="right")) - 1
        if place >= 0:
            outputs[place] += 1
            importance[place] += gain(case, pair)
        age = int(case.right.ts[pair[2]] - case.left.ts[pair[1]])
        if age:
            side = 0 if age > 0 else 1
            ages[side][(abs(age) - 1) * buckets // case.windows[side]] += 1
    assert join.outputs_by_bin.tolist() == outputs
    assert join.importance_by_bin.tolist() == pytest.approx(importance, rel=1e-12)
    assert (join.ages_left.tolist(), join.ages_right.tolist()) == ages


def test_stream_holds_a_window_longer_than_many_batches() -> None:
    rng = np.random.default_rng(7)
    size = 6000
    sides = [
        stream(list(range(size)), list(rng.integers(0, 40, size)), list(rng.random(size)))
        for _ in range(2)
    ]
    case = Case(sides[0], sides[1], (2500, 700), "min", 500)
    cut = run_stream(case, list(range(100, size, 170)))
    whole = run_stream(case, [])
    assert (cut.join.outputs, cut.join.importance) == (whole.join.outputs, whole.join.importance)
    assert cut.outputs == whole.outputs
    assert len(cut.join._ring.ts) <= 2 * 4096  # noqa: SLF001 - the bound on memory


def test_keys_return_after_they_were_forgotten() -> None:
    case = Case(stream([0, 50, 51], [5, 5, 6], [1] * 3), stream([1, 52], [5, 5], [1] * 2), (3, 3),
                "sum", None)  # fmt: skip
    ran = run_stream(case, [20, 51], forget=True)
    assert ran.outputs == {5: 2, 6: 0}


def in_order(case: Case) -> list[list[int]]:
    """List the pairs in arrival order of the later member, then of the earlier one."""

    def rank(pair: tuple[int, int, int]) -> tuple[int, int, int, int]:
        _, i, j = pair
        left_is_later = case.left.ts[i] > case.right.ts[j]
        return (pair[0], 0, i, j) if left_is_later else (pair[0], 1, j, i)

    return [[i, j] for _, i, j in sorted(brute(case), key=rank)]


@pytest.fixture(params=[False, True], ids=["few-slices", "many-slices"])
def sliced(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Small inputs are cut into slices, too, and hashed unless keys are few."""
    if request.param:
        monkeypatch.setattr(slices, "_FEW", 1)
        monkeypatch.setattr(slices, "_HEADS", 4)
    return request.param


cut = settings(many, suppress_health_check=[HealthCheck.function_scoped_fixture])


@cut
@pytest.mark.usefixtures("sliced")
@given(cases(), st.integers(1, 3))
def test_count_equals_brute_force(case: Case, threads: int) -> None:
    pairs = brute(case)
    count = count_pairs(*case[:2], *case.windows, case.combine, case.start_ts, threads)
    assert count.outputs == len(pairs)
    assert count.importance == pytest.approx(math.fsum(gain(case, p) for p in pairs), rel=1e-12)


@cut
@pytest.mark.usefixtures("sliced")
@given(cases(), st.integers(1, 3))
def test_pairs_equal_brute_force_in_order(case: Case, threads: int) -> None:
    options = {"start_ts": case.start_ts, "threads": threads}
    left, right = joined(all_pairs(*case[:2], *case.windows, **options))
    assert left.dtype == right.dtype == np.int64
    assert np.stack([left, right], 1).tolist() == in_order(case)


def dense(size: int, keys: int, seed: int, *, narrow: bool = False) -> StreamBatch:
    rng = np.random.default_rng(seed)
    importance = rng.random(size, dtype=np.float32) if narrow else rng.random(size)
    ts = np.sort(rng.integers(0, size, size))
    return StreamBatch(ts, ts, rng.integers(0, keys, size) * 10**12, importance.astype(float))


@pytest.mark.parametrize(("size", "keys", "window"), [(70_000, 9_000, 30_000), (9_000, 1, 4_000)])
@pytest.mark.parametrize("narrow", [False, True])
def test_all_forms_agree_on_long_streams(
    size: int, keys: int, window: int, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(
        dense(size, keys, 1, narrow=narrow), dense(size // 3, keys, 2), (window, window // 2),
        "sum", size // 5,
    )  # fmt: skip
    whole = run_stream(case, []).join
    monkeypatch.setattr(slices.Slice, "slots", lambda *_: 2048)  # the ring has to grow
    for threads in (1, 2, 3):
        count = count_pairs(*case[:2], *case.windows, case.combine, case.start_ts, threads)
        assert count.outputs == whole.outputs
        assert count.importance == pytest.approx(whole.importance, rel=1e-12)
    chunks = all_pairs(*case[:2], *case.windows, start_ts=case.start_ts, threads=1)
    pairs = np.stack(joined(chunks))
    times = np.maximum(case.left.ts[pairs[0]], case.right.ts[pairs[1]])
    assert (np.diff(times) >= 0).all()
    assert (case.left.key[pairs[0]] == case.right.key[pairs[1]]).all()
    gains = case.left.importance[pairs[0]] + case.right.importance[pairs[1]]
    assert gains.sum() == pytest.approx(whole.importance, rel=1e-9)
    for threads, chunk in ((1, 20_000), (2, 1 << 17), (3, 1)):
        chunks = list(
            emit_pairs(
                *case[:2],
                *case.windows,
                start_ts=case.start_ts,
                threads=threads,
                chunk=chunk,
                dtype=np.int32,
            )
        )
        assert (np.concatenate(chunks, axis=1) == pairs).all()
        assert max(len(c[0]) for c in chunks) <= max(chunk, 1 << 14)


def test_one_arrival_with_more_matches_than_a_chunk() -> None:
    size = 40_000
    crowd = stream(list(range(size)), [3] * size, [1.0] * size)
    one = stream([size], [3], [1.0])
    for left, right in ((crowd, one), (one, crowd)):
        (pairs,) = emit_pairs(left, right, size, size, threads=1, chunk=10)
        assert pairs[left is one].tolist() == list(range(size))
        assert pairs[left is crowd].tolist() == [0] * size
        assert count_pairs(left, right, size, size).outputs == size


def test_a_consumer_may_stop_early() -> None:
    size = 700_000
    batch = stream(list(range(size)), [5] * size, [1.0] * size)
    found = emit_pairs(batch, batch, 9, 9, threads=3, chunk=1 << 14)
    left, right = next(found)
    found.close()
    assert (left[0], right[0]) == (0, 0)


@pytest.mark.parametrize("form", [count_pairs, all_pairs, lambda *a: list(emit_pairs(*a))])
@pytest.mark.parametrize("threads", [1, 3])
def test_streams_out_of_order_are_refused(form, threads: int, monkeypatch) -> None:  # noqa: ANN001
    monkeypatch.setattr(slices, "_FEW", 1)
    monkeypatch.setattr("engine.exact.checks.os.sched_getaffinity", lambda _: range(threads))
    ts = np.arange(100)
    good = StreamBatch(ts, ts, ts, np.ones(100))
    for place in range(99):
        bad = good._replace(
            ts=np.concatenate([ts[:place], [ts[place + 1], ts[place]], ts[place + 2 :]])
        )
        for pair in ((good, bad), (bad, good)):
            with pytest.raises(SpecError, match="decreases"):
                form(*pair, 3, 3)


ONE = stream([0, 1], [1, 1], [1.0, 1.0])


def push(join: ExactStream, batch: StreamBatch, ids: list[int], size: int = 1) -> None:
    none = between(ONE, 1, 0)
    join.push(batch, np.array(ids, np.int64), none, none.key, np.zeros(size, int), np.zeros(size))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1, 0), "window -1 of stream left must be 0 ticks or more"),
        ((0, 2**63), "stream right"),
        ((1, 1, "maxx"), "Did you mean 'max'"),
        ((1, 1, "min", 0, np.array([1, 1])), "time_bins must increase"),
        ((1, 1, "min", 0, None, -1), "age_buckets -1"),
        ((2**62, 1, "min", 0, None, 4), "age_buckets 4"),
    ],
)
def test_a_stream_that_means_nothing_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        ExactStream(*arguments)


def test_options_that_mean_nothing_are_refused() -> None:
    with pytest.raises(SpecError, match="window -2 of stream right"):
        count_pairs(ONE, ONE, 1, -2)
    with pytest.raises(SpecError, match="threads 0 must be 1 or more"):
        count_pairs(ONE, ONE, 1, 1, threads=0)
    with pytest.raises(SpecError, match="chunk 0"):
        emit_pairs(ONE, ONE, 1, 1, chunk=0)
    with pytest.raises(SpecError, match="do not fit int8"):
        all_pairs(*[dense(200, 1, 0)] * 2, 1, 1, dtype=np.int8)


def test_a_batch_that_does_not_fit_is_refused() -> None:
    join = ExactStream(1, 1)
    with pytest.raises(SpecError, match="less than 1, the number of keys"):
        push(join, ONE, [0, 1])
    with pytest.raises(SpecError, match="1 ids for 2 rows"):
        push(join, ONE, [0])
    with pytest.raises(SpecError, match="decreases"):
        push(join, ONE._replace(ts=np.array([1, 0])), [0, 0])
    with pytest.raises(SpecError, match=r"arrays of \[2, 3\] entries"):
        push(join, ONE._replace(importance=np.ones(3)), [0, 0])
    push(join, ONE, [0, 0])
    with pytest.raises(SpecError, match="the one before reached 1"):
        push(join, ONE, [0, 0])
