"""The advice of a sweep on tables made by hand."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from engine.jobs.sweep.advice import Advice, advise
from engine.jobs.sweep.rows import SCHEMA, Row, rows_in, table_of
from engine.jobs.sweep.run import SweepResult
from engine.jobs.sweep.table import print_sweep
from engine.options.grid import Target
from engine.policies import POLICIES

TARGET = Target("importance_recall", 0.9)


def row(
    policy: str,
    tuples: int,
    reached: float,
    *,
    recall: float = 0.5,
    seconds: float = 1.0,
    **others: Any,
) -> Row:
    base: dict[str, Any] = dict.fromkeys(SCHEMA.names, 0)
    base |= {
        "parameters": "{}",
        "split": "even",
        "estimator": "memory",
        "lanes": 1,
        "probe": "before_admission",
        "seed": None,
    }
    base |= {"policy": policy, "memory": str(tuples), "memory_left": tuples - tuples // 2}
    base |= {"memory_right": tuples // 2, "recall": recall, "importance_recall": reached}
    base |= dict.fromkeys(("best_lower", "best_upper", "share_of_best"))
    base |= dict.fromkeys(("best_any_lower", "best_any_upper", "share_of_best_any"))
    return Row(**(base | {"seconds": seconds} | others))


def best(rows: list[Row], target: Target = TARGET) -> Advice:
    (advice,) = advise(rows, [target])
    return advice


def test_the_least_memory_that_meets_it_and_the_next_smaller_that_does_not() -> None:
    found = best(
        [
            row("dgl", 100, 0.5), row("dgl", 200, 0.89), row("dgl", 300, 0.9), row("dgl", 400, 1),
            row("simp", 100, 0.1), row("simp", 350, 0.99), row("prob", 400, 0.2),
        ]
    )  # fmt: skip
    assert found.best is not None
    assert found.below is not None
    assert (found.best.policy, found.best.tuples) == ("dgl", 300)
    assert (found.below.policy, found.below.tuples) == ("dgl", 200)
    assert found.nearest is None
    assert {name: one and one.tuples for name, one in found.policies.items()} == {
        "dgl": 300,
        "simp": 350,
        "prob": None,
    }


def test_ties_go_to_the_greater_measure_then_less_time_then_the_registry() -> None:
    rows = [row("simp", 300, 0.95), row("dgl", 300, 0.96), row("prob", 301, 1.0)]
    assert best(rows).best.policy == "dgl"  # type: ignore[union-attr]
    rows = [row("dgl", 300, 0.95, seconds=1.5), row("age", 300, 0.95, seconds=1.4)]
    assert best(rows).best.policy == "age"  # type: ignore[union-attr]
    rows = [row("dgl", 300, 0.95), row("simp", 300, 0.95), row("age", 300, 0.95)]
    assert best(rows).best.policy == "simp"  # type: ignore[union-attr]
    assert best(rows[::-1]).best.policy == "simp"  # type: ignore[union-attr]


def test_a_measure_that_falls_with_memory_is_taken_as_it_is() -> None:
    found = best([row("dgl", 100, 0.95), row("dgl", 200, 0.8), row("dgl", 300, 0.97)])
    assert found.best is not None
    assert found.best.tuples == 100
    assert found.below is None


def test_where_nothing_meets_it_the_nearest_is_named() -> None:
    rows = [
        row("dgl", 100, 0.5),
        row("dgl", 200, 0.8),
        row("simp", 150, 0.8),
        row("simp", 300, 0.7),
    ]
    found = best(rows)
    assert found.best is None
    assert found.below is None
    assert found.nearest is not None
    assert (found.nearest.policy, found.nearest.tuples) == ("simp", 150)
    assert found.policies == {"dgl": None, "simp": None}


def test_seeds_count_by_their_mean() -> None:
    rows = [row("rand", 100, reached, seed=seed) for seed, reached in enumerate((0.8, 0.9, 1.0))]
    found = best(rows, Target("importance_recall", 0.9))
    assert found.best is not None
    assert found.best.seeds == 3
    assert best(rows, Target("importance_recall", 0.91)).best is None


def test_every_target_and_window_has_its_own_advice() -> None:
    rows = [
        row("dgl", 100 * i, 0.3 * i, recall=0.25 * i, window_left=w, window_right=w)
        for w in (9, 99)
        for i in (1, 2, 3)
    ]
    targets = [Target("recall", 0.5), Target("importance_recall", 0.85)]
    found = advise(rows, targets)
    assert [(one.window_left, one.target.measure) for one in found] == [
        (9, "recall"), (9, "importance_recall"), (99, "recall"), (99, "importance_recall"),
    ]  # fmt: skip
    assert [one.best and one.best.tuples for one in found] == [200, 300, 200, 300]


def test_tables_hold_rows_as_they_are() -> None:
    rows = [row("rand", 7, 0.25, seed=3), row("dgl", 8, 1.0)]
    table = table_of(rows)
    assert table.schema == SCHEMA
    assert rows_in(table) == rows
    assert table_of([]).schema == SCHEMA


def printed(rows: list[Row], targets: list[Target], width: int = 80) -> list[str]:
    report = {
        "grid": {"tick": "s", "windows": [0], "left_out": []},
        "seconds": {"replay": 1.0},
        "device": {"used": "cpu", "reason": "asked for"},
        "out": None,
    }
    console = Console(file=io.StringIO(), width=width)
    print_sweep(SweepResult(table_of(rows), advise(rows, targets), report), console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text.splitlines()


def test_many_policies_are_printed_in_tables_that_fit() -> None:
    rows = [row(name, 10**6, place / 100) for place, name in enumerate(POLICIES)]
    lines = printed(rows, [])
    assert max(map(len, lines)) <= 80
    named = [line.split("│")[1].strip() for line in lines if line.startswith("│")]
    assert named == list(POLICIES)[::-1]  # the best first
    few = [row(name, 10**at, 0.5) for name in POLICIES for at in range(1, 20)]
    lines = printed(few, [])
    assert max(map(len, lines)) <= 80
    heads = [line for line in lines if line.startswith("┃")]
    assert len(heads) > 1
    named = [cell.strip() for line in heads for cell in line.split("┃")]
    assert [name for name in named if name in POLICIES] == list(POLICIES)


@pytest.mark.parametrize(
    ("targets", "titles"),
    [
        ((), ["importance recall"]),
        (("recall",), ["recall"]),
        (("recall", "importance_recall"), ["recall", "importance recall"]),
    ],
)
def test_what_targets_are_of_is_what_tables_show(
    targets: tuple[str, ...], titles: list[str]
) -> None:
    rows = [row("dgl", 10, 0.5), row("prob", 10, 0.25)]
    lines = printed(rows, [Target(measure, 0.3) for measure in targets])
    text = " ".join(" ".join(line for line in lines if line[:1] not in "┏┃┡│└").split())
    found = re.findall(r"((?:importance )?recall) in %, window", text)
    assert found == titles


def test_tuples_that_splits_round_apart_and_what_replays_took_are_told() -> None:
    rows = [
        row("dgl", 1, 0.5, memory="2%", memory_left=own, memory_right=own // 2, split=split)
        for own, split in ((1, "even"), (2, "pooled"))
    ]
    text = " ".join(" ".join(printed(rows, [])).split())
    assert "┃ split ┃ 1 to 3 ┃" in text
    assert "; 2.00 processor seconds in 2 replays on cpu" in text


def test_shares_of_the_best_are_compared_where_that_is_one_best() -> None:
    def shown(*rows: Row) -> tuple[bool, bool]:
        text = " ".join(" ".join(printed([*rows], [])).split())
        own, over_any = "best possible importance in %", "best possible importance of any split"
        return own in text, over_any in text

    alone = row("dgl", 100, 0.5, share_of_best=0.75, share_of_best_any=0.7)
    pooled = row("dgl", 100, 0.6, share_of_best=0.8, share_of_best_any=0.8, split="pooled")
    assert shown(alone) == (True, True)
    assert shown(alone, pooled) == (False, True)  # of other bests
    assert shown(pooled) == (False, True)  # of one that is of any split


@pytest.mark.parametrize("width", [80, 120])
def test_of_many_settings_the_best_of_each_policy_is_shown(width: int) -> None:
    rows = [
        row(name, tuples, (place + at + spread + number) / 100 + tuples / 1e4, split=split,
            estimator=estimator, lanes=number, memory=f"{tuples // 10}%")
        for place, name in enumerate(POLICIES)
        for at, split in enumerate(("even", "expected", "0.8"))
        for spread, estimator in enumerate(("memory", "window", "history"))
        for number in (1, 4)
        for tuples in range(100, 1100, 100)
    ]  # fmt: skip
    lines = printed(rows, [TARGET, Target("recall", 0.5)], width)
    assert max(map(len, lines)) <= width
    assert f"{18 * len(POLICIES)} settings" in "".join(lines)
    shares = [line for line in lines[: lines.index(next(x for x in lines if "settings" in x))]
              if line.startswith("│")]  # fmt: skip
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in shares]
    assert cells[0][:4] == ["best of all", "", "", ""]
    assert cells[1][:4] == [list(POLICIES)[-1], "0.8", "history", "4"]
    assert cells[0][4:] == cells[1][4:]
    assert [line[0] for line in cells[1 : 1 + len(POLICIES)]] == list(POLICIES)[::-1]
    shown = "\n".join(lines)
    for memory in range(10, 110, 10):
        assert f" {memory}% " in shown


def test_only_what_varies_has_a_column() -> None:
    rows = [row("dgl", 100, 0.5, split=split) for split in ("even", "0.8")]
    shown = "\n".join(printed(rows, [TARGET]))
    assert "split" in shown
    assert "estimator" not in shown
    assert "lanes" not in shown
    assert "split" not in "\n".join(printed(rows[:1], [TARGET]))


def test_memories_that_rounding_parts_are_equal() -> None:
    rows = [
        row("dgl", 99, 0.91, memory="10%"),
        row("dgl", 100, 0.97, memory="10%", split="expected"),
        row("simp", 100, 0.99, memory="100"),
        row("dgl", 98, 0.1, memory="98"),
    ]
    assert best(rows).best.split == "expected"  # type: ignore[union-attr]
    rows += [row("dgl", 140, 0.99, memory="10%", lanes=4), row("prob", 99, 0.98, memory="99")]
    assert best(rows).best.policy == "prob"  # type: ignore[union-attr]


def test_what_is_printed_names_the_choice_and_what_fails() -> None:
    rows = [row("dgl", 100, 0.5), row("dgl", 200, 0.95), row("simp", 200, 0.2), row("simp", 100, 0)]
    lines = printed(rows, [TARGET, Target("recall", 0.9)])
    said = {line.split("│")[1].strip(): line for line in lines if line.startswith("│")}
    assert "dgl" in said["cheapest"]
    assert "95.00 %" in said["cheapest"]
    assert "50.00 %" in said["next smaller fails"]
    assert "never meets it: simp" in lines
    assert "50.00 %" in said["none meets it; nearest"]
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("width", [70, 80, 100])
def test_advice_keeps_labels_and_figures_where_it_is_narrow(width: int) -> None:
    settings: dict[str, Any] = {"split": "expected", "estimator": "history", "lanes": 12}
    bounded = {"share_of_best": 0.99, "share_of_best_any": 0.9876}
    rows = [row("dgl", 1_000, 1.0, **settings, **bounded), row("dgl", 100, 0.5, **bounded)]
    rows += [row("until_expiry", 2_000, 0.95, **settings, **bounded)]
    lines = printed(rows, [TARGET], width)
    lines = lines[next(at for at, line in enumerate(lines) if line.startswith("least")) :]
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if "│" in line]
    columns = [" ".join(" ".join(own).split()) for own in zip(*cells, strict=True)]
    assert columns[0] == "cheapest next smaller fails meets it"
    for word in ("dgl", "until_expiry", "expected", "history", "12", "none in the grid"):
        assert word in " ".join(columns[1:5])
    assert "100.00 %" in columns[-2]
    assert "98.76 %" in columns[-1]


def test_means_are_told() -> None:
    rows = [row("rand", 100, reached, seed=seed) for seed, reached in enumerate((0.8, 1.0))]
    assert "reached by rand: the mean of 2 seeds" in printed(rows, [TARGET])
    assert "mean of" not in "".join(printed(rows[1:], [TARGET]))
