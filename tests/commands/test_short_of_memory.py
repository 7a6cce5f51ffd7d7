"""A command that the system gives too little memory says so, and leaves nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_cases import arguments, streams

from engine.commands import main
from engine.jobs import frame


@pytest.mark.parametrize("said", ["Unable to allocate 6.00 MiB", ""])
def test_too_little_memory_is_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], said: str
) -> None:
    def short(*_: Any, **__: Any) -> None:
        raise MemoryError(*filter(None, [said]))

    streams(tmp_path)
    monkeypatch.setattr(frame, "prepare_cached", short)
    assert main(arguments(tmp_path)) == 2
    told = f"there is too little memory{f' ({said})' if said else ''}: free some, or give the"
    assert f"winnow replay: error: {told} process more" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} <= {"left.parquet", "right.parquet", "cache"}
