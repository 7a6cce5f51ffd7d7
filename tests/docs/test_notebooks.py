"""The notebooks run as they stand, and show what they promise."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from places import ROOT

MOST_LINES = 10


def cells(name: str) -> list[str]:
    """Return the code of a notebook, cell by cell."""
    content = json.loads((ROOT / "docs" / "notebooks" / name).read_text())
    found = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in found), "a notebook is kept without its outputs"
    return ["".join(cell["source"]) for cell in found]


def shown(code: str, names: dict[str, Any]) -> Any:
    """Run a cell and return the value of its last expression, which a notebook shows."""
    *first, last = ast.parse(code).body
    body = first if isinstance(last, ast.Expr) else [*first, last]
    exec(compile(ast.Module(body, []), "<cell>", "exec"), names)  # noqa: S102 - our own notebook
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307 - the same


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_first_notebook_goes_from_two_frames_to_a_plot() -> None:
    code = cells("first.ipynb")
    names: dict[str, Any] = {}
    setup, report, head, plot = (shown(cell, names) for cell in code)
    assert setup is None
    assert 0 < report.report.recall < 1
    assert report._repr_html_().startswith("<div")
    assert str(head["ts"].dtype) == "datetime64[us, UTC]"
    assert plot.axes[0].get_xlabel() == "time (UTC)"
    lines = [line for cell in (code[0], code[-1]) for line in cell.splitlines() if line.strip()]
    assert len(lines) <= MOST_LINES
