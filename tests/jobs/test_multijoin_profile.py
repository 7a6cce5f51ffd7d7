"""Harvested joins that begin with profiles of their streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.commands import main
from engine.models.profile.statistics import correlation
from engine.multiway.fractions.histograms import empty_histograms, learn
from engine.multiway.harvest.learning.learner import Learnt, empty_ages, learn_ages
from engine.multiway.harvest.learning.priors import PairPrior, begin
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import basic_counts, windows_of
from engine.runtime.errors import SpecError

WINDOW = 400
LAG = 250


def lagged(folder: Path, rows: int = 3000, seed: int = 3) -> dict[str, Path]:
    """Write two streams of the same keys, the second about `LAG` ticks later."""
    rng = np.random.default_rng(seed)
    keys = rng.permutation(rows)
    ts = np.arange(rows)
    late = np.maximum(0, ts + LAG + rng.integers(-8, 9, rows))
    order = np.argsort(late, kind="stable")
    files = {}
    for name, times, own in (("a", ts, keys), ("b", late[order], keys[order])):
        files[name] = folder / f"{name}.parquet"
        pq.write_table(pa.table({"t": times, "k": own}), files[name])
    return files


def profile_of(files: dict[str, Path], out: Path, **options: Any) -> Path:
    given: dict[str, Any] = {"on": "k", "time": "t", "window": WINDOW, "out": out} | options
    winnow.profile(files["a"], files["b"], cache=out.parent / "cache", **given)
    return out


def joined(files: dict[str, Path], folder: Path, **options: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "predicate": "equi:k", "time": "t", "window": WINDOW, "basic_window": 20,
        "adapt_every": 500, "seed": 1,
    } | options  # fmt: skip
    found = winnow.multijoin(files, out=folder / "out", **given)
    return found.report


def first_step(report: dict[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = report["harvest"]["steps"][0]
    return step


@pytest.mark.parametrize("scores", ["ages", "streams"])
@pytest.mark.parametrize("turned", [False, True])
def test_the_first_interval_reads_where_the_matches_are(
    tmp_path: Path, scores: str, turned: bool
) -> None:
    files = lagged(tmp_path)
    names = "a,b"
    profile = profile_of(files, tmp_path / "p.json")
    if turned:
        files = {"b": files["b"], "a": files["a"]}
    given = {"throttle": 0.15, "scores": scores}
    (tmp_path / "x").mkdir()
    (tmp_path / "y").mkdir()
    without = first_step(joined(files, tmp_path / "x", **given))
    known = first_step(joined(files, tmp_path / "y", **given, profiles={names: profile}))
    assert known["comparisons"] < 0.3 * without["comparisons"]
    assert known["outputs"] > 0.8 * without["outputs"]


def test_a_capacity_is_kept_to_from_the_first_interval_on(tmp_path: Path) -> None:
    files = lagged(tmp_path)
    profile = profile_of(files, tmp_path / "p.json")
    reports = []
    for name, profiles in (("x", None), ("y", {"a,b": profile})):
        (tmp_path / name).mkdir()
        given = {"capacity": 100.0, "per_second": 1.0}
        reports.append(joined(files, tmp_path / name, **given, profiles=profiles))
    without, known = map(first_step, reports)
    assert without["throttle"] == 1.0
    assert 0.05 < known["throttle"] < 0.3
    assert sum(known["drops"]) < sum(without["drops"])
    assert known["outputs"] > without["outputs"]


def test_profiles_say_what_would_have_been_learnt() -> None:
    rng = np.random.default_rng(8)
    windows, orders = windows_of([30, 20]), [[1], [0]]
    settings = HarvestSettings(5, adapt_every=100, shred=1.0, forget=1.0)
    basic = basic_counts(windows, 5)
    lags = rng.integers(-30, 31, 500)  # second.ts - first.ts
    lags = lags[(lags <= 30) & (lags >= -20)]
    ts = np.column_stack([np.full(lags.size, 1000), 1000 + lags])
    wanted = empty_ages(basic)
    learn_ages(wanted, ts, orders, 5, basic)
    seen = empty_histograms(windows.size, 50)
    learn(seen, windows.size, ts)
    left = np.bincount(lags[lags > 0] - 1, minlength=30)
    right = np.bincount(-lags[lags < 0] - 1, minlength=20)
    found = correlation(left, right, int((lags == 0).sum()), (30, 20))
    for first in (0, 1):
        learnt = Learnt(
            empty_histograms(windows.size, 50), np.zeros((2, 1)), np.zeros((2, 1)), np.zeros(2),
            empty_ages(basic),
        )  # fmt: skip
        prior = PairPrior(0, 1, (2.0, 3.0), 100, 0.25, *found)
        prior = prior.turned() if first else prior
        begin(learnt, [prior], windows, orders, settings)
        assert learnt.ages == pytest.approx(wanted)
        assert learnt.rates.tolist() == [2.0, 3.0]
        assert learnt.passes.sum() == pytest.approx(lags.size)
        assert learnt.comparisons == pytest.approx(4 * learnt.passes)
        assert learnt.histograms.sum() == pytest.approx(lags.size)
        assert np.abs(np.cumsum(learnt.histograms[1]) - np.cumsum(seen[1])).max() < 30


def test_the_command_line_takes_profiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = lagged(tmp_path, 800)
    profile = profile_of(files, tmp_path / "p.json")
    short = profile_of(files, tmp_path / "short.json", window=399)
    command = "multijoin --engine local --predicate equi:k --time t --window 400 --basic-window 20"
    words = [*command.split(), *(f"--stream={name}={path}" for name, path in files.items())]
    shed = ["--throttle", "0.2", "--adapt-every", "500"]
    assert main([*words, *shed, "--profile", f"a,b={profile}"]) == 0
    job = tmp_path / "job.toml"
    job.write_text(f'throttle = 0.2\nadapt-every = 500\n[profile]\n"a,b" = "{profile}"\n')
    assert main([*words, "--job", str(job)]) == 0
    capsys.readouterr()
    for more, said in (
        ([*shed, "--profile", f"a={profile}"], "write LEFT,RIGHT=FILE with two of the streams"),
        ([*shed, "--profile", f"a,a={profile}"], "write LEFT,RIGHT=FILE with two of the streams"),
        ([*shed, "--profile", str(profile)], "write LEFT,RIGHT=FILE, such as"),
        ([*shed, "--profile", f"a,c={profile}"], "there is no stream 'c'"),
        ([*shed, "--profile", f"a,b={job}"], "is no profile"),
        (["--profile", f"a,b={profile}"], "this one sheds none"),
        ([*shed, "--profile", f"a,b={profile}", "--profile", f"b,a={profile}"], "two profiles of"),
        ([*shed, "--profile", f"a,b={short}"], "profile windows as long"),
    ):
        assert main([*words, *more]) == 2
        assert said in capsys.readouterr().err


def test_a_profile_of_other_ticks_is_refused(tmp_path: Path) -> None:
    files = lagged(tmp_path, 200)
    profile = profile_of(files, tmp_path / "p.json")
    profile.write_text(profile.read_text().replace('"unit": "tick"', '"unit": "us"'))
    with pytest.raises(SpecError, match="counts in ticks of us, the join in ticks of tick"):
        joined(files, tmp_path, throttle=0.5, profiles={"a,b": profile})
