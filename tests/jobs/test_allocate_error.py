"""One memory for several samples: moments of their outputs, errors expected and estimated."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from allocate_cases import aged, allocated, files, zipf
from naive_models import theorem_4_2_closed

import winnow
from engine.jobs.allocate.error import EQ, PPS, UNIFORM, ErrorModel, classes_of
from engine.jobs.allocate.error_join import measured_error
from engine.jobs.allocate.moments import SideMoments
from engine.options.allocate import allocate_of
from engine.report.allocation import _by_join
from engine.runtime.executors import SerialExecutor, Stages

SPAN, WINDOWS = 100, (10, 10)


def moments(rng: np.random.Generator, keys: int) -> tuple[SideMoments, SideMoments]:
    """Return sides whose tuples of a key all have the outputs that the other side gives them."""
    counts = rng.integers(1, 30, (2, keys))
    sides = []
    for side in (0, 1):
        rows, others = counts[side], counts[1 - side]
        outputs = rows * rng.integers(0, 5, keys)
        worth = rng.uniform(0.5, 2, keys)
        most = np.ceil(outputs / rows).astype(np.int64) + rng.integers(0, 3, keys)
        sides.append(
            SideMoments(
                rows,
                others,
                rows * 11,
                most,
                outputs * worth**2,
                rows * (outputs / rows * worth) ** 2,
            )
        )
    return sides[0], sides[1]


def model(method: str, seed: int, keys: int = 7) -> ErrorModel:
    sides = moments(np.random.default_rng(seed), keys)
    classes = classes_of(sides[0], SPAN, method), classes_of(sides[1], SPAN, method)
    peaks = [1 + int(1.4 * one.held.sum() / SPAN) for one in sides]
    return ErrorModel(method, sides, classes, WINDOWS, SPAN, 1000.0, (peaks[0], peaks[1]))


@pytest.mark.parametrize("seed", range(8))
def test_inclusion_fills_the_memory_and_is_in_proportion_to_size(seed: int) -> None:
    own = model(PPS, seed).classes[0]
    for memory in np.linspace(0.1, own.live.sum() * 1.1, 9):
        p = own.inclusion(float(memory))
        assert p @ own.live == pytest.approx(min(memory, own.live.sum()))
        free = p < 1
        assert np.all(p <= 1)
        if free.any():
            scale = p[free] / own.size[free]
            assert scale == pytest.approx(np.full(scale.size, scale[0]))
            assert np.all(scale[0] * own.size[~free] >= 1 - 1e-12)


@pytest.mark.parametrize("method", [EQ, PPS])
@pytest.mark.parametrize("seed", range(5))
def test_the_error_of_clusters_is_the_sum_written_out_and_the_split_the_best(
    seed: int, method: str
) -> None:
    own = model(method, seed)
    memory = sum(own.peaks) // 3

    def written_out(left: int) -> float:
        variance = 0.0
        for side, k in enumerate((left, memory - left)):
            one = own.sides[side]
            size = one.others.astype(float) if method == PPS else np.ones(one.rows.size)
            low, high = 0.0, 1e6
            for _ in range(300):
                scale = (low + high) / 2
                used = np.minimum(1, scale * size) @ one.held / SPAN
                low, high = (scale, high) if used < k else (low, scale)
            p = np.minimum(1, scale * size)
            variance += float((1 / p - 1) @ one.clusters)
        return math.sqrt(variance) / 1000.0

    errors = {left: written_out(left) for left in range(1, memory)
              if left < own.peaks[0] and memory - left < own.peaks[1]}  # fmt: skip
    for left, error in errors.items():
        assert own.error(left, memory - left) == pytest.approx(error, rel=1e-6, abs=1e-9)
    assert own.at(memory) <= min(errors.values()) * (1 + 1e-6)


def share_held(p: float, mean: float, most: int) -> float:
    """Return the share of its lifetime for which a tuple of so many matches at random is held."""
    if most < 1:
        return 0.0
    n = max(1.0, min(mean, most))
    late: float = theorem_4_2_closed(1.0, 1.0, p, n)
    late *= 1 - mean / 2 if mean < 1 else n / (n + 1)
    return 1 - math.pow(1 - p, most - n) * (1 - late)


@pytest.mark.parametrize("seed", range(5))
def test_the_error_of_a_uniform_sample_is_that_of_its_fraction(seed: int) -> None:
    own = model(UNIFORM, seed)
    squares = sum(float(side.squares.sum()) for side in own.sides)
    for p in (0.05, 0.3, 0.8):
        memory = math.fsum(
            rows * side.held.sum() / side.rows.sum() / SPAN * share_held(p, others / 10, int(most))
            for side in own.sides
            for rows, others, most in zip(side.rows, side.others, side.most, strict=True)
        )
        if memory < sum(own.peaks):
            error = math.sqrt(squares * (1 - p) / p) / 1000
            assert own.error(memory, 0.0) == pytest.approx(error, rel=1e-6)
            assert own.memory_for(error) == pytest.approx(memory, rel=1e-6)


@pytest.mark.parametrize("method", [UNIFORM, EQ, PPS])
def test_memory_for_an_error_has_that_error(method: str) -> None:
    own = model(method, 3)
    full = float(sum(own.peaks))
    assert own.memory_for(0.0) == full
    assert own.memory_for(1e-305) >= 0.99 * full
    assert own.memory_for(math.inf) == 0.0
    before = full
    for error in (0.01, 0.03, 0.1, 0.5):
        memory = own.memory_for(error)
        assert memory <= before
        if memory < 0.9 * full:
            assert own.at(memory) == pytest.approx(error, rel=1e-4)
        before = memory
    assert own.error(0.0, 0.0) == math.inf


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("errors")


@pytest.fixture(scope="module")
def joins(folder: Path) -> list[dict[str, Any]]:
    both = {"window_left": 99, "window_right": 39, "importance": "importance"}
    return [zipf(folder / "DC", "direct", 1) | both, aged(folder / "INC", "increasing", 3) | both]


def test_moments_are_those_of_all_pairs(folder: Path, joins: list[dict[str, Any]]) -> None:

    options = allocate_of({"memory": 9, "metric": "error", "join": joins[:1]}, folder / "cache")
    found = measured_error(options.joins[0], Stages(SerialExecutor()))
    left, right = (pq.read_table(joins[0][side]).to_pydict() for side in ("left", "right"))
    streams = [
        [np.array(stream[name]) for name in ("ts", "key", "importance")] for stream in (left, right)
    ]
    lags = streams[1][0][None, :] - streams[0][0][:, None]
    same = streams[0][1][:, None] == streams[1][1][None, :]
    worth = np.minimum(streams[0][2][:, None], streams[1][2][None, :])
    stored = [same & (lags > 0) & (lags <= 99), same & (lags < 0) & (lags >= -39)]
    assert found.found.outputs == int((same & (lags <= 99) & (lags >= -39)).sum())
    simultaneous = same & (lags == 0)
    assert simultaneous.any()
    waited = [stored[0] | simultaneous, stored[1]]  # as UNIFORM stores them: left arrives first
    for side, axis in ((0, 1), (1, 0)):
        own = found.sides[side]
        y = np.where(stored[side], worth, 0.0)
        each = np.where(waited[side], worth, 0.0)
        keys = np.unique(np.concatenate([streams[0][1], streams[1][1]]))
        key = streams[side][1]
        per = {
            "rows": [(key == v).sum() for v in keys],
            "others": [(streams[1 - side][1] == v).sum() for v in keys],
            "most": [waited[side].sum(axis)[key == v].max(initial=0) for v in keys],
            "squares": [(each**2).sum(axis)[key == v].sum() for v in keys],
            "clusters": [(y.sum(axis) ** 2)[key == v].sum() for v in keys],
        }
        order = np.lexsort([getattr(own, name) for name in per])
        wanted = np.lexsort([np.array(values) for values in per.values()])
        for name, values in per.items():
            assert getattr(own, name)[order] == pytest.approx(np.array(values)[wanted])


@pytest.mark.parametrize("method", [UNIFORM, EQ, PPS, None])
def test_samples_have_the_error_expected(
    folder: Path, joins: list[dict[str, Any]], method: str | None
) -> None:
    told = [join | ({"method": method} if method else {}) for join in joins]
    report = allocated(folder, "30%", *told, metric="error")
    for how in ("alloc", "prop"):
        for join in report["joins"]:
            best = min((error, own == UNIFORM, own) for own, error in join["expected"].items())
            assert join["method"] == (method or best[2])
            part = join[how]
            assert part["replayed"] == pytest.approx(part["predicted"], rel=0.2)
    first, second = (join["alloc"]["predicted"] for join in report["joins"])
    assert first == pytest.approx(second, rel=0.15)  # whole tuples
    assert report["alloc"]["predicted"] <= report["prop"]["predicted"] * 1.001


def test_a_join_of_twice_the_weight_has_half_the_error(
    folder: Path, joins: list[dict[str, Any]]
) -> None:
    report = allocated(folder, "30%", joins[0] | {"weight": 2}, joins[1], metric="error")
    first, second = (join["alloc"]["predicted"] for join in report["joins"])
    assert 2 * first == pytest.approx(second, rel=0.15)
    assert report["alloc"]["predicted"] == pytest.approx(max(2 * first, second))


def test_all_is_exact_where_all_fits_and_nothing_known_without_memory(
    folder: Path, joins: list[dict[str, Any]]
) -> None:
    report = allocated(folder, "100%", *joins, metric="error")
    said = str(winnow.allocate({"memory": "100%", "metric": "error", "join": joins}))
    assert "memory held on average" in said
    for join in report["joins"]:
        assert join["alloc"]["predicted"] == join["alloc"]["replayed"] == 0.0
    report = allocated(folder, 1, *joins, metric="error")
    assert report["alloc"]["predicted"] is None
    assert report["alloc"]["replayed"] is None


def ticking(
    folder: Path, per_tick: int, keys: tuple[range, range], unit: int = 1, **more: Any
) -> dict[str, Any]:
    """Write streams of so many tuples every `unit` ticks, of random keys; return their join."""
    rng = np.random.default_rng(1)
    folder.mkdir()
    for side, of in zip(("left", "right"), keys, strict=True):
        table = {"ts": np.arange(400) // per_tick * unit, "key": rng.choice(of, 400)}
        pq.write_table(pa.table(table), folder / f"{side}.parquet")
    return files(folder) | more


@pytest.mark.parametrize("method", [UNIFORM, EQ])
def test_errors_hardly_depend_on_the_unit_of_time(tmp_path: Path, method: str) -> None:
    found = []
    for unit in (1, 10**15):  # ticks of all tuples together, and span times window: above 64 bits
        folder = tmp_path / str(unit)
        join = ticking(folder, 1, (range(10), range(10)), unit, window=51 * unit - 1, method=method)
        (own,) = allocated(folder, "30%", join, metric="error")["joins"]
        found.append([own["expected"][one] for one in (UNIFORM, EQ, PPS)])
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_a_join_of_one_instant_is_exact_without_memory(tmp_path: Path) -> None:
    keys = range(10), range(10)
    later = ticking(tmp_path / "later", 1, keys, window=99)
    now = ticking(tmp_path / "now", 1, keys, window=0)
    report = allocated(tmp_path, 30, later, now, metric="error")
    part = report["joins"][1]["alloc"]
    assert report["joins"][1]["method"] != UNIFORM
    assert (part["memory"], part["predicted"], part["replayed"]) == (0, 0.0, 0.0)
    assert report["alloc"]["replayed"] == report["joins"][0]["alloc"]["replayed"] > 0
    # UNIFORM samples these outputs as any others, so it needs memory for them, and is told so
    report = allocated(tmp_path, 1, now | {"method": UNIFORM}, later, metric="error")
    assert {how: report["joins"][0][how]["replayed"] for how in ("alloc", "prop")} == {
        "alloc": None, "prop": None,
    }  # fmt: skip


def test_a_uniform_sample_also_errs_in_outputs_of_one_instant(tmp_path: Path) -> None:
    busy = ticking(tmp_path / "busy", 8, (range(10), range(10)), window=1, method=UNIFORM)
    errors = []
    for seed in range(8):
        report = allocated(tmp_path, "50%", busy | {"seed": seed}, metric="error")
        part = report["joins"][0]["alloc"]
        errors.append(part["replayed"] / part["predicted"])
    assert np.mean(errors) == pytest.approx(1.0, rel=0.1)


def test_a_join_without_outputs_has_no_error(tmp_path: Path) -> None:
    some = ticking(tmp_path / "some", 1, (range(10), range(10)), window=50)
    none = ticking(tmp_path / "none", 1, (range(10), range(50, 60)), window=50)
    report = allocated(tmp_path, 30, some, none, metric="error")
    first, second = (join["alloc"] for join in report["joins"])
    assert (second["memory"], second["predicted"], second["replayed"]) == (0, 0.0, 0.0)
    assert report["alloc"]["replayed"] == first["replayed"] > 0


def test_a_sample_without_outputs_tells_no_error(tmp_path: Path) -> None:
    rare = ticking(tmp_path / "rare", 1, (range(4000), range(4000)), window=50, method=EQ)
    report = allocated(tmp_path, 2, rare, metric="error")
    join = report["joins"][0]
    assert join["exact"]["outputs"] > 0
    assert join["alloc"]["predicted"] > 0
    assert join["alloc"]["replayed"] is None
    error = next(own for own in _by_join(report) if own.title == "Error of each join")
    assert [(own.name, own.values) for own in error.series[:2]] == [
        ("ALLOC", [None]),  # no bar, not that of what was predicted
        ("ALLOC, predicted", [100 * join["alloc"]["predicted"]]),
    ]
