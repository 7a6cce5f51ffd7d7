"""Commands whose kernels are all interpreted give what those of compiled kernels do."""

from __future__ import annotations

from pathlib import Path

import pytest
from interpreted_too import only_interpreted

from engine.commands import main
from engine.commands.warm import RUNS, write_streams

CASES = [(name, line) for name, lines in RUNS.items() for line in lines]
_TIMES = ("seconds", "tuples_per_second", "rate", "stages")


def printed(words: list[str], capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the lines that a command prints, without its times."""
    assert main(words) == 0, capsys.readouterr().err
    return [line for line in capsys.readouterr().out.splitlines() if "second" not in line]


@pytest.mark.parametrize(
    ("name", "line"), CASES, ids=[f"{n} {i}" for i, (n, _) in enumerate(CASES)]
)
def test_prints_the_same(
    name: str,
    line: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # whatever the length of a folder's name
    found = []
    for kind in ("interpreted", "compiled"):
        folder = tmp_path / kind
        folder.mkdir()
        write_streams(folder)
        words = [name, *line.format(folder=folder).split()]
        if kind == "interpreted":
            with only_interpreted():
                lines = printed(words, capsys)
        else:
            lines = printed(words, capsys)
        found.append([own.replace(str(folder), "") for own in lines])
    assert found[0] == found[1]
