"""The files of measurements: which commit, on what; and tables between the marks of documents."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.report.envelope import versions

ROOT = Path(__file__).resolve().parents[2]
_WIDTH = 240
"""Of a line of results."""


def _git(*command: str) -> str:
    """Return what git says; nothing where there is none, or no repository."""
    words = ["git", *command]
    with contextlib.suppress(OSError):
        done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)  # noqa: S603 - ours
        return done.stdout.strip()
    return ""


def commit() -> str:
    """Return the commit that is measured; with a plus if files differ that are no records of it."""
    changed = _git("status", "--porcelain", "-uno", "--", ":!benchmarks/results", ":!docs")
    return (_git("rev-parse", "--short", "HEAD") or "unknown") + ("+" if changed else "")


def processor() -> str:
    """Return the processors' name where Linux tells it."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text().splitlines() if file.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def about(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
    """Return what a measurement was made by, and on; `engine` is the hash of that folder's tree."""
    return {
        "commit": commit(),
        "engine": _git("rev-parse", "HEAD:engine"),
        "versions": versions(),
        "machine": platform.machine(),
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 2),
        **more,
    }


def write(path: Path, results: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    """Write results as JSON: on one line whatever has room there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_lines(json.loads(json.dumps(results))) + "\n")


def with_others(rows: Sequence[Mapping[str, Any]], path: Path, key: str) -> list[Mapping[str, Any]]:
    """Return rows, with those of a file's `rows` that have other keys, in the file's order."""
    content = json.loads(path.read_text()) if path.exists() else {"rows": []}
    before = content["rows"]
    if "columns" in content:
        before = [dict(zip(content["columns"], row, strict=True)) for row in before]
    measured = {row[key] for row in rows}
    names = dict.fromkeys(row[key] for row in (*before, *rows))
    return [
        row for name in names for row in (rows if name in measured else before) if row[key] == name
    ]


def _lines(value: Any, within: str = "") -> str:  # noqa: ANN401 - whatever JSON holds
    flat = json.dumps(value)
    if len(within) + len(flat) <= _WIDTH or not isinstance(value, dict | list):
        return flat
    deeper = f"{within} "
    if isinstance(value, dict):
        parts = [f"{json.dumps(name)}: {_lines(own, deeper)}" for name, own in value.items()]
    else:
        parts = [_lines(own, deeper) for own in value]
    return f",\n{deeper}".join(parts).join((f"{flat[0]}\n{deeper}", f"\n{within}{flat[-1]}"))


def filled(text: str, tables: Mapping[str, str]) -> str:
    """Put each table between its marks."""
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- end {name} -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n{table}\n{end}{rest.partition(end)[2]}"
    return text
