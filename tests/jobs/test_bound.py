"""``winnow bound``, the replay of its plan, and the share of the best possible in reports."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import naive_optimum as oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from figures import P1
from job_cases import MEMORY, WINDOW, Streams, arguments, peak, streams, table

import winnow
from engine.commands import main
from engine.optimum import states
from engine.policies import POLICIES

PROBES = ("before_admission", "after_admission")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("bound"), seed=11, rows=200)


@pytest.fixture
def figure(tmp_path: Path) -> Path:
    for name, rows in P1.items():
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    return tmp_path


def words(folder: Path, **options: Any) -> list[str]:
    """Return the command line of a bound in `folder`."""
    flags = [f"--{name}" for name, value in options.items() if value is True]
    rest = {name: value for name, value in options.items() if value is not True}
    return ["bound", *arguments(folder, **{"out": None, "policy": None} | rest)[1:], *flags]


def bound(folder: Path, **options: Any) -> dict[str, Any]:
    """Bound with `options` and return the report."""
    report = options.setdefault("report", folder / "bound.json")
    assert main(words(folder, **options)) == 0
    content: dict[str, Any] = json.loads(Path(report).read_text())
    return content


@pytest.mark.parametrize("method", ["states", "flow", "auto", "dual"])
@pytest.mark.parametrize(
    ("probe", "importance", "outputs"),
    [("after_admission", (30.0, 7), (8, 12.0)), ("before_admission", (31.0, 8), (8, 31.0))],
)
def test_golden_values(
    figure: Path,
    method: str,
    probe: str,
    importance: tuple[float, int],
    outputs: tuple[int, float],
) -> None:
    given = {"memory": 4, "window": 3, "probe": probe, "method": method, "seconds": 2}
    given["split"] = "even"
    found = bound(figure, **given)
    if method != "dual":
        assert (found["lower"], found["upper"]) == (importance[0], importance[0])
        assert (found["importance"], found["outputs"]) == importance
    assert found["lower"] <= importance[0] <= found["upper"]
    assert found["exact"] == {"outputs": 9, "importance": 32.0}
    found = bound(figure, objective="outputs", **given)
    assert found["lower"] <= outputs[0] <= found["upper"]
    if method != "dual":
        assert found["lower"] == found["upper"] == found["outputs"] == outputs[0]


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"objective": "outputs"},
        {"threshold": 0.5},
        {"objective": "minimum", "threshold": 0.5},
        {"memory": None, "memory_left": 3},
        {"memory": "30%", "window": None, "window_left": 3, "window_right": 20},
        {"memory": 0},
        {"combine": "sum", "start_ts": 40},
        {"lanes": 3, "memory": 9},
        {"method": "dual", "seconds": 0.2},
        {"method": "states", "memory": 4},
    ],
    ids=str,
)
def test_a_plan_replayed_comes_to_what_was_said(
    tmp_path: Path, case: Streams, probe: str, options: dict[str, Any]
) -> None:
    own = {"objective", "threshold", "method", "seconds"}
    join = {name: value for name, value in options.items() if name not in own}
    place = {"cache": tmp_path / "cache", "probe": probe}
    found = bound(
        case.folder, out=tmp_path / "plan", report=tmp_path / "b.json", **place, **options
    )
    places = {"out": tmp_path / "out", "report": tmp_path / "r.json"}
    assert main(arguments(case.folder, plan=tmp_path / "plan", **places, **place, **join)) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["policy"]["name"] == "plan"
    assert report["result"]["outputs"] == found["outputs"]
    assert report["result"]["importance"] == pytest.approx(found["importance"], rel=1e-12)
    value = found["importance"] - options.get("threshold", 0.0) * found["outputs"]
    if options.get("objective") == "outputs":
        value = found["outputs"]
    reached = "upper" if options.get("objective") == "minimum" else "lower"
    assert found[reached] == pytest.approx(value, rel=1e-12)
    assert report["exact"] == {
        "outputs": found["exact"]["outputs"],
        "importance": pytest.approx(found["exact"]["importance"], rel=1e-12),
    }
    peaks, allowed = report["peak_memory"], report["memory"]
    if found["memory"]["both"] is not None:
        assert peaks["both"] <= found["memory"]["both"]
    elif allowed["left"] is not None:
        assert peaks["left"] <= allowed["left"]
    if "lanes" not in options:
        assert max(peaks["left"], peaks["right"]) <= peaks["both"]
    assert peaks["both"] <= peaks["left"] + peaks["right"]
    plan = pq.read_table(tmp_path / "plan")
    assert plan.column_names == ["side", "row", "until_ts"]
    joined = sum(key is not None for rows in (case.left, case.right) for _, key, _ in rows)
    assert len(plan) == joined


def test_no_memory_given_is_the_exact_join(tmp_path: Path, case: Streams) -> None:
    found = bound(case.folder, memory=None, report=tmp_path / "b.json")
    assert found["lower"] == found["upper"] == pytest.approx(found["exact"]["importance"])
    assert found["memory"]["left"] is None


@pytest.mark.parametrize("probe", PROBES)
def test_no_policy_beats_it_and_reports_give_the_share(
    tmp_path: Path, case: Streams, probe: str
) -> None:
    place = {"cache": tmp_path / "cache", "probe": probe, "out": None}
    best = bound(case.folder, report=tmp_path / "b.json", split="even", **place)
    over_any = bound(case.folder, report=tmp_path / "b.json", **place)
    assert best["gap"] == over_any["gap"] == 0.0
    assert best["lower"] < over_any["lower"]
    for number, policy in enumerate(sorted(set(POLICIES) - {"custom"})):
        report = tmp_path / f"{number}.json"
        words = arguments(case.folder, policy=policy, report=report, **place)
        assert main([*words, "--bound"]) == 0
        found = json.loads(report.read_text())
        importance = found["result"]["importance"]
        assert importance <= best["upper"] * (1 + 1e-12)
        assert found["bound"]["lower"] == pytest.approx(best["lower"], rel=1e-12)
        shares = found["bound"]["share_of_best"]
        assert shares["least"] == shares["most"] == pytest.approx(importance / best["lower"])
        told = found["bound"]["any_split"]
        assert told["lower"] == told["upper"] == pytest.approx(over_any["lower"], rel=1e-12)
        assert told["share_of_best"]["least"] == pytest.approx(importance / over_any["lower"])


def test_a_replay_is_a_lower_bound_itself(tmp_path: Path, case: Streams) -> None:
    words = arguments(case.folder, out=None, report=tmp_path / "r.json", policy="simpprob")
    assert main([*words, "--bound=dual", "--seconds=0"]) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["result"]["importance"] <= found["bound"]["lower"] <= found["bound"]["upper"]
    shares = found["bound"]["share_of_best"]
    assert 0 < shares["least"] <= shares["most"] <= 1


def test_sweeps_give_the_share_too(tmp_path: Path, case: Streams) -> None:
    join = {"on": "k", "time": "t", "importance": "i", "left": case.folder / "left.parquet"}
    join |= {"right": case.folder / "right.parquet", "engine": "local", "cache": tmp_path / "c"}
    grid = {"windows": f"4,{WINDOW}", "memory": f"{MEMORY},100%", "policies": "simp,rand"}
    grid |= {"seeds": "0,1", "out": tmp_path / "swept"}
    words = [f"--{name}={value}" for name, value in (join | grid).items()]
    assert main(["sweep", *words, "--bound"]) == 0
    for row in pq.read_table(tmp_path / "swept" / "sweep.parquet").to_pylist():
        assert row["importance"] <= row["best_lower"] * (1 + 1e-12)
        assert row["best_lower"] == row["best_upper"] <= row["exact_importance"] * (1 + 1e-12)
        assert row["share_of_best"] == pytest.approx(row["importance"] / row["best_upper"])
        if row["memory"] == "100%":
            assert row["share_of_best"] == pytest.approx(1.0)
        elif row["window_left"] == WINDOW:
            place = {"report": tmp_path / "b.json", "cache": tmp_path / "c"}
            for split, name in (("even", "best"), ("any", "best_any")):
                own = bound(case.folder, split=split, **place)
                assert own["lower"] == pytest.approx(row[f"{name}_lower"], rel=1e-12)
                assert own["upper"] == pytest.approx(row[f"{name}_upper"], rel=1e-12)
            assert row["best_upper"] < row["best_any_upper"]
            assert row["share_of_best_any"] < row["share_of_best"]
    picture = (tmp_path / "swept" / "importance_recall.svg").read_text()
    assert "best possible" in picture
    assert "best of any split" in picture
    assert "best possible" not in (tmp_path / "swept" / "recall.svg").read_text()
    grid["out"] = tmp_path / "plain"
    words = [f"--{name}={value}" for name, value in (join | grid).items()]
    assert main(["sweep", *words]) == 0
    plain = pq.read_table(tmp_path / "plain" / "sweep.parquet")
    assert plain["share_of_best"].null_count == len(plain)


def test_lanes_and_groups_are_joins_of_their_own(tmp_path: Path) -> None:
    sides = []
    for side, name in enumerate(("left", "right")):
        rows = [(t, (t + side) % 4, 1.0 + t % 3) for t in range(60)]
        groups = pa.array([f"g{t % 2}" for t in range(60)])
        sides.append(table(rows, g=groups))
        pq.write_table(sides[-1], tmp_path / f"{name}.parquet")
    whole = bound(tmp_path, partition_by="g", memory=4)
    parts = []
    for group in ("g0", "g1"):
        folder = tmp_path / group
        folder.mkdir()
        for name, one in zip(("left", "right"), sides, strict=True):
            pq.write_table(
                one.filter(pa.compute.equal(one["g"], group)), folder / f"{name}.parquet"
            )
        parts.append(bound(folder, memory=4))
    assert whole["lower"] == whole["upper"] == math.fsum(part["lower"] for part in parts)
    assert whole["outputs"] == sum(part["outputs"] for part in parts)


def test_the_path_can_be_printed(figure: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"memory": 4, "window": 3, "probe": "after_admission", "method": "states"}
    assert main(words(figure, print=True, report=None, **given)) == 0
    said = capsys.readouterr().out
    assert "total 31" in said
    assert "memory: 4 for both sides, split in any way" in said
    given["split"] = "even"
    assert main(words(figure, print=True, report=None, **given)) == 0
    said = capsys.readouterr().out
    assert "R graph" in said
    assert "r(1) key 9 imp 20" in said
    assert "total 30" in said
    assert "optimal (by states)" in said


def test_python_says_the_same(figure: Path) -> None:
    left, right = (pq.read_table(figure / f"{name}.parquet") for name in ("left", "right"))
    join: Any = {"on": "k", "time": "t", "importance": "i", "window": 3, "memory": 4}
    for probe in PROBES:
        found = winnow.bound(left, right, probe=probe, **join)
        told = bound(figure, memory=4, window=3, probe=probe, out=figure / probe)
        assert {name: found.report[name] for name in ("lower", "upper", "outputs")} == {
            name: told[name] for name in ("lower", "upper", "outputs")
        }
        assert found.outputs.equals(pq.read_table(figure / probe))
        done = winnow.replay(left, right, probe=probe, plan=figure / probe, **join)
        assert done.report["result"]["importance"] == found.report["lower"]
        planned = winnow.replay(left, right, probe=probe, plan=figure / probe, bound=True, **join)
        best, memory = planned.report["bound"], planned.report["memory"]
        assert best["lower"] == best["any_split"]["lower"] == found.report["lower"]
        assert best["share_of_best"] == {"least": 1.0, "most": 1.0}
        assert (memory["left"], memory["right"], memory["both"]) == (None, None, 4)
        assert memory["split"] == "pooled"
        paths = figure / "left.parquet", figure / "right.parquet"
        report = winnow.bound(*paths, cache=figure / "c", probe=probe, **join).report
        assert report["lower"] == found.report["lower"]
        dgl = {"probe": probe, "policy": "dgl"} | join
        shared = winnow.replay(left, right, bound=True, **dgl).report
        assert shared["bound"]["any_split"]["lower"] == found.report["lower"]
        even = winnow.bound(left, right, probe=probe, split=0.5, **join).report
        assert shared["bound"]["lower"] == even["lower"] <= found.report["lower"]
        assert even["memory"]["split"] == "0.5"


@pytest.mark.parametrize("objective", ["importance", "outputs", "minimum"])
def test_every_objective_has_its_page_and_plot(figure: Path, objective: str) -> None:
    files = {"plot": figure / "bound.svg", "html": figure / "bound.html"}
    bound(figure, objective=objective, **files)
    assert "exact join" in files["plot"].read_text()
    page = files["html"].read_text()
    assert {"minimum": "Least importance"}.get(objective, f"Best possible {objective}") in page
    assert "Of the exact join" in page
    if objective != "outputs":
        bound(figure, objective=objective, threshold=2.5, **files)
        assert "Of the exact join" not in files["html"].read_text()


def test_the_plan_is_legal_by_the_oracle(tmp_path: Path, case: Streams) -> None:
    found = bound(case.folder, out=tmp_path / "plan", memory=6)
    plan: tuple[list[int | None], list[int | None]] = [None] * 200, [None] * 200
    for line in pq.read_table(tmp_path / "plan").to_pylist():
        plan[line["side"] == "right"][line["row"]] = line["until_ts"]
    windows = {"window_left": WINDOW, "window_right": WINDOW}
    budgets = {"budget_left": 3, "budget_right": 3}
    done = oracle.check_plan(case.left, case.right, plan, **windows, **budgets, shared=True)
    assert len(done.outputs) == found["outputs"]
    assert done.importance == pytest.approx(found["lower"], rel=1e-12)


def test_values_that_all_but_cancel_are_no_contradiction(tmp_path: Path) -> None:
    for name, shift in (("left", 0), ("right", 1)):
        rows = [(2 * t + shift, t % 3, 1000.1 + 1e-7 * (t % 7)) for t in range(300)]
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    found = bound(tmp_path, memory=4, window=20, threshold=1000.1)
    assert found["lower"] == found["upper"]
    assert 0 < found["lower"] == pytest.approx(found["importance"] - 1000.1 * found["outputs"])


# --- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "flows"}, "--method is 'flows'; choose one of auto, states, flow, dual"),
        ({"objective": "output"}, "Did you mean 'outputs'"),
        ({"objective": "outputs", "threshold": 2}, "every output counts alike"),
        ({"gap": 1}, "--gap is 1.0; give a number from 0 to less than 1"),
        ({"seconds": -1}, "--seconds is -1.0; give a number of 0 or more"),
        ({"combine": "most"}, "--combine is 'most'; choose one of"),
        ({"method": "states"}, "more than 9 memory states"),
    ],
)
def test_bad_options(
    case: Streams,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.setattr(states, "MOST_STATES", 9)
    report = tmp_path / "deep" / "r.json"
    assert main(words(case.folder, report=report, out=tmp_path / "plan", **options)) == 2
    assert message in capsys.readouterr().err
    assert not report.exists()
    assert not (tmp_path / "plan").exists()


@pytest.mark.parametrize("name", ["policy", "params", "estimator", "seed", "columns"])
def test_what_a_policy_would_need_is_no_option(figure: Path, name: str) -> None:
    of_policy = name in {"policy", "params", "estimator"}
    said = "the best possible is of any policy: leave it out" if of_policy else "lists all"
    keywords: dict[str, Any] = {"on": "key", "time": "ts", "window": 3, "memory": 4, name: "prob"}
    with pytest.raises(TypeError, match=rf"unexpected keyword '{name}': .*{said}"):
        winnow.bound(figure / "left.parquet", figure / "right.parquet", **keywords)


def test_what_is_joined_through_facts_has_no_expected_split() -> None:
    stream = pa.table({"t": [1, 2], "k": [1, 2]})
    facts = pa.table({"a": [1, 2], "b": [2, 1]})
    with pytest.raises(winnow.WinnowError, match="through facts: give split even, or the left"):
        winnow.bound(
            stream, stream, on="k", time="t", window=3, memory=2, split="expected",
            fact=facts, fact_left="a", fact_right="b",
        )  # fmt: skip


def test_too_much_to_print(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = streams(tmp_path, rows=600).folder
    assert main(words(folder, print=True)) == 2
    assert "it is for at most 1000; leave it out" in capsys.readouterr().err


PLAN = pa.table({"side": ["left", "right"], "row": [0, 0], "until_ts": [None, None]})


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        (None, {}, "give a Parquet file or folder of side, row, until_ts"),
        (PLAN.drop(["side"]), {}, "(no column side): give a Parquet file or folder of side, row,"),
        (
            PLAN.set_column(1, "row", pa.array([0, 200])),
            {},
            "not in 0 to 199: give the archives that it was made of",
        ),
        (pa.concat_tables([PLAN, PLAN]), {}, "names left row 0 more than once: leave one line"),
        (
            PLAN.set_column(0, "side", pa.array(["left", "both"])),
            {},
            "lines of a side other than left and right: 'both'; correct them",
        ),
        (
            PLAN.set_column(2, "until_ts", pa.array([10**6, None])),
            {},
            "until 1000000, which is not in its window of 9",
        ),
        (PLAN, {"policy": "simp"}, "give one of them"),
        (PLAN, {"param": "alpha=2"}, "give one of them"),
        (PLAN, {"split": "even"}, "without --split: give one of them"),
        (PLAN, {"estimator": "window"}, "without --estimator: give one of them"),
        (PLAN, {"gap": 0.1}, "--gap says how good bounds must be: give --bound as well"),
    ],
)
def test_bad_plans(
    case: Streams,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    plan: pa.Table | None,
    options: dict[str, Any],
    message: str,
) -> None:
    if plan is not None:
        pq.write_table(plan, tmp_path / "plan.parquet")
    places = {"out": tmp_path / "out", "report": tmp_path / "r.json"}
    words = arguments(case.folder, plan=tmp_path / "plan.parquet", **places, **options)
    assert main(words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "r.json").exists()


def test_a_plan_must_fit_the_memory(
    case: Streams, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bound(case.folder, memory=MEMORY, out=tmp_path / "plan")
    places = {"out": tmp_path / "out", "report": None, "plan": tmp_path / "plan"}
    assert main(arguments(case.folder, memory=4, **places)) == 2
    assert f"holds {MEMORY} tuples at once with probe before_admission, and memory is 4" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()
    places |= {"out": None, "report": tmp_path / "r.json"}
    assert main(arguments(case.folder, memory=None, **places)) == 0
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["peak_memory"]["both"] == MEMORY < peak(case.left)
