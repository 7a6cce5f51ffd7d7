"""Windows that are plain numbers of tiny ticks are warned of, on the command line and in Python."""

from __future__ import annotations

import sys
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.api import keywords
from engine.commands import main
from engine.runtime.compilation.compilations import Compilations
from engine.runtime.short_windows import warn_of_short_windows
from engine.runtime.warned import WinnowWarning, telling_warnings, warn

TOLD = "window 600{} is 0.0006 s, as one tick is 1 us, and there is a tuple every {} s on average: "
TOLD += "write 600s for seconds, or 600us if this is what is meant"


def stream() -> pa.Table:
    begin = datetime(2024, 1, 1)  # noqa: DTZ001 - as files without a zone have it
    times = pa.array([begin + timedelta(minutes=i) for i in range(11)], pa.timestamp("us"))
    return pa.table({"at": times, "k": [1] * 11})


COMMANDS = {
    "replay": "replay {pair} --window 600",
    "sweep": "sweep {pair} --windows 600,1h --memory 2 --policies recent",
    "estimate": "estimate {pair} --window 600 --aggregate count",
    "multijoin": "multijoin {streams} --predicate equi:k --window 600",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_warns_once(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side in ("left", "right"):
        pq.write_table(stream(), tmp_path / f"{side}.parquet")
    pair = f"--left {tmp_path}/left.parquet --right {tmp_path}/right.parquet --on k"
    streams = f"--stream a={tmp_path}/left.parquet --stream b={tmp_path}/right.parquet"
    line = COMMANDS[command].format(pair=pair, streams=streams) + " --time at --engine local"
    cache = "" if command == "multijoin" else f" --cache {tmp_path}/lanes"
    assert main((line + cache).split()) == 0
    warned = [own for own in capsys.readouterr().err.splitlines() if "warning" in own]
    assert warned == [f"winnow {command}: warning: {TOLD.format('', '28.6')}"]


def test_python_warns() -> None:
    with pytest.warns(WinnowWarning, match="of stream right is 0.0006 s"):
        winnow.replay(stream(), stream(), on="k", time="at", window_left="10min", window_right=600)


def test_streams_through_facts_are_warned_of_before_they_are_read() -> None:
    streams = {"a": stream(), "b": stream()}
    with pytest.warns(WinnowWarning, match="is 0.0006 s, as one tick is 1 us: write 600s"):
        winnow.replay_streams(
            streams, pa.table({"a": [1], "b": [1]}), on="k", time="at", window=600
        )


@pytest.mark.parametrize(
    ("window", "unit", "stated"),
    [("600s", "us", None), ("0", "us", None), ("30000000", "us", None), ("1", "s", None),
     ("1", "tick", None), ("600", "us", "us"), ("rows:600", "us", None), ("600us", "us", None)],
)  # fmt: skip
def test_other_windows_are_not_warned_of(window: str, unit: str, stated: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_short_windows({"left": window}, (unit, stated), 22, (0, 600_000_000))
        warn_of_short_windows({"left": "600"}, ("us", None), 0, None)


@pytest.mark.parametrize("interactive", [True, False])
def test_an_interactive_session_is_told_of_compiling(
    interactive: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(keywords, "COMPILED", own := Compilations())
    if interactive:
        monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    winnow.replay(stream(), stream(), on="k", time="at", window="10min")
    with own.of("a kernel", None):
        pass
    told = "winnow: compiling kernels that no run has needed so far\n"
    assert capsys.readouterr().err == (told if interactive else "")


def test_other_warnings_take_their_own_way() -> None:
    def both() -> None:
        with telling_warnings(told.append):
            for _ in range(2):
                warn("ours")
            warnings.warn("other", UserWarning, stacklevel=1)

    told = list[str]()
    with pytest.warns(UserWarning, match="other"):
        both()
    assert told == ["ours"]
