"""One memory for several joins: ALLOC, PROP, the models that they go by, and real replays."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import naive_models
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from allocate_cases import aged, allocated, files, zipf

import winnow
from engine import commands as cli
from engine.jobs.allocate.divide import alloc, filled, prop, whole
from engine.jobs.allocate.joins import measured
from engine.jobs.allocate.measure import JoinMeasure
from engine.jobs.allocate.recall import (
    AGE,
    FREQUENCY,
    chosen_model,
    learned_share,
    recall_model,
    varying,
)
from engine.jobs.allocate.run import run_allocation
from engine.jobs.allocate.tried import Points, tried_model
from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.estimate import exactly
from engine.jobs.trial.found import Tried
from engine.models.frequency import KeyCounts, pieces
from engine.models.profile.model import ArrivalProfile
from engine.models.profile.parts import AgeCurve, Correlation, Frequencies, StreamProfile
from engine.options.allocate import allocate_of
from engine.runtime.errors import SpecError
from engine.runtime.executors import SerialExecutor, Stages, ThreadExecutor

TICKS, WINDOW = 100, 10


def measure(seed: int, *, halves: bool = False) -> JoinMeasure:
    """Return a join of few keys and ages, as if it had been measured."""
    rng = np.random.default_rng(seed)
    keys = int(rng.integers(1, 9))
    counts = KeyCounts(np.arange(keys), rng.integers(0, 50, keys), rng.integers(0, 50, keys))
    curves = [rng.integers(0, 6, 5).astype(float) for _ in range(2)]
    rows = int(counts.left.sum()), int(counts.right.sum())
    matches = [float(own * curve.sum()) for own, curve in zip(rows, curves, strict=True)]
    peaks = [1 + math.ceil(1.3 * own * WINDOW / TICKS) for own in rows]
    both = (KeyCounts(counts.codes, counts.left // 2, counts.right // 2),
            KeyCounts(counts.codes, counts.left - counts.left // 2,
                      counts.right - counts.right // 2))  # fmt: skip
    return JoinMeasure(
        rows, (WINDOW, WINDOW), "tick", TICKS, (peaks[0], peaks[1]),
        int(sum(matches)) + int(rng.integers(0, 30)), 1.0, (matches[0], matches[1]),
        (curves[0], curves[1]), counts, halves=both if halves else None,
    )  # fmt: skip


def points(found: JoinMeasure, name: str, side: int) -> naive_models.Points:
    """Return the oracle's curve of a side, with the matches that were counted at its end."""
    if name == AGE:
        own = naive_models.age_points(found.curves[side].tolist(), WINDOW, found.rows[side] / TICKS)
    else:
        counts = found.counts
        left, right = (
            dict(zip(counts.codes.tolist(), one.tolist(), strict=True))
            for one in (counts.left, counts.right)
        )
        both = (left, right)
        own = naive_models.prob_points(both[side], both[1 - side], WINDOW, TICKS)
    most = max(rate for _, rate in own)
    scale = found.matches[side] / TICKS / most if most else 0.0
    return [(memory, rate * scale) for memory, rate in own]


def test_short_replays_keep_the_estimator_that_is_given(tmp_path: Path) -> None:
    join = zipf(tmp_path / "join", "direct", 1)
    choices = [{}, {"policy": "auto"}, {"estimator": "history"}, {"estimator": "window"}]
    reports = [allocated(tmp_path, "10%", join | own) for own in choices]
    first, auto, history, window = (report["joins"][0] for report in reports)
    assert auto == first
    assert (history["estimator"], window["estimator"]) == ("history", "window")


@pytest.mark.parametrize("name", [AGE, FREQUENCY])
@pytest.mark.parametrize("seed", range(15))
def test_recall_by_memory_is_the_oracles(seed: int, name: str) -> None:
    found = measure(seed)
    model = recall_model(name, found, steady=True)
    left, right = (points(found, name, side) for side in (0, 1))
    free = found.outputs - sum(found.matches)
    for memory in range(sum(found.peaks) + 1):
        best, splits = naive_models.best_splits(left, right, memory)
        wanted = (best * TICKS + free) / found.outputs if found.outputs else 1.0
        sides = model.split(memory)
        assert sum(sides) == pytest.approx(memory)
        assert all(0 <= own <= peak + 1e-9 for own, peak in zip(sides, found.peaks, strict=True))
        assert splits
        assert model.recall(*sides) >= wanted - 1e-9
        whole_sides = whole(sides, memory)
        assert sum(whole_sides) == memory
        rates = [naive_models.mixed_rate(c, m) for c, m in zip((left, right), whole_sides,
                                                                 strict=True)]  # fmt: skip
        if all(m < peak for m, peak in zip(whole_sides, found.peaks, strict=True)):
            wanted = naive_models.expected_recall(rates, TICKS, free, found.outputs or 1)
            assert model.recall(*whole_sides) == pytest.approx(wanted if found.outputs else 1.0)
    assert model.recall(*found.peaks) == pytest.approx(1.0)
    for recall in np.linspace(0, 1, 11):
        needed = model.memory_for(float(recall))
        join = naive_models.Join(left, right, found.outputs / TICKS, free / TICKS)
        assert needed == pytest.approx(naive_models.join_memory(join, recall), abs=1e-6)


@pytest.mark.parametrize("seed", range(15))
def test_alloc_is_the_oracles_and_the_best_of_all_divisions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = [measure(3 * seed + i) for i in range(3)]
    names = [str(rng.choice([AGE, FREQUENCY])) for _ in found]
    weights = rng.choice([1.0, 0.5, 2.0], 3)
    least = float(weights.min())
    models = [recall_model(name, one, steady=True) for name, one in zip(names, found, strict=True)]
    memory = float(rng.integers(1, sum(one.peak for one in found)))
    level, parts = alloc(
        [
            lambda level, m=m, w=w: m.memory_for(min(1.0, level * w / least))
            for m, w in zip(models, weights, strict=True)
        ],
        memory,
    )
    joins = [
        naive_models.Join(
            points(one, name, 0), points(one, name, 1), one.outputs / TICKS,
            (one.outputs - sum(one.matches)) / TICKS, float(weight),
        )
        for one, name, weight in zip(found, names, weights, strict=True)
    ]  # fmt: skip
    best, _ = naive_models.naive_alloc(joins, memory, 400)
    assert level / least == pytest.approx(best, abs=1.01 / 400 / least)
    assert sum(parts) <= memory
    if level < 1.0:
        assert sum(parts) == pytest.approx(memory, rel=1e-6)
    reached = [m.recall(*m.split(part)) for m, part in zip(models, parts, strict=True)]
    minimum = min(q / w for q, w in zip(reached, weights, strict=True))
    step = max(1, round(memory / 12))
    for a, b in itertools.product(range(0, int(memory) + 1, step), repeat=2):
        if a + b <= memory:
            other = min(
                m.recall(*m.split(part)) / w
                for m, part, w in zip(models, (a, b, memory - a - b), weights, strict=True)
            )
            assert minimum >= min(other, level / least) - 1e-9


def test_equal_joins_get_equal_memory() -> None:
    model = recall_model(AGE, measure(4))
    for memory in (3.0, 10.0, 17.5):
        level, parts = alloc([model.memory_for] * 4, memory)
        assert parts == [parts[0]] * 4
        assert level < 1.0
    assert max(whole(parts, 17)) - min(whole(parts, 17)) <= 1


def test_a_join_of_twice_the_weight_gets_twice_the_recall() -> None:
    model = recall_model(FREQUENCY, measure(8))
    floor = model.recall(0, 0)
    _, parts = alloc([model.memory_for, lambda q: model.memory_for(min(1, 2 * q))], 9.0)
    recalls = [model.recall(*model.split(part)) for part in parts]
    assert recalls[0] > floor
    assert recalls[1] == pytest.approx(min(1.0, 2 * recalls[0]), rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_memory_is_divided_into_whole_tuples_and_none_is_lost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    peaks = rng.integers(0, 40, 5).tolist()
    for memory in range(0, sum(peaks) + 9, 7):
        shares = prop(peaks, memory)
        parts = whole(shares, memory)
        assert sum(parts) == min(memory, sum(peaks))
        assert all(abs(part - share) < 1 for part, share in zip(parts, shares, strict=True))
        assert all(part <= peak for part, peak in zip(parts, peaks, strict=True))
        some = [share / 3 for share in shares]
        full = filled(some, peaks, memory)
        assert sum(full) == pytest.approx(min(memory, sum(peaks)))
        assert all(a <= b <= p + 1e-9 for a, b, p in zip(some, full, peaks, strict=True))


@pytest.mark.parametrize("seed", range(6))
def test_tuples_of_keys_that_come_and_go_yield_what_is_drawn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    live, keys = int(rng.integers(50, 300)), int(rng.integers(2, 30))
    shares, worth = rng.dirichlet(np.ones(keys)), rng.choice([0.0, 1.0, 2.0, 5.0, 99.0], keys)
    curve = varying(live * shares, worth, live)
    drawn = rng.multinomial(live, shares, 4000)[:, np.argsort(-worth)]
    values = np.sort(worth)[::-1]
    for memory in (1, 2, live // 5, live // 2, live - 9):
        before = np.cumsum(drawn, axis=1) - drawn
        held = np.clip(memory - before, 0, drawn)
        wanted = (held @ values).mean()
        assert curve.rate_at(memory) == pytest.approx(wanted, rel=0.02)
    assert curve.rate_at(live) == pytest.approx(live * shares @ worth)


def test_keys_that_do_not_come_again_are_worth_nothing() -> None:
    found = measure(2)
    codes, none, some = np.arange(40), np.zeros(20, np.int64), np.repeat([1, 3], 10)
    early, late = np.concatenate([some, none]), np.concatenate([none, some])
    first, second = KeyCounts(codes, early, early), KeyCounts(codes, late, late)
    fleeting = found._replace(halves=(first, second))
    lasting = found._replace(halves=(second, second))
    live = late.sum() * WINDOW / (TICKS // 2)
    for memory in (0.0, live / 4, live / 2, live):
        assert learned_share(fleeting, 0, memory) == pytest.approx(memory / live)
    # the ten keys of 3 make 90 of 100 outputs with 30 of 40 tuples
    assert learned_share(lasting, 0, live / 2) == pytest.approx(0.9 * 20 / 30)
    assert learned_share(lasting, 0, live) == 1.0


def test_a_profile_says_which_model_fits() -> None:
    found = measure(2)
    assert chosen_model(found, {AGE: 0.5, FREQUENCY: 0.7}) == FREQUENCY
    assert chosen_model(found, {AGE: 0.5, FREQUENCY: 0.505}) == AGE
    assert chosen_model(found._replace(fits=AGE), {AGE: 0.5, FREQUENCY: 0.7}) == AGE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("allocate")


@pytest.fixture(scope="module")
def joins(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        "DC": zipf(folder / "DC", "direct", 1),
        "IC": zipf(folder / "IC", "inverse", 2),
        "INC": aged(folder / "INC", "increasing", 3),
        "DEC": aged(folder / "DEC", "decreasing", 4),
    }


def gained(report: dict[str, Any]) -> None:
    """Hold what a report says of both allocations together."""
    for how in ("alloc", "prop"):
        own = [join[how] for join in report["joins"]]
        assert report[how]["memory"] == sum(part["memory"] for part in own)
        assert report[how]["memory"] == report["memory"]["tuples"]
        for what in ("predicted", "replayed"):
            worst = min(join[how][what] / join["weight"] for join in report["joins"])
            assert report[how][what] == worst
    assert report["alloc"]["predicted"] >= report["prop"]["predicted"] - 0.01


@pytest.mark.parametrize("memory", ["10%", "20%"])
def test_the_hard_join_gains_by_alloc_under_prob(
    folder: Path, joins: dict[str, dict[str, Any]], memory: str
) -> None:
    policy = {"policy": "prob"}
    report = allocated(folder, memory, joins["DC"] | policy, joins["IC"] | policy)
    gained(report)
    assert [join["policy"] for join in report["joins"]] == ["prob", "prob"]
    assert report["alloc"]["replayed"] > report["prop"]["replayed"] + 0.02
    hard, easy = report["joins"]
    for join in (hard, easy):
        assert join["alloc"]["predicted"] == pytest.approx(report["alloc"]["predicted"], abs=0.03)
        assert join["alloc"]["replayed"] == pytest.approx(join["alloc"]["predicted"], abs=0.04)
        assert join["prop"]["memory"] in {
            math.floor(share) + more
            for share in [sum(join["exact"]["peak"].values()) * float(memory[:-1]) / 100]
            for more in (-1, 0, 1)
        }


def test_the_hard_join_gains_by_alloc_under_age(
    folder: Path, joins: dict[str, dict[str, Any]]
) -> None:
    policy = {"policy": "age"}
    report = allocated(folder, "50%", joins["INC"] | policy, joins["DEC"] | policy)
    gained(report)
    assert [join["policy"] for join in report["joins"]] == ["age", "age"]
    assert [join["model"] for join in report["joins"]] == ["age", "age"]
    assert report["alloc"]["replayed"] > report["prop"]["replayed"]
    assert report["joins"][0]["alloc"]["memory"] > report["joins"][1]["alloc"]["memory"]


@pytest.mark.parametrize("memory", ["10%", "35%"])
def test_joins_without_a_policy_go_by_replays(
    folder: Path, joins: dict[str, dict[str, Any]], memory: str
) -> None:
    """What is predicted is what is replayed, and the worst join does no worse than by models."""
    own = joins["DC"], joins["IC"], joins["INC"], joins["DEC"]
    report = allocated(folder, memory, *own, refine=0)
    gained(report)
    assert {join["model"] for join in report["joins"]} == {"replays"}
    for join in report["joins"]:
        assert join["expected"].keys() == {"age", "frequency", "replays"}
        for how in ("alloc", "prop"):
            assert join[how]["predicted"] == pytest.approx(join[how]["replayed"], abs=0.03)
    modelled = [
        one | {"policy": policy} for one, policy in zip(own, ("prob", "prob", "age", "age"),
                                                         strict=True)
    ]  # fmt: skip
    by_models = allocated(folder, memory, *modelled, refine=0)
    assert report["alloc"]["replayed"] >= by_models["alloc"]["replayed"] - 0.005


def test_a_join_whose_sides_share_one_memory_is_replayed_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(5)  # what is ordered is shipped later, half of it, once
    at = np.sort(rng.integers(0, 20_000, 2_000))
    shipped = np.flatnonzero(rng.random(2_000) < 0.5)
    later = at[shipped] + rng.gamma(8, 50, shipped.size).astype(int)
    for name, times, keys in (("left", at, np.arange(2_000)), ("right", later, shipped)):
        order = np.argsort(times, kind="stable")
        pq.write_table(
            pa.table({"ts": times[order], "key": keys[order]}), folder / f"{name}.parquet"
        )
    both = files(folder) | {"window": 600}
    own = {name: value for name, value in both.items() if name != "name"}
    file = jobs_file(folder / "pooled.toml", [both], memory=40, refine=0)
    report = folder / "pooled.json"
    words = ["allocate", str(file), "--engine", "local", "--report", str(report)]
    assert cli.main([*words, "--cache", str(folder / "cache")]) == 0
    [join] = json.loads(report.read_text())["joins"]
    part = join["alloc"]
    assert join["pooled"]
    assert (part["left"], part["right"], part["memory"]) == (None, None, 40)
    assert f"{join['policy']}, pooled" in capsys.readouterr().out
    given = {"memory": 40, "policy": join["policy"], "estimator": join["estimator"]}
    by_split = {
        split: winnow.replay(**own, **given, split=split, cache=folder / "cache").report["recall"]
        for split in ("pooled", "even", "expected")
    }
    assert part["replayed"] == by_split["pooled"] == max(by_split.values())
    assert by_split["pooled"] > by_split["even"]
    advised = winnow.replay(**own, memory=40, cache=folder / "cache").report["recall"]
    assert part["replayed"] >= advised - 0.01  # which is chosen from the same, by importance
    outputs = winnow.allocate({"memory": 40, "join": [both]}, cache=folder / "cache").outputs
    assert outputs.select(["left", "memory"]).to_pylist() == [{"left": None, "memory": 40}]


def test_recall_between_replays_is_monotone_and_linear() -> None:
    found = measure(3)
    model = recall_model(FREQUENCY, found)
    peak = sum(found.peaks)

    def one(recall: float, split: str = "even") -> Tried:
        own = Candidate("prob", split, "memory")
        return Tried(own, (0, 0), exactly(recall, 1.0), exactly(recall, 1.0))

    tried = [[one(0.4)], [one(0.35), one(0.3, "expected")], [one(0.8)]]
    points = Points((Fraction(1, 10), Fraction(2, 10), Fraction(1, 2)), tried)
    own = tried_model(points, tried[0][0].candidate, model, found.peaks)
    floor = model.free / model.exact
    knots = [(0.0, floor), (0.1, max(0.4, floor)), (0.2, max(0.4, floor)), (0.5, 0.8), (1.0, 1.0)]
    for memory in np.linspace(0, peak, 41):
        wanted = np.interp(memory / peak, *zip(*knots, strict=True))
        assert own.recall(memory, 0) == pytest.approx(wanted)
        assert own.recall(*own.split(memory)) == pytest.approx(wanted)
        assert own.memory_for(own.recall(memory, 0)) <= memory + 1e-9
        assert sum(own.split(memory)) == pytest.approx(memory)
    assert own.recall(*found.peaks) == 1.0
    assert points.advised(0.12).split == "even"
    assert points.reached(Candidate("prob", "expected", "memory")) == [0.4, 0.3, 0.8]


def test_weights_and_policies_are_taken_as_told(
    folder: Path, joins: dict[str, dict[str, Any]]
) -> None:
    told = [
        joins["DC"] | {"weight": 0.5, "policy": "prob", "estimator": "window"},
        joins["IC"] | {"policy": "age", "param": {"buckets": 7}},
    ]
    report = allocated(folder, "30%", *told)
    gained(report)
    first, second = report["joins"]
    assert (first["policy"], first["estimator"], first["model"]) == ("prob", "window", "frequency")
    assert (second["policy"], second["model"]) == ("age", "age")
    assert first["alloc"]["predicted"] / 0.5 == pytest.approx(
        second["alloc"]["predicted"], abs=0.05
    )


@pytest.mark.parametrize("memory", ["100%", "250%", 10**6])
def test_everything_is_exact_where_everything_fits(
    folder: Path, joins: dict[str, dict[str, Any]], memory: Any
) -> None:
    report = allocated(folder, memory, joins["DC"] | {"weight": 3}, joins["INC"])
    for join, how in itertools.product(report["joins"], ("alloc", "prop")):
        sides = {side: join[how][side] for side in ("left", "right")}
        assert sides == join["exact"]["peak"]
        assert join[how]["predicted"] == join[how]["replayed"] == 1.0


def test_without_memory_only_what_needs_none_is_found(
    folder: Path, joins: dict[str, dict[str, Any]]
) -> None:
    report = allocated(folder, 0, joins["DC"], joins["IC"])
    for join in report["joins"]:
        assert join["alloc"]["memory"] == join["prop"]["memory"] == 0
        assert join["alloc"]["predicted"] == pytest.approx(join["alloc"]["replayed"], abs=1e-12)
        assert 0 < join["alloc"]["replayed"] < 0.02  # tuples that arrive together


def test_hash_lanes_and_two_sided_joins(folder: Path, joins: dict[str, dict[str, Any]]) -> None:
    both = {"window_left": 99, "window_right": 49}
    one = allocated(folder, 120, joins["DC"] | both, joins["INC"] | both)
    gained(one)
    first = one["joins"][0]
    assert first["pooled"] == (first["alloc"]["right"] is None)
    assert first["pooled"] or first["alloc"]["right"] > 0
    four = allocated(folder, 120, *(joins[n] | both | {"lanes": 4} for n in ("DC", "INC")))
    for a, b in zip(one["joins"], four["joins"], strict=True):
        assert a["exact"]["outputs"] == b["exact"]["outputs"]
        assert a["alloc"]["predicted"] == pytest.approx(b["alloc"]["predicted"], abs=0.05)


def jobs_file(where: Path, joins: list[dict[str, Any]], **top: Any) -> Path:
    """Write joins as TOML."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in top.items()]
    for join in joins:
        lines += ["[[join]]", *(f"{name} = {json.dumps(value)}" for name, value in join.items())]
    where.write_text("\n".join(lines) + "\n")
    return where


def without_run(report: dict[str, Any]) -> dict[str, Any]:
    return {name: own for name, own in report.items() if name not in ("seconds", "versions")}


def test_python_the_command_line_and_spark_say_the_same(
    spark: Any, folder: Path, joins: dict[str, dict[str, Any]], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from spark_plugin.executor import SparkExecutor  # noqa: PLC0415 - other tests need no Spark

    told = [joins["DC"] | {"lanes": 2}, joins["INC"]]
    here = allocated(folder, "25%", *told)
    there = allocated(folder, "25%", *told, executor=SparkExecutor(spark))
    assert without_run(here) == without_run(there)
    jobs = jobs_file(tmp_path / "jobs.toml", told, memory="25%")
    words = ["allocate", str(jobs), "--engine=local", f"--cache={folder / 'cache'}"]
    words += [f"--report={tmp_path / 'report.json'}", f"--plots={tmp_path / 'plots'}"]
    assert cli.main(words) == 0
    shown = capsys.readouterr()
    assert "ALLOC" in shown.out
    assert not shown.err
    written = json.loads((tmp_path / "report.json").read_text())
    assert without_run(written) == without_run(here)
    found = {path.name for path in (tmp_path / "plots").iterdir()}
    assert found == {f"{name}.{kind}" for name in ("memory", "recall") for kind in ("png", "svg")}


def test_stages_are_told_by_join(folder: Path, joins: dict[str, dict[str, Any]]) -> None:
    told: list[str] = []
    run_allocation(
        allocate_of({"memory": 50, "join": [joins["DC"]]}, folder / "cache"),
        SerialExecutor(),
        lambda stage, done, total: told.append(f"{stage} {done}/{total}"),
    )
    rows = 9000
    assert f"DC: measure {rows}/{rows}" in told
    assert f"DC: replay {rows}/{rows}" in told


def profile_of(found: JoinMeasure) -> ArrivalProfile:
    """Return the profile that would be made of a join."""
    streams = [
        StreamProfile(
            found.rows[side], found.rows[side] / found.span, found.peaks[side], 1.0, 1.0,
            (1.0, 1.0), AgeCurve(tuple(curve.tolist()), float(curve.sum()), 1, 1, {}),
            1, None, {}, (),
        )
        for side, curve in enumerate(found.curves)
    ]  # fmt: skip
    rest = {"keys": 0, "left": 0, "right": 0}
    return ArrivalProfile(
        found.unit, found.windows, (0, found.span - 1), (streams[0], streams[1]),
        {"outputs": found.outputs},
        Frequencies("exact", found.counts, rest, (0, 0), 0, ("int64",)),
        Correlation(np.array([0, 1]), np.array([0])), {"model": FREQUENCY}, {}, {},
    )  # fmt: skip


def test_a_profile_stands_in_for_the_pass(
    folder: Path, joins: dict[str, dict[str, Any]], tmp_path: Path
) -> None:
    told, other = (joins[name] | {"policy": "prob"} for name in ("DC", "IC"))
    options = allocate_of({"memory": 9, "join": [told]}, folder / "cache")
    found = measured(options.joins[0], Stages(SerialExecutor())).found
    profile_of(found).save(tmp_path / "profile.json")
    own = allocated(folder, "20%", told, other)
    report = allocated(folder, "20%", told | {"profile": str(tmp_path / "profile.json")}, other)
    for name in ("model", "policy", "exact", "rows"):
        assert report["joins"][0][name] == own["joins"][0][name]
    for how in ("alloc", "prop"):
        assert report["joins"][0][how] == pytest.approx(own["joins"][0][how], rel=1e-12)
    wrong = {"profile": str(tmp_path / "profile.json"), "window_left": 7}
    with pytest.raises(SpecError, match="make a profile with the windows of the join"):
        allocated(folder, "20%", told | wrong)


def test_keys_that_a_profile_does_not_list_are_taken_as_alike() -> None:
    found = measure(6)._replace(
        counts=KeyCounts(np.array([1, 2]), np.array([30, 4]), np.array([10, 2])),
        rest=(5, 20, 15),
    )
    memory, worth = pieces(found.counts, found.windows, found.span, found.rest)[0]
    assert memory.tolist() == pytest.approx([3.0, 0.4, 2.0])
    assert worth.tolist() == pytest.approx([0.1, 0.02, 0.03])


def test_a_join_without_outputs_needs_nothing(folder: Path, tmp_path: Path) -> None:
    own = zipf(tmp_path / "some", "none", 5)
    none = own | {"name": "none", "window_left": 0}
    report = allocated(folder, 60, own, none, executor=ThreadExecutor(1))
    assert report["joins"][1]["alloc"]["replayed"] == 1.0
    assert report["joins"][0]["alloc"]["memory"] > report["joins"][0]["prop"]["memory"]
