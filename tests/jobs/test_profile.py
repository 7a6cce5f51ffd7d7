"""Profiles against the oracle: counts, curves, fit, drift, online estimates, advice, the file."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import naive_models
import numpy as np
import pyarrow as pa
import pytest
from job_cases import Rows, stream
from profile_cases import (
    draw,
    drift_of,
    mean_window_of,
    peak_of,
    profiled,
    span_of,
    tuples,
    written,
)

import winnow
from engine.commands import main
from engine.jobs.profile import task
from engine.lanes.reader import lane_batches
from engine.models.profile import keys as profile_keys
from engine.models.profile.model import ArrivalProfile
from engine.runtime.executors import SerialExecutor
from engine.runtime.key_table import KeyTable

SIDES = ("left", "right")


def burst(rows: int, seed: int) -> Rows:
    """Return rows of few ticks: most matches are simultaneous or of age 1."""
    return stream(seed, rows, span=4, keys=3)


CASES: dict[str, tuple[Rows, Rows, dict[str, Any]]] = {
    "random": (stream(1), stream(2), {"window": 9, "buckets": 4}),
    "long": (stream(3), stream(4), {"window": 200, "buckets": 7}),
    "apart": (stream(5), stream(6), {"window_left": 17, "window_right": 4, "buckets": 3}),
    "fine": (stream(7), stream(8), {"window_left": 11, "window_right": 2, "buckets": 100}),
    "none": (stream(9), stream(10), {"window_left": 0, "window_right": 5, "buckets": 5}),
    "tied": (burst(80, 11), burst(60, 12), {"window": 2, "buckets": 2}),
    "late": (stream(13, 20), [(t + 115, k, i) for t, k, i in stream(14, 90)], {"window": 30}),
    "one key": ([(t, 1, 1.0) for t in range(40)], [(3 * t, 1, 1.0) for t in range(20)],
                {"window": 12, "buckets": 6}),
}  # fmt: skip


def windows_of(options: dict[str, Any]) -> tuple[int, int]:
    both = options.get("window")
    return options.get("window_left", both), options.get("window_right", both)  # type: ignore[return-value]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_equals_the_oracle(tmp_path: Path, name: str, lanes: int) -> None:
    left, right, options = CASES[name]
    written(tmp_path, left, right)
    found = profiled(tmp_path, lanes=lanes, **options)
    both, windows = (tuples(left), tuples(right)), windows_of(options)
    span = span_of(*both)
    assert (found.windows, found.span) == (windows, span)
    simultaneous = naive_models.naive_simultaneous(*both)
    total, fits, asked = simultaneous, [], options.get("buckets", 100)
    for side, own in enumerate(found.streams):
        mine, other, window = both[side], both[1 - side], windows[side]
        buckets = min(asked, max(1, window))
        ages = naive_models.naive_ages(mine, other, window, buckets)
        total += sum(ages)
        assert own.age.buckets == tuple(count / len(mine) for count in ages)
        assert own.age.matches == sum(ages) / len(mine)
        if sum(ages):
            ends = [-(-(b + 1) * window // buckets) for b in range(buckets)]
            assert own.age.k_opt == ends[naive_models.k_opt(ages, ends) - 1]
            assert own.age.peak_age == ends[ages.index(max(ages))]
        assert own.rows == len(mine)
        assert own.rate == len(mine) / (span[1] - span[0] + 1)
        if lanes == 1:  # the lanes' peaks are added up
            assert own.peak == peak_of(mine, window)
        assert own.mean_window == pytest.approx(mean_window_of(mine, window, span), rel=1e-12)
        importances = [importance for _, _, importance, _ in mine]
        assert own.mean_importance == pytest.approx(np.mean(importances), rel=1e-12)
        assert own.importance_range == (min(importances), max(importances))
        counts = Counter(key for _, key, _, _ in mine)
        assert own.distinct_keys == len(counts)
        if len(counts) > 1:
            likeliest = naive_models.zipf_likeliest(list(counts.values()))
            assert own.zipf_exponent == pytest.approx(likeliest, abs=1e-5)
        assert own.top_share["1"] == max(counts.values()) / len(mine)
        drift = drift_of(mine, other, window, span)
        assert len(own.drift) == len(drift)
        for line, wanted in zip(own.drift, drift, strict=True):
            assert without_none(line) == pytest.approx(without_none(wanted), rel=1e-12)
        fits.append(naive_models.naive_fit(mine, other, window, span, buckets))
    assert found.exact["outputs"] == total
    assert found.exact["simultaneous"] == simultaneous
    check_fit(found, fits)
    check_frequencies(found, both)
    check_correlation(found, both)


def without_none(line: dict[str, Any]) -> dict[str, Any]:
    return {name: -1 if value is None else value for name, value in line.items()}


def check_fit(found: ArrivalProfile, fits: list[naive_models.Fit]) -> None:
    for name, fit in (*zip(SIDES, fits, strict=True), ("both", naive_models.together(fits))):
        told = found.fit["bits_a_match"][name]
        assert told["matches"] == fit.matches
        if fit.matches:
            frequency, age = fit.bits()
            assert told["frequency"] == pytest.approx(frequency, abs=1e-9)
            assert told["age"] == pytest.approx(age, abs=1e-9)
        else:
            assert told["frequency"] is told["age"] is None
    both = found.fit["bits_a_match"]["both"]
    if both["matches"]:
        better = "age" if both["age"] >= both["frequency"] else "frequency"
        assert found.fit["model"] == found.advice["model"] == better


def check_frequencies(found: ArrivalProfile, both: Any) -> None:
    counts = found.counts()
    left, right = (Counter(key for _, key, _, _ in own) for own in both)
    assert counts.codes.tolist() == sorted({*left, *right})
    assert counts.left.tolist() == [left[code] for code in counts.codes.tolist()]
    assert counts.right.tolist() == [right[code] for code in counts.codes.tolist()]
    assert found.frequencies.rest == {"keys": 0, "left": 0, "right": 0}


def check_correlation(found: ArrivalProfile, both: Any) -> None:
    edges, matches = found.correlation
    assert (np.diff(edges) > 0).all()
    lags = [
        s - t
        for t, key, _, _ in both[0]
        for s, v, _, _ in both[1]
        if key == v and -found.windows[1] <= s - t <= found.windows[0]
    ]
    assert matches.tolist() == np.histogram(lags, np.append(edges, edges[-1] + 1))[0][:-1].tolist()
    assert matches.sum() == len(lags) == found.exact["outputs"]


@pytest.mark.parametrize("name", ["random", "apart", "tied"])
def test_online_estimates_equal_the_oracle(tmp_path: Path, name: str) -> None:
    left, right, options = CASES[name]
    written(tmp_path, left, right)
    found = profiled(tmp_path, monitor=5, retain=0.3, seed=9, **options)
    both, windows = (tuples(left), tuples(right)), windows_of(options)
    ways: dict[str, Any] = {
        "monitor": lambda n: naive_models.naive_monitor(*both, windows, 5, n),
        "retain": lambda n: naive_models.naive_retain(*both, windows, 0.3, n, draw(9)),
    }
    for way, told in ways.items():
        for side, label in enumerate(SIDES):
            exact = found.streams[side].age
            wanted = told(len(exact.buckets))
            own, curve = found.online[way][label], wanted.curves[side]
            assert own["tuples"] == len(wanted.rows[side])
            assert own["buckets"] == curve
            assert own["matches"] == pytest.approx(sum(curve))
            assert own["matches_ratio"] == pytest.approx(sum(curve) / exact.matches)
            shares = zip(curve, exact.buckets, strict=True)
            if sum(curve):
                far = sum(abs(a / sum(curve) - b / exact.matches) for a, b in shares)
                assert own["curve_distance"] == pytest.approx(far)
            else:
                assert own["curve_distance"] is None


def test_retained_tuples_do_not_depend_on_lanes(tmp_path: Path) -> None:
    left, right, options = CASES["random"]
    written(tmp_path, left, right)
    first, second = (
        profiled(tmp_path, lanes=lanes, retain=0.4, **options).online["retain"] for lanes in (1, 3)
    )
    assert first == second
    assert first["left"]["tuples"] > 0


def test_monitoring_memory_is_shared_by_lanes(tmp_path: Path) -> None:
    left, right, options = CASES["long"]
    written(tmp_path, left, right)
    found = profiled(tmp_path, lanes=3, monitor=4, **options).online["monitor"]
    assert found["memory"] == 4
    assert 0 < found["left"]["tuples"] <= 4  # nothing has expired before the end: one turn


def test_every_partition_is_a_join_of_its_own(tmp_path: Path) -> None:
    left, right, _ = CASES["random"]
    written(tmp_path, left, right)
    tables = []
    for rows in (left, right):
        ts, keys, _ = zip(*rows, strict=True)
        tables.append(pa.table({"t": ts, "k": keys, "g": [t % 2 for t in ts]}))
    found = winnow.profile(*tables, on="k", time="t", partition_by="g", window=9).profile
    both = tuples(left), tuples(right)
    outputs = sum(
        key == v and t % 2 == s % 2 and -9 <= s - t <= 9
        for t, key, _, _ in both[0]
        for s, v, _, _ in both[1]
    )
    assert found.exact["outputs"] == outputs
    check_frequencies(found, both)


def test_a_sketch_of_enough_keys_counts_exactly(tmp_path: Path) -> None:
    left, right, options = CASES["random"]
    written(tmp_path, left, right)
    exact, sketch = (profiled(tmp_path, keys=keys, **options) for keys in (None, 50))
    assert sketch.frequencies.kind == "sketch"
    assert sketch.frequencies.error == (0, 0)
    for name in ("codes", "left", "right"):
        assert (getattr(sketch.counts(), name) == getattr(exact.counts(), name)).all()
    assert sketch.fit == exact.fit
    assert sketch.streams == exact.streams


def test_a_sketch_bounds_its_error_and_forgets_idle_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_keys, "IDLE", 64)
    dropped = []
    keep = KeyTable.keep

    def kept(self: Any, mask: Any) -> Any:
        dropped.append(int((~mask).sum()))
        return keep(self, mask)

    monkeypatch.setattr(KeyTable, "keep", kept)
    monkeypatch.setattr(task, "lane_batches", partial(lane_batches, batch_rows=500))
    rng = np.random.default_rng(5)
    sides: list[Rows] = [
        [(int(t), int(key), 1.0) for t, key in zip(range(6000), rng.zipf(1.4, 6000), strict=True)]
        for _ in range(2)
    ]
    written(tmp_path, sides[0], sides[1])
    exact, sketch = (profiled(tmp_path, window=5, keys=keys) for keys in (None, 40))
    assert len(dropped) > 2
    assert min(dropped) > 0
    assert sketch.counts().codes.size == 40
    for side in range(2):
        most = sketch.frequencies.error[side]
        true = exact.counts().of(sketch.counts().codes, side)
        off = sketch.counts()[1 + side] - true
        listed = sketch.counts()[1 + side] > 0
        assert most < 600
        assert ((off >= 0) & (off <= most))[listed].all()
        assert (true <= most)[~listed].all()
        distinct = exact.streams[side].distinct_keys
        assert sketch.streams[side].distinct_keys == pytest.approx(distinct, rel=0.05)
        assert sketch.streams[side].age == exact.streams[side].age
        assert sketch.streams[side].drift == exact.streams[side].drift
    assert sketch.exact == exact.exact
    assert sketch.frequencies.rest["keys"] > 0
    bits = (one.fit["bits_a_match"]["both"] for one in (exact, sketch))
    first, second = (own["frequency"] for own in bits)
    assert second == pytest.approx(first, abs=0.2)


def test_the_model_that_made_the_streams_fits_better(tmp_path: Path) -> None:
    told = "generate age --rows 2000 --curve bell --ticks-per-unit 10 --seed 5"
    assert main([*told.split(), "--out", str(tmp_path / "age")]) == 0
    told = "generate zipf --rows 6000 --domain 50 --importance constant --seed 5"
    assert main([*told.split(), "--out", str(tmp_path / "zipf")]) == 0
    for name, window, model in (("age", 5000, "age"), ("zipf", 300, "frequency")):
        files = [tmp_path / name / f"{side}.parquet" for side in SIDES]
        found = winnow.profile(
            *files, on="key", time="ts", window=window, cache=tmp_path / "cache"
        ).profile
        assert found.fit["model"] == model
        assert found.fit["bits_a_match"]["both"][model] > 0.3
        for line in found.advice["memory"]:  # what made the streams is what replays agree with
            assert line[model]["best_interval"] is not None


def test_expected_recall_is_that_of_the_models(tmp_path: Path) -> None:
    left, right, options = CASES["apart"]
    written(tmp_path, left, right)
    found = profiled(tmp_path, **options)
    both = tuples(left), tuples(right)
    counts = [Counter(key for _, key, _, _ in own) for own in both]
    meeting = sum(counts[0][key] * counts[1][key] for key in counts[0]) / found.ticks
    by_age, by_key = [], []
    for side, own in enumerate(found.streams):
        window = found.windows[side]
        by_age.append(naive_models.age_points(own.age.buckets, window, own.rate))
        by_key.append(naive_models.prob_points(counts[side], counts[1 - side], window, found.ticks))
    models = {
        "age": (by_age, found.exact["simultaneous"], found.exact["outputs"]),
        "frequency": (by_key, meeting, meeting * (sum(found.windows) + 1)),
    }
    assert [line["memory"] for line in found.advice["memory"]] == ["1%", "5%", "10%", "25%"]
    for line in found.advice["memory"]:
        held = [line["tuples"][side] for side in SIDES]
        share = int(line["memory"].rstrip("%"))
        assert held == [own.peak * share // 100 for own in found.streams]
        assert line["percent"] == 100 * sum(held) / sum(own.peak for own in found.streams)
        for model, (curves, simultaneous, outputs) in models.items():
            told = line[model]
            most, splits = naive_models.best_splits(curves[0], curves[1], sum(held))
            for kind, rate in (("even", naive_models.total_rate(curves, held)), ("best", most)):
                wanted = (rate * found.ticks + simultaneous) / outputs
                assert told[kind] == pytest.approx(min(1.0, wanted), abs=1e-9)
            split = told["split"]["left"]
            assert split in splits or sum(told["split"].values()) < sum(held)


def test_advice_is_what_a_replay_reaches(tmp_path: Path) -> None:
    left, right, options = CASES["random"]
    written(tmp_path, left, right)
    for measure in ("importance_recall", "recall"):
        found = profiled(tmp_path, memory="10%,16", measure=measure, **options).advice
        assert [one["memory"] for one in found["trials"]] == ["10%", "16"]
        for one in found["trials"]:
            words = shlex.split(one["command"])
            assert words[:2] == ["winnow", "replay"]
            report = tmp_path / "r.json"
            more = [
                "--engine",
                "local",
                "--cache",
                str(tmp_path / "cache"),
                "--report",
                str(report),
            ]
            assert main([*words[1:], *more]) == 0
            told = json.loads(report.read_text())
            assert told[measure] == one[measure]["value"]
            assert told["memory"]["split"] == one["split"]
            assert one["next"][measure]["value"] <= one[measure]["value"]


def test_shortest_windows_keep_what_they_say(tmp_path: Path) -> None:
    left, right, options = CASES["long"]
    written(tmp_path, left, right)
    whole = profiled(tmp_path, **options | {"buckets": 200})
    for side, label in enumerate(SIDES):
        matches = whole.streams[side].age.matches
        for percent, window in whole.advice["window"][label].items():
            for shorter, kept in ((window, True), (window - 1, False)):
                own = profiled(tmp_path, window=shorter).streams[side].age.matches
                assert (own >= int(percent) / 100 * matches) is kept


@pytest.mark.parametrize("windows", [(500, 0), (500, 500), (20_000, 0)])
def test_a_constant_rate_is_not_called_bursts(windows: tuple[int, int]) -> None:
    """A short window of a Poisson stream holds several times its mean somewhere."""
    rng = np.random.default_rng(5)
    options: dict[str, Any] = dict(
        zip(("window_left", "window_right"), windows, strict=True), on="key", time="ts"
    )
    left, right = (np.sort(rng.integers(0, 500_000, 5_000)) for _ in SIDES)
    hasty = np.sort(np.concatenate([right, np.full(500, 250_000)]))
    for ts, caution in ((right, False), (hasty, True)):
        streams = (pa.table({"ts": own, "key": own % 50}) for own in (left, ts))
        found = winnow.profile(*streams, **options).profile.advice
        assert (found["caution"] or "").startswith("The right stream comes in bursts") is caution
        assert caution or found["caution"] is None


def test_a_file_holds_the_whole_profile(tmp_path: Path) -> None:
    left, right, options = CASES["apart"]
    written(tmp_path, left, right)
    where = tmp_path / "new" / "p.json"
    found = profiled(tmp_path, **options, monitor=3, retain=0.5, out=where)
    again = ArrivalProfile.load(where)
    assert ArrivalProfile.load(str(where)).content() == again.content()
    assert again.content() == found.content() == json.loads(where.read_text())
    assert again.streams[0] == found.streams[0]
    assert again.ticks == found.ticks
    for side in range(2):
        assert (again.curve(side) == found.curve(side)).all()
        assert again.rate(side) == found.rate(side)


@pytest.mark.parametrize(
    ("left", "right"), [([], []), ([(3, 1, 1.0)], []), ([(3, 1, 1.0)], [(3, 1, 2.0)])]
)
def test_next_to_nothing_is_profiled(tmp_path: Path, left: Rows, right: Rows) -> None:
    written(tmp_path, left, right)
    found = profiled(
        tmp_path, monitor=3, retain=0.5, out=tmp_path / "p.json", plots=tmp_path / "plots"
    )
    assert found.exact["outputs"] == len(left) * len(right)
    assert found.fit["model"] is None
    assert {one["policy"] for one in found.advice["trials"]} == {"yield"}
    assert ArrivalProfile.load(tmp_path / "p.json").content() == found.content()


def test_plots_and_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    left, right, _ = CASES["random"]
    written(tmp_path, left, right)
    told = f"profile --engine local --on k --time t --window 9 --retain 0.5 --plots {tmp_path}/p"
    words = [*told.split(), "--cache", str(tmp_path / "cache"), "--keys", "3", "--monitor", "9"]
    words += [f"--left={tmp_path}/left.parquet", f"--right={tmp_path}/right.parquet"]
    assert main(words) == 0
    said = capsys.readouterr().out
    for phrase in (
        "advice by short replays",
        "candidates, all replayed on the",
        "monitor:",
        "retain:",
    ):
        assert phrase in said
    names = {"age_curves", "key_frequencies", "correlation", "drift", "recall"}
    found = {path.name for path in (tmp_path / "p").iterdir()}
    assert found == {f"{name}.{kind}" for name in names for kind in ("png", "svg")}


def test_tables_in_seconds_are_profiled_as_archives_are(tmp_path: Path) -> None:
    left, right, options = CASES["random"]
    written(tmp_path, left, right)
    tables = [
        pa.table(
            {
                "t": pa.array([r[0] for r in rows], pa.timestamp("s")),
                "k": [r[1] for r in rows],
                "i": [r[2] for r in rows],
            }
        )
        for rows in (left, right)
    ]
    told: dict[str, Any] = {"on": "k", "time": "t", "importance": "i"} | options
    found = winnow.profile(*tables, **told | {"window": "9s"}).profile
    assert found.unit == "s"
    same = profiled(tmp_path, executor=SerialExecutor(), **options).content()
    assert all(one.pop("command").startswith("winnow replay") for one in same["advice"]["trials"])
    assert found.content() | {"unit": "tick"} == same
