"""Joins of several streams from archives and tables to outputs and report, and what users may err.

Streams and facts are generated; rows are those of the oracle of `tests/oracle/naive_star.py`.
"""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import duckdb
import naive_star
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import arguments, outputs_of, stream, streams, table
from options_given import line_of, star_options
from places import DATA
from pyarrow import csv
from thorough import guarded

import winnow
from engine import commands as cli
from engine.jobs.star import task
from engine.jobs.star.run import run_star
from engine.policies import POLICIES, age
from engine.runtime.errors import InputError, SpecError
from engine.runtime.executors import ThreadExecutor
from engine.star.lane import StarReplay

NAMES = ("permits", "trips", "claims")
Table = list[tuple[int, Any, float]]


def rows_of(seed: int = 0) -> tuple[Table, ...]:
    """Return three streams, unsorted, with null keys and ties."""
    return tuple(stream(3 * seed + at, 60, span=40, keys=4) for at in range(3))


def links(seed: int = 0, size: int = 24) -> list[tuple[Any, ...]]:
    """Return facts of the three streams that come and go."""
    rng = np.random.default_rng([seed, 3])
    facts = []
    for at in range(size):
        begin, end = sorted(rng.choice(42, 2, replace=False).tolist())
        values = tuple(int(key) for key in rng.integers(0, 4, 3))
        facts.append((values, None if at % 3 == 0 else begin, None if at % 4 == 0 else end, at))
    return facts


def fact_table(facts: list[tuple[Any, ...]], names: tuple[str, ...] = NAMES) -> pa.Table:
    """Return facts as an archive; `id` tells them apart."""
    columns: dict[str, Any] = {
        name: pa.array([fact[0][at] for fact in facts], pa.int32()) for at, name in enumerate(names)
    }
    for at, name in enumerate(("since", "until", "id"), 1):
        columns[name] = pa.array([fact[at] for fact in facts], pa.int64())
    return pa.table(columns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the streams and facts of seed 0 as archives."""
    for name, rows in zip(NAMES, rows_of(), strict=True):
        payload = pa.array([f"{name} {at}" for at in range(len(rows))])
        pq.write_table(table(rows, p=payload), tmp_path / f"{name}.parquet")
    pq.write_table(fact_table(links()), tmp_path / "fact.parquet")
    return tmp_path


def words(folder: Path, **options: Any) -> list[str]:
    """Return the command line of a replay of the fixture's archives; None leaves an option out."""
    settled = {
        "engine": "local",
        "stream": [f"{name}={folder}/{name}.parquet:k" for name in NAMES],
        "fact": folder / "fact.parquet",
        "fact_begin": "since",
        "fact_end": "until",
        "fact_id": "id",
        "time": "t",
        "importance": "i",
        "window": 6,
        "memory": 10,
        "out": folder / "out",
        "report": folder / "report.json",
    } | options
    return line_of("replay", settled)


def found(outputs: pa.Table, names: tuple[str, ...] = NAMES) -> list[naive_star.Output]:
    """Return outputs in the oracle's form and order."""
    rows = zip(*(outputs.column(f"{name}_row").to_pylist() for name in names), strict=True)
    ts = outputs.column("ts").cast(pa.int64()).to_pylist()
    rest = (outputs.column(name).to_pylist() for name in ("importance", "fact_row"))
    found = [tuple(each) for each in zip(rows, ts, *rest, strict=True)]
    return sorted(found, key=lambda output: (output[1], output[0], output[3]))


def oracle(case: int = 0, **settings: Any) -> list[naive_star.Output]:
    """Return the oracle's outputs; defaults as those of `words`."""
    settled = {"windows": (6, 6, 6), "budgets": (4, 3, 3), "policy": "dgl"} | settings
    return naive_star.replay_star(rows_of(case), links(case), **settled).outputs


def test_the_command_line_writes_the_oracles_rows(folder: Path) -> None:
    assert cli.main(words(folder)) == 0
    outputs = pq.read_table(folder / "out")
    assert found(outputs) == oracle()
    assert outputs.num_rows
    assert outputs.column_names[:7] == [
        "permits_row", "trips_row", "claims_row", "fact_row", "ts", "importance", "weight",
    ]  # fmt: skip
    one = outputs.slice(0, 1).to_pylist()[0]
    assert one["trips_p"] == f"trips {one['trips_row']}"
    assert one["fact_id"] == one["fact_row"]
    assert one["claims_k"] == one["fact_claims"]
    assert (folder / "out" / "_SUCCESS").exists()
    report = json.loads((folder / "report.json").read_text())
    exact = naive_star.exact_star(rows_of(), (6, 6, 6), links())
    assert report["exact"]["outputs"] == len(exact)
    assert report["exact"]["importance"] == pytest.approx(sum(o[2] for o in exact))
    assert report["result"]["outputs"] == outputs.num_rows
    assert report["lost"]["outputs"] == len(exact) - outputs.num_rows
    assert sum(b["lost_outputs"] for b in report["lost"]["by_time"]) == report["lost"]["outputs"]
    assert report["memory"] == {
        "permits": 4, "trips": 3, "claims": 3, "total": 10, "split": "even",
        "asked": {"permits": "4", "trips": "3", "claims": "3"},
    }  # fmt: skip
    keys: dict[Any, int] = {}
    first = rows_of()[0]
    for outs, sign in ((exact, 1), (found(outputs), -1)):
        for rows, *_ in outs:
            key = first[rows[0]][1]
            keys[key] = keys.get(key, 0) + sign
    told = {key["key"]: key["lost_outputs"] for key in report["lost"]["top_keys"]}
    assert told == {key: lost for key, lost in keys.items() if lost}
    for name, rows in zip(NAMES, rows_of(), strict=True):
        assert report["rows"][name] == 60
        assert report["joined"][name] == sum(row[1] is not None for row in rows)


@pytest.mark.parametrize("policy", sorted(set(POLICIES) - {"yield", "custom"}))
def test_every_policy_from_python(policy: str) -> None:
    params: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if policy == "age":
        curves = ((1.0, 3.0), (2.0,), (0.0, 1.0, 2.0))
        params = {f"curve_{name}": own for name, own in zip(NAMES, curves, strict=True)}
        settings = {"params": {"curves": curves}}
    result = winnow.replay_streams(
        {name: table(rows) for name, rows in zip(NAMES, rows_of(2), strict=True)},
        fact_table(links(2)),
        on="k", time="t", importance="i", window={"permits": 9, "": 4}, policy=policy,
        memory={"permits": 3, "claims": 2}, estimator="window", probe="after_admission",
        combine="sum", start_ts=5, seed=3, params=params,
        fact_begin="since", fact_end="until", fact_id="id",
    )  # fmt: skip
    assert result.outputs is not None
    assert found(result.outputs) == oracle(
        2, windows=(9, 4, 4), budgets=(3, None, 2), policy=policy, estimator="window",
        probe="after_admission", combine_name="sum", start_ts=5, seed=3, **settings,
    )  # fmt: skip
    assert result.report["memory"]["trips"] is None
    assert result.report["policy"]["name"] == policy
    assert not result.rejected


def test_percentages_are_of_what_the_exact_join_needs(folder: Path) -> None:
    assert cli.main(words(folder, memory="50%", policy="simp", columns="ids")) == 0
    report = json.loads((folder / "report.json").read_text())
    whole = naive_star.replay_star(
        rows_of(), links(), windows=(6, 6, 6), budgets=(None,) * 3, policy="simp"
    )
    budgets = tuple(peak // 2 for peak in whole.peaks)
    assert tuple(report["memory"][name] for name in NAMES) == budgets
    assert found(pq.read_table(folder / "out")) == oracle(policy="simp", budgets=budgets)


@pytest.mark.parametrize("policy", ["dgl", "age"])
def test_the_exact_join_need_not_be_counted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """But for age curves, which it tells."""
    assert cli.main(words(folder, policy=policy)) == 0
    beside = json.loads((folder / "report.json").read_text())
    begun = []

    def noted(settings: Any, *args: Any, **more: Any) -> StarReplay:
        begun.append(settings.policy)
        return StarReplay(settings, *args, **more)

    monkeypatch.setattr(task, "StarReplay", noted)
    alone = {"out": folder / "alone", "report": folder / "alone.json", "reference": "none"}
    assert cli.main(words(folder, policy=policy, **alone)) == 0
    assert begun == ([None, "age"] if policy == "age" else ["dgl"])
    report = json.loads((folder / "alone.json").read_text())
    outputs = found(pq.read_table(folder / "alone"))
    assert outputs == found(pq.read_table(folder / "out"))
    for one in (report, beside):
        del one["seconds"], one["tuples_per_second"], one["out"]
    for name in ("exact", "recall", "importance_recall", "lost"):
        del beside[name]
    assert report == beside


@pytest.mark.parametrize(("memory", "budgets"), [("10", (4, 3, 3)), ("20%", None)])
def test_one_memory_for_all_streams(
    folder: Path, capsys: Any, memory: str, budgets: tuple[int, ...] | None
) -> None:
    assert cli.main(words(folder, memory=memory, split="pooled")) == 0
    printed = " ".join(capsys.readouterr().out.split())
    report = json.loads((folder / "report.json").read_text())
    total = report["memory"]["total"]
    assert cli.main(words(folder, memory=None, out=None, report=folder / "exact.json")) == 0
    exact = json.loads((folder / "exact.json").read_text())
    if budgets is None:
        budgets = (exact["peak_memory"]["total"] // 5, 0, 0)
    assert total == sum(budgets) > 3
    wanted = naive_star.replay_star(
        rows_of(), links(), windows=(6,) * 3, budgets=budgets, policy="dgl", pooled=True
    )
    assert found(pq.read_table(folder / "out")) == wanted.outputs
    assert wanted.outputs
    most = max(sum(map(len, rows)) for _, rows in wanted.retained)
    peaks = dict(zip(NAMES, wanted.peaks, strict=True))
    assert report["peak_memory"] == {**peaks, "total": most}
    assert report["memory"] == {
        **dict.fromkeys(NAMES), "total": total, "split": "pooled",
        "asked": report["memory"]["asked"],
    }  # fmt: skip
    assert f"│ total │ │ │ │ │ │ {total} │ {most} │" in printed


def test_one_memory_from_python_and_from_a_job_file(folder: Path) -> None:
    wanted = oracle(pooled=True)
    assert wanted != oracle()
    job = words(folder, memory=None)
    (folder / "job.toml").write_text('memory = 10\nsplit = "pooled"\n')
    assert cli.main([*job, f"--job={folder}/job.toml"]) == 0
    assert found(pq.read_table(folder / "out")) == wanted
    result = winnow.replay_streams(
        {name: pq.read_table(folder / f"{name}.parquet") for name in NAMES},
        pq.read_table(folder / "fact.parquet"),
        on="k", time="t", importance="i", window=6, memory=10, split="pooled",
        fact_begin="since", fact_end="until", fact_id="id",
    )  # fmt: skip
    assert result.outputs is not None
    assert found(result.outputs) == wanted


@pytest.mark.parametrize(
    "split",
    [
        "pooled",
        *guarded(
            ["even"],
            "engine/star",
            "engine/optimum",
            "engine/jobs/star",
            "tests/jobs/test_star_job.py",
        ),
    ],
)
def test_no_policy_is_better_than_the_best_possible(folder: Path, capsys: Any, split: str) -> None:
    asked = {"out": None, "split": split, "reference": "none"}
    reached = {}
    for policy in ("dgl", "prob", "simpprob", "until_expiry", "rand"):
        assert cli.main(words(folder, policy=policy, bound="auto", **asked)) == 0
        report = json.loads((folder / "report.json").read_text())
        assert "exact" not in report
        reached[policy], bound = report["result"]["importance"], report["bound"]
        assert bound["method"] == "decomposition"
        assert bound["lower"] <= bound["upper"]
        assert bound["share_of_best"]["least"] == reached[policy] / bound["upper"]
        whole = bound["any_split"]
        assert whole["upper"] >= bound["lower"]
        if split == "pooled":
            assert whole == {name: bound[name] for name in whole}
    assert max(reached.values()) <= bound["upper"]
    assert bound["gap"] < 0.02
    printed = " ".join(capsys.readouterr().out.split())
    assert "best possible" in printed
    assert ("best of any split" in printed) == (split != "pooled")
    result = winnow.replay_streams(
        {name: pq.read_table(folder / f"{name}.parquet") for name in NAMES},
        pq.read_table(folder / "fact.parquet"),
        on="k", time="t", importance="i", window=6, memory=10, split=split, policy="rand",
        fact_begin="since", fact_end="until", fact_id="id", bound=True,
    )  # fmt: skip
    assert result.report["bound"]["upper"] == bound["upper"]


def test_two_streams_have_the_best_possible_of_left_and_right(tmp_path: Path) -> None:
    for name, rows in zip(("left", "right"), rows_of(), strict=False):
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    facts = [(values[:2], *rest) for values, *rest in links()]
    pq.write_table(fact_table(facts, ("left", "right")), tmp_path / "fact.parquet")
    fact = {"fact": "fact.parquet", "fact-begin": "since", "fact-end": "until", "fact-id": "id"}
    common = [f"--{name}={value}" for name, value in fact.items()]
    common += ["--engine=local", "--time=t", "--importance=i", "--window=6", "--memory=8",
               "--policy=prob", "--bound", "--report=report.json"]  # fmt: skip
    found = []
    for asked in (
        ["--stream=left=left.parquet:k", "--stream=right=right.parquet:k"],
        ["--left=left.parquet", "--right=right.parquet", "--on=k", "--fact-left=left",
         "--fact-right=right"],
    ):  # fmt: skip
        with contextlib.chdir(tmp_path):
            assert cli.main(["replay", *asked, *common]) == 0
        found.append(json.loads((tmp_path / "report.json").read_text())["bound"])
    for several, two in ((found[0], found[1]), (found[0]["any_split"], found[1]["any_split"])):
        for name in ("lower", "upper", "outputs", "importance"):
            assert several[name] == pytest.approx(two[name])
        assert several["gap"] == two["gap"] == 0.0


def test_without_memory_it_is_the_exact_join(folder: Path) -> None:
    assert cli.main(words(folder, memory=None)) == 0
    exact = naive_star.exact_star(rows_of(), (6, 6, 6), links())
    assert found(pq.read_table(folder / "out")) == exact
    report = json.loads((folder / "report.json").read_text())
    assert report["recall"] == report["importance_recall"] == 1.0
    assert report["policy"]["name"] == "exact"
    assert report["lost"]["top_keys"] == []


def test_a_measured_age_curve_is_that_of_the_exact_join(folder: Path) -> None:
    assert cli.main(words(folder, policy="age", param="buckets=3", memory=6)) == 0
    ages, tables = np.zeros((3, 3)), rows_of()
    for rows, ts, *_ in naive_star.exact_star(tables, (6, 6, 6), links()):
        for side, row in enumerate(rows):
            old = ts - tables[side][row][0]
            if old:
                ages[side, (old - 1) * 3 // 6] += 1
    joined = [sum(row[1] is not None for row in rows) for rows in tables]
    curves = [age.refined(tuple(own), 6) for own in ages / np.array(joined)[:, None]]
    assert [len(own) for own in curves] == [6, 6, 6]
    wanted = oracle(policy="age", budgets=(2, 2, 2), params={"curves": curves})
    assert found(pq.read_table(folder / "out")) == wanted


def test_a_grain_cuts_age_curves_that_are_given(folder: Path) -> None:
    options = {"policy": "age", "memory": 6, "param": ["curve=1,4", "grain=3"]}
    assert cli.main(words(folder, **options)) == 0
    curves = [(1.0, 1.0, 1.0, 4.0, 4.0, 4.0)] * 3
    wanted = oracle(policy="age", budgets=(2, 2, 2), params={"curves": curves})
    assert wanted != oracle(policy="age", budgets=(2, 2, 2), params={"curves": [(1.0, 4.0)] * 3})
    assert found(pq.read_table(folder / "out")) == wanted


@pytest.mark.parametrize("access", ["scan", "index", "hash", "binary"])
def test_text_archives_and_every_access_method(folder: Path, access: str) -> None:
    csv.write_csv(pq.read_table(folder / "trips.parquet"), folder / "trips.csv")
    named = [f"{name}={folder}/{name}.parquet:k" for name in NAMES]
    named[1] = f"trips={folder}/trips.csv:k"
    assert cli.main(words(folder, stream=named, fact_access=access)) == 0
    outputs = pq.read_table(folder / "out")
    assert found(outputs) == oracle()
    assert set(outputs.column("trips_p").to_pylist()) <= {f"trips {at}" for at in range(60)}


def test_a_job_file_says_the_same(folder: Path, capsys: Any) -> None:
    lines = ['fact = "fact.parquet"', 'fact-begin = "since"', 'fact-end = "until"']
    lines += ['fact-id = "id"', 'importance = "i"', "memory = 10", 'engine = "local"']
    lines += ["[time]", *(f'{name} = "t"' for name in NAMES), "[window]"]
    lines += [*(f"{name} = 6" for name in NAMES), "[stream]"]
    lines += [f'{name} = "{folder}/{name}.parquet:k"' for name in NAMES]
    text = "\n".join(lines).replace("fact.parquet", f"{folder}/fact.parquet")
    (folder / "job.toml").write_text(text + f'\n[fact-on]\n{NAMES[0]} = "{NAMES[0]}"\n')
    assert cli.main(["replay", "--job", f"{folder}/job.toml", "--out", f"{folder}/out"]) == 0
    assert found(pq.read_table(folder / "out")) == oracle()
    commas = ["--fact-on", ",".join(f"{name}={name}" for name in NAMES), "--columns", "ids"]
    job = ["replay", "--job", f"{folder}/job.toml", *commas]
    assert cli.main([*job, "--out", f"{folder}/ids"]) == 0
    assert found(pq.read_table(folder / "ids")) == oracle()
    assert "--columns ids" not in capsys.readouterr().err
    assert cli.main(job) == 0
    assert "--columns ids is of outputs that are written" in capsys.readouterr().err


def test_text_keys_logs_and_seconds() -> None:
    """Attributes of text and of two columns, a change log, whole seconds, another column of F."""
    start = 1_700_000_000
    tables = {}
    for name, rows in zip(NAMES, rows_of(), strict=True):
        keys = [None if row[1] is None else f"key {row[1]}" for row in rows]
        stamps = pa.array([start + row[0] for row in rows], pa.timestamp("s"))
        tables[name] = pa.table({"t": stamps, "k": keys, "n": [1] * len(rows)})
    facts = {"permits": [], "trips": [], "paid": [], "n": [], "op": [], "at": []}  # type: ignore[var-annotated]
    once: list[Any] = []
    for values in ((0, 0, 0), (1, 0, 1), (0, 1, 2)):
        for op, at in (("insert", 3), ("delete", 20), ("insert", 25)):
            for name, value in zip(("permits", "trips", "paid"), values, strict=True):
                facts[name].append(f"key {value}")
            facts["n"].append(1)
            facts["op"].append(op)
            facts["at"].append(start + at)
        once += [(values, 3, 20), None, (values, 25, None)]
    fact = pa.table(facts)
    fact = fact.set_column(5, "at", fact.column("at").cast(pa.timestamp("s")))
    result = winnow.replay_streams(
        tables, fact, on={"permits": ("k", "n"), "": "k"}, time="t", window="6s", memory=9,
        fact_on={"claims": "paid", "permits": ("permits", "n")}, fact_op="op", fact_time="at",
        policy="simpprob",
    )  # fmt: skip
    plain = [[(ts + start, key, 1.0) for ts, key, _ in rows] for rows in rows_of()]
    shifted = [
        (fact[0], fact[1] + start, None if fact[2] is None else fact[2] + start)
        for fact in once
        if fact
    ]
    wanted = naive_star.replay_star(
        plain, shifted, windows=(6,) * 3, budgets=(3,) * 3, policy="simpprob"
    )
    at = [row for row, fact in enumerate(once) if fact]
    assert result.outputs is not None
    assert found(result.outputs) == [(*o[:3], at[o[3]]) for o in wanted.outputs]
    assert wanted.outputs
    assert result.outputs.schema.field("permits_t").type == pa.timestamp("s")
    assert result.report["window"]["tick"] == "s"


def rounded(content: Any) -> Any:
    """Return a part of a report without the last digits of sums."""
    return json.loads(json.dumps(content), parse_float=lambda text: round(float(text), 9))


def test_two_streams_are_those_of_left_and_right(tmp_path: Path) -> None:
    streams(tmp_path, 4)
    facts = pa.table({"left": [0, 1, 2, 0], "right": [1, 1, 0, 0], "since": [0, 40, 0, 50]})
    pq.write_table(facts, tmp_path / "fact.parquet")
    fact = {"fact": tmp_path / "fact.parquet", "fact_begin": "since"}
    two = arguments(tmp_path, on=None, left_on="k", right_on="k", fact_left="left",
                    fact_right="right", **fact)  # fmt: skip
    assert cli.main(two) == 0
    several = words(
        tmp_path, stream=[f"{s}={tmp_path}/{s}.parquet:k" for s in ("left", "right")],
        window=9, memory=12, out=tmp_path / "out2", report=tmp_path / "report2.json",
        fact_end=None, fact_id=None, **fact,
    )  # fmt: skip
    assert cli.main(several) == 0
    one, other = pq.read_table(tmp_path / "out"), pq.read_table(tmp_path / "out2")
    assert outputs_of(one) == outputs_of(other)
    assert one.num_rows
    reports = [json.loads((tmp_path / f"report{n}.json").read_text()) for n in ("", "2")]
    same = ("rows", "joined", "null_keys", "rejected", "sorted", "exact", "result", "recall",
            "importance_recall", "lost", "peak_memory", "memory", "window", "policy")  # fmt: skip
    for name in ("memory", "peak_memory"):
        reports[0][name]["total"] = reports[0][name].pop("both")
    for name in same:
        assert rounded(reports[0][name]) == rounded(reports[1][name]), name


def test_bad_rows_are_an_error_or_set_aside(folder: Path, capsys: Any) -> None:
    rows = table(rows_of()[1]).set_column(0, "t", pa.array([None, *range(59)], pa.int64()))
    pq.write_table(rows, folder / "trips.parquet")
    assert cli.main(words(folder)) == 2
    assert "trips.parquet: column t: 1 row is null (row 0)" in capsys.readouterr().err
    assert not (folder / "out").exists()
    assert cli.main(words(folder, bad_rows="quarantine")) == 0
    aside = pq.read_table(folder / "out" / "_rejected" / "trips.parquet")
    assert aside.column("reason").to_pylist() == ["null time"]
    report = json.loads((folder / "report.json").read_text())
    assert report["rejected"] == {"permits": 0, "trips": 1, "claims": 0}
    result = winnow.replay_streams(
        {name: pq.read_table(folder / f"{name}.parquet") for name in NAMES},
        fact_table(links()).append_column("bad", pa.array([9] * 24)),
        on="k", time="t", window=5, fact_begin="bad", fact_end="until", bad_rows="quarantine",
    )  # fmt: skip
    assert set(result.rejected) == {"trips", "fact"}


WRONG = {
    "lanes": ({"lanes": 2}, "--lanes is not available with --stream"),
    "partition": ({"partition_by": "k"}, "--partition-by is not available with --stream"),
    "bound": ({"bound": "states"}, "--bound states is of two streams: give auto, dual or flow"),
    "gap": ({"gap": 0.1}, "--gap says how good bounds must be: give --bound as well"),
    "plan": ({"plan": "x"}, "--plan is not available with --stream"),
    "cache": ({"cache": "x"}, "--cache is not available with --stream: no lanes are prepared"),
    "reference": ({"reference": "none", "memory": None}, "--reference none leaves the exact join"),
    "gpu": ({"device": "gpu"}, "--device is 'gpu', which is not available with --stream"),
    "left": ({"left": "x"}, "--left is not available with --stream: name every stream"),
    "window": ({"window_left": 3}, "--window-left is not available .* give --window for all"),
    "on": ({"left_on": "k"}, "--left-on is not available .* in --stream NAME=PATH:COL"),
    "yield": ({"policy": "yield"}, "policy yield learns what a key yields"),
    "auto": (
        {"policy": "auto"},
        (
            "--policy auto tries policies on a left and a right stream, and several are given: "
            "leave it out for dgl, or choose one of rand, ((?!yield).)*, custom$"
        ),
    ),
    "no policy": ({"policy": "dlg"}, "no policy 'dlg'; choose one of rand, ((?!yield).)*'dgl'"),
    "no fact": ({"fact": None, "fact_begin": None}, "joins through a fact relation: give --fact"),
    "no window": ({"window": None}, "window of stream permits is missing"),
    "other": ({"window": "5,trip=3"}, "'trip'; the streams are .*Did you mean 'trips'"),
    "twice": ({"time": "a,b=x,t"}, "--time has more than one value for all streams"),
    "memory": ({"memory": "5,trips=3"}, "memory is 5 for all streams and has others for some"),
    "split": (
        {"split": "expected"},
        "--split expected splits .* several are given: choose even or",
    ),
    "share": ({"split": "0.8"}, "--split 0.8 splits .* several are given: choose even or pooled"),
    "probe": (
        {"probe": "after_admission", "memory": None},
        "--probe is of a replay within a memory, and without one the join is exact",
    ),
    "no memory": ({"split": "pooled", "memory": None}, "over all streams: give --memory"),
    "memories": ({"split": "pooled", "memory": "trips=3"}, "give --memory K in place of NAME=K"),
    "curves": (
        {"split": "pooled", "policy": "age", "param": "curve_trips=1,2"},
        "these are of buckets that differ",
    ),
    "amount": ({"memory": "much"}, "--memory is 'much'"),
    "column": ({"time": "trips=at,t"}, "stream trips .* has no column 'at'"),
    "fact column": ({"fact_on": "trips=trip"}, "fact archive .* has no column 'trip'.*'trips'"),
    "fact twice": (
        {"fact_on": ["claims=claims,trips=trips", "trips=trips"]},
        "--fact-on trips is given more than once",
    ),
    "form": ({"stream": "permits"}, "--stream is 'permits'; write NAME=PATH:COL"),
    "one": ({"stream": "permits=x:k"}, "a join needs two or more"),
    "name": ({"stream": ["fact=x:k", "b=x:k"]}, "'fact' is no name for a stream"),
    "same": ({"stream": ["b=x:k", "b=y:k"]}, "--stream b is given more than once"),
    "policy": ({"policy": "dgi"}, "there is no policy 'dgi'"),
    "buckets": ({"policy": "age", "param": "buckets=2.5"}, "buckets of policy age is 2.5"),
    "function": ({"policy": "custom"}, "policy custom needs --param function"),
    "access": ({"fact_access": "tree"}, "--fact-access is 'tree'; choose one of"),
    "curve": ({"policy": "age", "param": "curve_left=1"}, "curve_left of policy age is of a"),
    "buckets of all": (
        {"policy": "age", "param": ["curve=1,2", "buckets=3"]},
        "buckets of policy age is of curves that are measured, and they are given: leave it out",
    ),
    "buckets of each": (
        {"policy": "age", "param": [*(f"curve_{name}=1" for name in NAMES), "buckets=3"]},
        "buckets of policy age is of curves that are measured",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_say_what_is_wrong(folder: Path, capsys: Any, case: str) -> None:
    options, message = WRONG[case]
    assert cli.main(words(folder, **options)) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert re.search(message, error), error
    assert not (folder / "out").exists()


def test_importances_whose_product_no_float_holds_are_an_error() -> None:
    names = ("a", "b", "c", "d")
    streams = {name: pa.table({"t": [0, 1], "k": [1, 1], "i": [1e100, 0.0]}) for name in names}
    given: dict[str, Any] = {"on": "k", "time": "t", "window": 1, "importance": "i", "memory": 4}
    fact = pa.table({name: [1] for name in names})
    with pytest.raises(winnow.WinnowError, match=r"1e\+100 of d\) multiply .*: scale"):
        winnow.replay_streams(streams, fact, **given, combine="product")
    assert winnow.replay_streams(streams, fact, **given, combine="max").report["result"]


def test_names_that_would_meet_in_the_output_are_an_error(folder: Path) -> None:
    rows = table(rows_of()[0], row=pa.array(range(60)))
    pq.write_table(rows, folder / "permits.parquet")
    assert cli.main(words(folder)) == 2
    assert cli.main(words(folder, columns="ids")) == 0
    with pytest.raises(SpecError, match="2 columns of the output would be called permits_row"):
        winnow.replay_streams(
            {"permits": rows, "trips": rows}, fact_table(links()), on="k", time="t", window=3
        )


def test_python_refuses_what_is_no_stream() -> None:
    rows, fact = table(rows_of()[0]), fact_table(links())
    with pytest.raises(InputError, match=r"stream a has no column 'x'"):
        winnow.replay_streams(
            {"a": rows, "b": rows}, fact, on="k", time="x", window=3,
            fact_on={"a": "permits", "b": "trips"},
        )  # fmt: skip
    with pytest.raises(TypeError, match="unexpected keyword 'lanes'"):
        winnow.replay_streams({"a": rows}, fact, on="k", time="t", window=3, lanes=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "options", [{"memory": 10}, {"memory": None}, {"policy": "age"}, {"split": "pooled"}]
)
def test_spark_gives_the_same(folder: Path, spark: Any, options: dict[str, Any]) -> None:
    from spark_plugin.executor import SparkExecutor  # noqa: PLC0415 - tests without Spark need none

    reports = []
    for executor in (ThreadExecutor(1), SparkExecutor(spark)):
        place = folder / type(executor).__name__
        join: dict[str, Any] = {
            "on": "k", "time": "t", "importance": "i", "window": 6, "memory": 8,
            "fact_begin": "since", "fact_end": "until", "fact_id": "id",
        }  # fmt: skip
        join.update(options)
        paths = {name: folder / f"{name}.parquet" for name in NAMES}
        star = star_options(paths, folder / "fact.parquet", place, join)
        reports.append(run_star(star, executor).content)
    places = [pq.read_table(folder / name) for name in ("ThreadExecutor", "SparkExecutor")]
    assert places[0].equals(places[1])
    assert places[0].num_rows
    for name in ("seconds", "tuples_per_second", "out"):
        assert reports[0].pop(name) != reports[1].pop(name)
    assert reports[0] == reports[1]


@pytest.mark.skipif(
    not DATA.is_dir(), reason=f"no archives at {DATA}; set WINNOW_DATA to their folder"
)
def test_permits_trips_and_payments_through_declarations(tmp_path: Path) -> None:
    """Declarations tie a payment to a permit and its trip for a while before and after them."""
    day, folder = 86_400, DATA / "bpi2020"
    declared = pq.read_table(folder / "declaration_submitted.parquet")
    declared = declared.group_by(["key", "decl"]).aggregate([("ts", "min")])
    ts = declared.column("ts_min").to_numpy()
    fact = pa.table({
        "permit_submitted": declared.column("key"), "trip_start": declared.column("key"),
        "declaration_paid": declared.column("decl"),
        "since": ts - 100 * day, "until": pa.array(ts + 20 * day),
    })  # fmt: skip
    pq.write_table(fact, tmp_path / "fact.parquet")
    names = ("permit_submitted", "trip_start", "declaration_paid")
    command = words(
        tmp_path, stream=[f"{name}={folder}/{name}.parquet:key" for name in names],
        time="ts", importance="importance", window=f"{90 * day},declaration_paid={5 * day}",
        fact_id=None, memory="20%", columns="ids",
    )  # fmt: skip
    assert cli.main(command) == 0
    report = json.loads((tmp_path / "report.json").read_text())
    a, b, c = (f"'{folder}/{name}.parquet'" for name in names)
    active = " AND ".join(f"{s}.ts >= f.since AND {s}.ts < f.until" for s in "abc")
    near = " AND ".join(
        f"greatest(a.ts, b.ts, c.ts) - {s}.ts <= {w * day}"
        for s, w in zip("abc", (90, 90, 5), strict=True)
    )
    rows = duckdb.sql(f"""
        SELECT count(*), sum(least(a.importance, b.importance, c.importance)::DOUBLE)
        FROM '{tmp_path}/fact.parquet' f
        JOIN {a} a ON a.key = f.permit_submitted
        JOIN {b} b ON b.key = f.trip_start JOIN {c} c ON c.key = f.declaration_paid
        WHERE {active} AND {near}
    """).fetchall()  # noqa: S608 - our own paths and numbers
    assert report["exact"]["outputs"] == rows[0][0] > 1000
    assert report["exact"]["importance"] == pytest.approx(rows[0][1], rel=1e-12)
    assert 0 < report["result"]["outputs"] < report["exact"]["outputs"]
