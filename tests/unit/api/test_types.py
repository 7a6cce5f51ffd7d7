"""The types of `import winnow` as a user's editor has them: checked with pyright."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from places import ROOT, SUPPORT
from thorough import guards

WRONG = {
    "winnow.replay(left, left, on='key', time='ts', window=3, memry=10)": "memry",
    "winnow.bound(left, left, on='key', time='ts', window=[3])": "window",
    "winnow.replay(3, left, on='key', time='ts', window=3)": "3",
    "found.to_panda()": "to_panda",
}


@guards("tests/unit/api/test_types.py", "winnow", "engine/api/keywords.py")
def test_a_users_script_has_no_error_and_mistakes_are_found(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    right = (SUPPORT / "typed_user.py").read_text()
    (tmp_path / "user.py").write_text(right + "".join(f"{line}\n" for line in WRONG))
    settings = {"extraPaths": [str(ROOT)], "reportMissingTypeStubs": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    shown = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    found = json.loads(shown.stdout)["generalDiagnostics"]
    lines = right.count("\n")
    told = {own["range"]["start"]["line"]: own["message"] for own in found}
    assert [at for at in sorted(told) if at < lines] == []
    for at, mistake in enumerate(WRONG.values(), start=lines):
        assert mistake in told[at]
