"""The policy auto: what it chooses is told, and naming it gives the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import arguments, outputs_of, stream, table, winnow
from sweep_cases import drifting
from test_trial import bursty, opened

from engine.commands import main
from engine.jobs.trial import estimate, run, stretches
from engine.jobs.trial.advice import text_of
from engine.options.budget import parse_amounts
from engine.runtime.errors import SpecError
from spark_plugin.dataframe import FRAMES
from winnow import profile, replay


def again(folder: Path, advice: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return the options of a replay as advised."""
    named = {name: advice[name] for name in ("policy", "split", "estimator")}
    return options | named | {"out": folder / "again", "report": folder / "again.json"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"memory": "20%", "lanes": 3},
        {"partition-by": "g", "memory": "40%"},
        {"split": "expected"},
        {"estimator": "window", "importance": None},
        {"memory": None, "memory-left": 5, "memory-right": 4},
        {"memory": None, "memory-left": 5},
        {"combine": "sum", "start-ts": 120, "probe": "after_admission"},
    ],
)
def test_a_replay_as_advised_has_the_same_rows(tmp_path: Path, options: dict[str, Any]) -> None:
    drifting(tmp_path)
    found = winnow(tmp_path, policy=None, **options)
    advice = found.report["advice"]
    for name in ("split", "estimator"):
        assert advice[name] == options.get(name, advice[name])
    assert found.report["policy"]["name"] == advice["policy"]
    assert found.report["memory"]["split"] == advice["split"]
    assert advice["by"] is None
    assert advice["whole"]
    for measure in ("recall", "importance_recall"):
        assert advice[measure] == dict.fromkeys(("value", "low", "high"), pytest.approx(
            found.report[measure], abs=1e-12
        ))  # fmt: skip
    assert main(arguments(tmp_path, **again(tmp_path, advice, **options))) == 0
    assert outputs_of(pq.read_table(tmp_path / "again")) == found.outputs
    other = winnow_named(tmp_path, "auto", options)
    assert other == found.outputs


def winnow_named(folder: Path, policy: str, options: dict[str, Any]) -> Any:
    out = folder / policy
    assert main(arguments(folder, policy=policy, **options | {"out": out})) == 0
    return outputs_of(pq.read_table(out))


@pytest.mark.parametrize("fewest", [2, 1_000])
def test_stretches_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, fewest: int
) -> None:
    monkeypatch.setattr(stretches, "ROWS", 40)
    monkeypatch.setattr(run, "TUPLES", 70_000)
    monkeypatch.setattr(run, "TUPLES_A_ROW", 4)
    monkeypatch.setattr(estimate, "FEWEST", fewest)
    bursty(tmp_path)
    found = winnow(tmp_path, policy=None, window=40, memory="10%", out=tmp_path / "out")
    advice, said = found.report["advice"], " ".join(capsys.readouterr().out.split())
    assert not advice["whole"]
    assert 0 < advice["share"] < 1
    assert f"auto: {advice['options']}, best of" in said
    assert f"{advice['stretches']} stretches of the archive" in said
    value, low, high = (advice["importance_recall"][name] for name in ("value", "low", "high"))
    if fewest == 2:
        assert low < value < high
        assert f"{100 * value:.2f} % predicted ({100 * low:.2f} to {100 * high:.2f} %)" in said
    else:
        assert low is None
        assert high is None
        assert f"{100 * value:.2f} % on these only" in said


def test_a_profile_spares_the_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drifting(tmp_path)
    files = {side: tmp_path / f"{side}.parquet" for side in ("left", "right")}
    given: Any = {"on": "k", "time": "t", "importance": "i", "cache": tmp_path / "cache"}
    profile(**files, **given, window=9, memory="12,25%", out=tmp_path / "p.json")
    found = winnow(tmp_path, policy=None, profile=tmp_path / "p.json")
    assert found.report["advice"]["by"] == str(tmp_path / "p.json")
    alone = opened(tmp_path)
    best = run.run_trial(alone.laid_out("12"), alone.lanes).found[0][0].candidate
    assert best._asdict() == {name: found.report["advice"][name] for name in best._fields}

    def trial(*_: Any, **__: Any) -> None:
        raise LookupError("a trial")

    monkeypatch.setattr("engine.jobs.trial.replay.run_trial", trial)
    for memory, length, tried in (("25%", 9, 0), ("30%", 9, 1), ("25%", 8, 1)):
        words = arguments(
            tmp_path, policy=None, profile=tmp_path / "p.json", memory=memory, window=length,
            out=None,
        )  # fmt: skip
        if tried:
            with pytest.raises(LookupError, match="a trial"):
                main(words)
        else:
            assert main(words) == 0


def test_a_profile_advises_for_its_combine(tmp_path: Path, capsys: Any) -> None:
    drifting(tmp_path)
    words = arguments(
        tmp_path, combine="sum", policy=None, memory="12", out=tmp_path / "p.json", report=None,
    )  # fmt: skip
    assert main(["profile", *words[1:]]) == 0
    profile = json.loads((tmp_path / "p.json").read_text())
    (advice,) = profile["advice"]["trials"]
    assert profile["advice"]["combine"] == "sum"
    assert "--combine sum" in advice["command"]

    def advised(combine: str, **given: Any) -> dict[str, Any]:
        assert main(arguments(tmp_path, policy=None, out=None, combine=combine, **given)) == 0
        found: dict[str, Any] = json.loads((tmp_path / "report.json").read_text())["advice"]
        return found

    alone, told = advised("sum"), advised("sum", profile=tmp_path / "p.json")
    assert (alone["by"], told["by"]) == (None, str(tmp_path / "p.json"))
    for name in ("options", "importance_recall"):
        assert alone[name] == told[name] == advice[name]
    capsys.readouterr()
    assert advised("max", profile=tmp_path / "p.json")["by"] is None
    assert (
        "warning: --profile advises for --combine sum, and max is asked for: its advice is left "
        "out, and policies are tried anew"
    ) in capsys.readouterr().err


def test_nothing_is_chosen_where_nobody_is_dropped(tmp_path: Path) -> None:
    drifting(tmp_path)
    report = winnow(tmp_path, policy=None, memory=None).report
    assert "advice" not in report
    assert report["policy"]["name"] == "exact"
    assert report["estimator_memory"] == {"tuples": 0, "keys": 0}


def test_facts_are_tried_through(tmp_path: Path) -> None:
    for side, seed in (("left", 1), ("right", 2)):
        pq.write_table(table(stream(seed)), tmp_path / f"{side}.parquet")
    facts = pa.table({"a": [0, 1, 2, 0], "b": [1, 1, 0, 0], "since": [0, 40, 0, 50]})
    pq.write_table(facts, tmp_path / "fact.parquet")
    fact = {"fact": tmp_path / "fact.parquet", "fact-left": "a", "fact-right": "b",
            "fact-begin": "since"}  # fmt: skip
    found = winnow(tmp_path, policy=None, **fact)
    advice = found.report["advice"]
    assert advice["importance_recall"]["value"] == pytest.approx(found.report["importance_recall"])
    assert main(arguments(tmp_path, **again(tmp_path, advice, **fact))) == 0
    assert outputs_of(pq.read_table(tmp_path / "again")) == found.outputs


def test_tables_take_advice_too(tmp_path: Path) -> None:
    drifting(tmp_path)
    tables = [pq.read_table(tmp_path / f"{side}.parquet") for side in ("left", "right")]
    told: Any = {"on": "k", "time": "t", "importance": "i", "window": 9, "memory": 12}
    found = replay(*tables, **told)
    assert outputs_of(found.outputs) == winnow(tmp_path, policy=None).outputs
    assert found.report["advice"]["candidates"] > 30


def test_parameters_are_of_a_policy(tmp_path: Path, capsys: Any) -> None:
    drifting(tmp_path)
    assert main(arguments(tmp_path, policy=None, param="alpha=2")) == 2
    assert (
        "--param is of a policy, and --policy is auto: name the policy" in capsys.readouterr().err
    )


def test_a_dataframe_cannot_be_looked_at_first() -> None:
    assert FRAMES.given({})["policy"] == "yield"


def test_a_memory_is_told_as_it_was_given() -> None:
    for text in ("12", "13", "1", "20%"):
        assert text_of(parse_amounts(text, None, None)) == text
    assert text_of(parse_amounts(None, "3", "9")) == {"left": "3", "right": "9"}
    assert text_of(parse_amounts(None, "3", None)) == {"left": "3", "right": None}


def test_a_policy_must_be_known() -> None:
    with pytest.raises(SpecError, match="no policy 'outo'"):
        replay(*(table([]),) * 2, on="k", time="t", window=3, memory=2, policy="outo")
