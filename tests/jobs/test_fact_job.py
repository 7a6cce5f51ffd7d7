"""Replays, sweeps and bounds through a fact relation, whole: from tables and archives to rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import naive_optimum as oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fact_job_cases import JOIN, NAMES, Case, as_log, case, fact_table, in_type, parted, rows_of

import winnow
from engine.commands import main
from engine.lanes.facts import FACTS, FactFile
from engine.policies import POLICIES
from engine.runtime.errors import InputError, SpecError

KNOWN = sorted(set(POLICIES) - {"custom", "age"})


def replayed(one: Case, **options: Any) -> winnow.Result:
    given = JOIN | NAMES | {"fact": fact_table(one.facts)} | options
    return winnow.replay(*one.tables, **given)


def test_the_exact_join_is_the_oracles() -> None:
    one = case(1)
    found, expected = replayed(one), one.expected().outputs
    assert rows_of(found.outputs) == [tuple(o) for o in expected]
    assert found.report["exact"]["outputs"] == len(expected) > 300
    assert found.report["fact"] == {
        "rows": 30, "facts": 30, "duplicates": 0, "deletes": 0, "null_keys": 0,
        "between_ticks": 0, "rejected": 0, "parts": 1,
    }  # fmt: skip
    row = found.outputs.slice(7, 1).to_pylist()[0]
    assert row["fact_note"] == f"fact {row['fact_row']}"
    assert row["left_p"] == f"left {row['left_row']}"
    assert (row["fact_a"], row["fact_b"]) == (row["left_k"], row["right_k"])


@pytest.mark.parametrize("estimator", ["memory", "window", "history"])
@pytest.mark.parametrize("policy", KNOWN)
def test_replays_are_the_oracles(policy: str, estimator: str) -> None:
    one = case(2)
    probe = "after_admission" if policy < "m" else "before_admission"
    found = replayed(one, policy=policy, estimator=estimator, memory=12, probe=probe, seed=5)
    expected = one.expected(
        policy=policy, estimator=estimator, budget_left=6, budget_right=6, probe=probe, seed=5
    )
    assert rows_of(found.outputs) == [tuple(o) for o in expected.outputs]
    peaks = found.report["peak_memory"]
    assert (peaks["left"], peaks["right"]) == (expected.peak_left, expected.peak_right)


@pytest.mark.parametrize("kinds", [("string", "small"), ("decimal", "string"), ("date", "date")])
def test_attributes_of_any_type(kinds: tuple[str, str]) -> None:
    one = case(3)
    tables = [
        table.set_column(1, "k", in_type(kind, table.column("k").to_pylist()))
        for table, kind in zip(one.tables, kinds, strict=True)
    ]
    fact = fact_table(one.facts)
    for at, (name, kind) in enumerate(zip("ab", kinds, strict=True)):
        fact = fact.set_column(at, name, in_type(kind, fact.column(name).to_pylist()))
    found = winnow.replay(*tables, **(JOIN | NAMES | {"fact": fact}))
    assert rows_of(found.outputs) == [tuple(o) for o in one.expected().outputs]


def test_a_log_of_changes_is_its_intervals() -> None:
    one = case(4)
    given = {
        "fact_left": "a",
        "fact_right": "b",
        "fact_op": "op",
        "fact_time": "at",
        "fact_id": "n",
    }
    log = as_log(one.facts, 4)
    found = winnow.replay(*one.tables, **(JOIN | given | {"fact": log, "memory": "30%"}))
    same = replayed(one, memory="30%")
    numbers = log.column("n").to_pylist()
    rows = [(*o[:4], numbers[o[4]]) for o in rows_of(found.outputs)]
    assert sorted(rows) == sorted(rows_of(same.outputs))
    assert found.report["fact"]["deletes"] == sum(f[3] is not None for f in one.facts)


@pytest.mark.parametrize("lanes", [1, 2, 3, 50])
def test_lanes_are_unions_of_parts(lanes: int) -> None:
    one = parted(5)
    found = replayed(one, lanes=lanes)
    assert rows_of(found.outputs) == [tuple(o) for o in one.expected().outputs]
    assert found.report["fact"]["parts"] == 4
    assert 1 <= found.report["lanes"]["replayed"] <= lanes


def test_prepared_facts_of_which_a_bit_changed_are_told(tmp_path: Path) -> None:
    assert main(words(case(2), tmp_path, "replay", "--cache", str(tmp_path / "cache"))) == 0
    [path] = (tmp_path / "cache").rglob(FACTS)
    group, data = pq.read_metadata(path).row_group(0), bytearray(path.read_bytes())
    places = {group.column(i).path_in_schema: i for i in range(group.num_columns)}
    chunk = group.column(places["end"])
    first = chunk.dictionary_page_offset or chunk.data_page_offset
    data[first + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"\(.*CRC.*\): they were removed or damaged"):
        FactFile(path, "hash").index()


def test_groups_are_joins_of_their_own() -> None:
    one = case(6)
    groups = [[i % 3 for i in range(len(rows))] for rows in (one.left, one.right)]
    tables = [
        table.append_column("g", pa.array(own))
        for table, own in zip(one.tables, groups, strict=True)
    ]
    given = JOIN | NAMES | {"fact": fact_table(one.facts), "partition_by": "g"}
    found = rows_of(winnow.replay(*tables, **given).outputs)
    assert found == [tuple(o) for o in one.expected().outputs if groups[0][o[0]] == groups[1][o[1]]]


@pytest.mark.parametrize("access", ["scan", "index", "hash", "binary"])
def test_every_access_method_finds_the_same(access: str) -> None:
    one = case(7)
    found = replayed(one, fact_access=access, memory=12)
    assert rows_of(found.outputs) == rows_of(replayed(one, memory=12).outputs)


def test_age_curves_are_measured_through_facts() -> None:
    one = case(8)
    found = replayed(one, policy="age", memory=12, params={"buckets": 4})
    exact = one.expected().outputs
    curves = []
    for side, rows in enumerate((one.left, one.right)):
        counts = [0.0] * 4
        for left, right, *_ in exact:
            ages = one.right[right][0] - one.left[left][0], one.left[left][0] - one.right[right][0]
            if ages[side] > 0:
                counts[(ages[side] - 1) * 4 // 9] += 1
        curves.append([count / sum(key is not None for _, key, _ in rows) for count in counts])
    params = {"curve_left": curves[0], "curve_right": curves[1], "grain": 2}  # 8 of 9 ticks
    given = replayed(one, policy="age", memory=12, params=params)
    assert rows_of(found.outputs) == rows_of(given.outputs)


def test_a_sweep_is_its_replays() -> None:
    one = case(9)
    told: Any = {k: v for k, v in (JOIN | NAMES).items() if k != "window"}
    told["fact"] = fact_table(one.facts)
    found = winnow.sweep(
        *one.tables, windows=[4, 9], policies=["simp", "dgl", "dimpprob"], memory=[6, 20], **told
    )
    for row in found.outputs.to_pylist():
        alone = replayed(
            one, policy=row["policy"], memory=int(row["memory"]), window=row["window_left"]
        ).report
        assert row["outputs"] == alone["result"]["outputs"]
        assert row["importance"] == pytest.approx(alone["result"]["importance"], rel=1e-12)
        assert row["exact_outputs"] == alone["exact"]["outputs"]


@pytest.mark.parametrize("probe", ["before_admission", "after_admission"])
def test_plans_of_a_bound_replay_to_its_sums(tmp_path: Path, probe: str) -> None:
    one = case(10)
    paths = one.written(tmp_path)
    given = JOIN | NAMES | {"memory": 12, "probe": probe, "cache": tmp_path / "cache"}
    given["fact"] = paths["fact"]
    plan = tmp_path / "plan"
    best = winnow.bound(paths["left"], paths["right"], out=plan, **given).report
    assert best["lower"] == best["upper"]
    found = winnow.replay(paths["left"], paths["right"], plan=plan, **given).report
    assert found["result"]["importance"] == pytest.approx(best["lower"], rel=1e-12)
    assert found["result"]["outputs"] == best["outputs"]
    for policy in ("simp", "dgl", "dimpprob", "prob"):
        other = winnow.replay(paths["left"], paths["right"], policy=policy, **given).report
        assert other["result"]["importance"] <= best["upper"] * (1 + 1e-12)


def words(one: Case, folder: Path, command: str, *more: str) -> list[str]:
    paths = one.written(folder)
    told = [f"--{name}={path}" for name, path in paths.items()]
    told += ["--on=k", "--time=t", "--importance=i", "--window=9", "--engine=local"]
    told += [f"--{name.replace('_', '-')}={value}" for name, value in NAMES.items()]
    return [command, *told, f"--cache={folder / 'cache'}", *more]


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = case(11)
    out, report = tmp_path / "out", tmp_path / "report.json"
    more = [f"--out={out}", f"--report={report}", "--memory=10", "--policy=simpprob"]
    assert main(words(one, tmp_path, "replay", *more)) == 0
    assert "facts: 30 of 30 rows" in capsys.readouterr().out
    assert rows_of(pq.read_table(out)) == rows_of(
        replayed(one, memory=10, policy="simpprob").outputs
    )
    assert json.loads(report.read_text())["fact"]["facts"] == 30
    assert main(words(one, tmp_path, "bound", "--memory=10")) == 0
    assert "optimal" in capsys.readouterr().out


def test_the_paths_through_the_states_are_told_through_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = case(12)
    small = Case(
        small.left[:10], small.right[:10], [(a, b, None, None, n) for a, b, *_, n in small.facts]
    )
    assert main(words(small, tmp_path, "bound", "--memory=4", "--method=states", "--print")) == 0
    assert "r(" in capsys.readouterr().out


def test_bad_facts_are_an_error_or_set_aside(tmp_path: Path) -> None:
    one = case(13)
    bad = one._replace(facts=[*one.facts, (0, 0, 9, 9, 99)])
    with pytest.raises(InputError, match="begin"):
        replayed(bad)
    found = replayed(bad, bad_rows="quarantine")
    assert rows_of(found.outputs) == rows_of(replayed(one).outputs)
    aside = found.rejected["fact"]
    assert aside is not None
    assert aside.num_rows == 1
    assert aside.column("n").to_pylist() == [99]
    out = tmp_path / "out"
    assert main(words(bad, tmp_path, "replay", f"--out={out}", "--bad-rows=quarantine")) == 0
    assert pq.read_table(out / "_rejected" / "fact.parquet").num_rows == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fact_right": None}, "fact_right is missing"),
        ({"fact": None}, "give fact as well"),
        ({"fact_left": "nothing"}, "no column 'nothing'"),
        ({"fact_access": "guess"}, "fact_access is 'guess'"),
        ({"fact_left": ("a", "n")}, "name equally many"),
        ({"fact_op": "note"}, "a change log needs both"),
        ({"fact_left": "note"}, "not of one kind"),
    ],
)
def test_wrong_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((SpecError, InputError), match=message):
        replayed(case(14), **options)


@pytest.mark.filterwarnings("ignore:the exact join of left")
def test_no_fact_means_no_output() -> None:
    one = case(15)
    found = replayed(one._replace(facts=[(9, 9, None, None, 0)]), memory=4)
    assert found.outputs.num_rows == 0
    assert found.report["peak_memory"] == {"left": 0, "right": 0, "both": 0}
    assert found.report["recall"] == 1.0


P2 = Case(
    [(0, 1, 5.0), (1, 0, 1.0), (2, 1, 4.0), (3, 0, 8.0), (4, 2, 3.0), (5, 5, 2.0)],
    [(0, 0, 1.0), (1, 3, 5.0), (2, 3, 2.0), (3, 8, 6.0), (4, 3, 4.0), (5, 5, 3.0)],
    [(0, 3, -1, None, 0), (1, 5, -1, None, 1), (0, 8, -1, None, 2), (4, 5, -1, None, 3),
     (1, 3, -1, 5, 4), (5, 8, 3, None, 5)],
)  # fmt: skip
"""P2's figures 2 and 3; the lifetime is 4."""


@pytest.mark.parametrize(
    ("probe", "importance", "outputs", "most"),
    [("after_admission", 38.0, 11, 12), ("before_admission", 42.0, 14, 14)],
)
@pytest.mark.parametrize("method", ["states", "flow"])
def test_p2_s_example(probe: str, importance: float, outputs: int, most: int, method: str) -> None:
    given: Any = JOIN | NAMES | {"fact": fact_table(P2.facts), "window": 3}
    exact = winnow.replay(*P2.tables, **given).report["exact"]
    given["probe"] = probe
    assert (exact["outputs"], exact["importance"]) == (15, 43.0)
    best = winnow.bound(*P2.tables, memory=4, split="even", method=method, **given).report
    assert (best["lower"], best["upper"], best["outputs"]) == (importance, importance, outputs)
    semantic = winnow.bound(
        *P2.tables, memory=4, split="even", method=method, objective="outputs", **given
    ).report
    assert (semantic["lower"], semantic["upper"]) == (most, most)
    over_any = winnow.bound(*P2.tables, memory=4, method=method, **given).report
    fact = [(a, b, begin, end) for a, b, begin, end, _ in P2.facts]
    best_of_all = oracle.optimum(
        P2.left, P2.right, window_left=3, window_right=3, budget_left=2, budget_right=2,
        probe=probe, fact=fact, shared=True,
    )  # fmt: skip
    assert over_any["lower"] == over_any["upper"] == best_of_all.value > importance


F = pa.table({"x": ["p"], "y": ["s"], "from": [0], "to": [9], "coded": ["c"]})
F = F.set_column(4, "coded", F["coded"].dictionary_encode())
STREAM = pa.table({"t": [1], "k": ["p"]})


@pytest.mark.parametrize("columns", ["all", "ids"])
@pytest.mark.parametrize(
    ("left", "fact"),
    [
        (STREAM.set_column(1, "k", pa.array(["q"])), F),
        (STREAM, F.slice(0, 0)),
        (STREAM.slice(0, 0), F),
        (STREAM, pa.concat_tables([F, F]).set_column(3, "to", pa.array([-1, -1]))),
    ],
    ids=["no match", "no facts", "no tuples", "facts set aside"],
)
@pytest.mark.filterwarnings("ignore:the exact join of left")
def test_outputs_without_rows_have_all_columns(
    left: pa.Table, fact: pa.Table, columns: str
) -> None:
    given: dict[str, Any] = {
        "left_on": "k", "right_on": "k", "fact_left": "x", "fact_right": "y", "time": "t",
        "fact_begin": "from", "fact_end": "to", "window": 5, "bad_rows": "quarantine",
        "columns": columns,
    }  # fmt: skip
    right = STREAM.set_column(1, "k", pa.array(["s"]))
    whole = winnow.replay(STREAM, right, fact=F, **given).outputs
    assert whole.num_rows == 1
    found = winnow.replay(left, right, fact=fact, **given).outputs
    assert found.num_rows == 0
    assert found.schema == whole.schema
