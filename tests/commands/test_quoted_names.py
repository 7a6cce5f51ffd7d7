"""Lists of column names on the command line: quotes, and what is printed to be pasted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import winnow
from engine.commands import main
from engine.options.kinds import NAMES


@given(st.lists(st.text(alphabet=st.sampled_from("ab,\"= \n'-")) | st.text(), min_size=1))
def test_what_words_write_is_read(names: list[str]) -> None:
    (word,) = [own.removeprefix("--on=") for own in NAMES.words("--on", names) if own != "--on"]
    assert NAMES.read("--on", word) == tuple(names)


def test_no_names_are_no_words() -> None:
    assert NAMES.words("--on", []) == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (" a , b,,c ", ("a", "b", "c")),
        ('"a,b", " c" ,d"e', ("a,b", " c", 'd"e')),
        ('"a,b', ('"a', "b")),
        ('"a""b"', ('a"b',)),
    ],
)
def test_names_are_read_as_csv(text: str, names: tuple[str, ...]) -> None:
    assert NAMES.read("--on", text) == names


@pytest.fixture
def odd(tmp_path: Path) -> dict[str, Any]:
    """Write archives whose columns need quotes in lists."""
    for side in ("left", "right"):
        rows = {"a,b": [1, 2, 1, 2], " k": [1, 1, 2, 2], "t": [0, 1, 2, 3]}
        pq.write_table(pa.table(rows), tmp_path / f"{side}.parquet")
    return {side: str(tmp_path / f"{side}.parquet") for side in ("left", "right")}


def test_the_command_that_a_sweep_advises_can_be_pasted(
    odd: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (advice,) = winnow.sweep(
        **odd, on=["a,b"], partition_by=[" k"], time="t", windows=9, memory=[4],
        targets="recall=0.1", cache=tmp_path / "cache",
    ).advice  # fmt: skip
    assert advice.command is not None
    assert main(shlex.split(advice.command)[1:]) == 0, capsys.readouterr().err


def test_the_hint_for_a_missing_column_quotes_its_name(
    odd: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"--{name}={own}" for name, own in odd.items()]
    words += ["--time=t", "--window=9", "--engine=local", f"--cache={tmp_path / 'cache'}"]
    assert main(["replay", *words, "--on", " k"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Did you mean ' k'? In a list on the command line, write '\" k\"'." in said
    assert main(["replay", *words, "--on", '" k","a,b"']) == 0


def test_streams_of_a_multijoin_take_quoted_names(odd: dict[str, Any]) -> None:
    words = ["multijoin", "--stream", f"a={odd['left']}", "--stream", f"b={odd['right']}"]
    words += ["--predicate=equi:t", "--time=t", "--window=9", "--engine=local"]
    assert main([*words, "--partition-by", '"a,b"," k"']) == 0
    assert main([*words, "--partition-by", 'a="a,b",b="a,b"']) == 0
