"""What keeps the layout as it is: directions of imports, registration, size of files."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import naive
import naive_sampling
import pytest

from engine.jit import UNCOMPILED
from engine.policies import POLICIES, SAMPLING

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gpu_kernels", "engine", "spark_plugin")
"""Each may import those before it."""
MAY_IMPORT = {package: set(PACKAGES[: i + 1]) for i, package in enumerate(PACKAGES)}
GPU = {"cupy", "cudf"}
MOST_LINES = 320
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
TYPE_CHECKING = "TYPE_CHECKING"


class Import(NamedTuple):
    """One import statement's top package, its line, and whether it runs when the module loads."""

    package: str
    line: int
    at_load: bool


def imports(path: Path) -> Iterator[Import]:
    """Yield every import of a file."""
    yield from _imports(ast.parse(path.read_text()), at_load=True)


def _imports(node: ast.AST, *, at_load: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            for name in child.names:
                yield Import(name.name.split(".")[0], child.lineno, at_load)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, f"line {child.lineno}: relative imports hide their direction"
            yield Import((child.module or "").split(".")[0], child.lineno, at_load)
        else:
            typing_only = isinstance(child, ast.If) and TYPE_CHECKING in ast.dump(child.test)
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _imports(child, at_load=at_load and not inside and not typing_only)


def test_the_walk_sees_imports_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "sample.py"
    path.write_text(
        "import a.b\n"
        "if x:\n    from c import d\n"
        "def f():\n    import e\n"
        "class G:\n    import h\n"
        "if TYPE_CHECKING:\n    import i\n"
    )
    found = {(i.package, i.at_load) for i in imports(path)}
    assert found == {("a", True), ("c", True), ("e", False), ("h", True), ("i", False)}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for found in imports(path):
        where = f"{path.relative_to(ROOT)}:{found.line} imports {found.package}"
        if found.package in PACKAGES:
            assert found.package in MAY_IMPORT[package], where
        assert found.package != "pyspark" or package == "spark_plugin", where
        assert found.package not in GPU or not found.at_load, f"{where} when it is loaded"
        assert found.package not in {"tests", "benchmarks", "naive"}, where


def test_engine_and_kernels_load_without_spark_and_gpu_packages() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] != "spark_plugin" and path.stem != "__main__"
    ]
    program = (
        "import importlib, sys\n"
        "for name in ('pyspark', 'cupy', 'cudf', 'spark_plugin'):\n"
        "    sys.modules[name] = None\n"  # an import of it raises ImportError
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name.removesuffix('.__init__'))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)  # noqa: S603 - ours


def policy_files() -> list[str]:
    folder = ROOT / "engine" / "policies"
    return sorted(p.stem for p in folder.glob("*.py") if p.stem not in {"__init__", "base"})


@pytest.mark.parametrize("name", policy_files())
def test_every_policy_file_is_registered_under_its_name(name: str) -> None:
    policy = importlib.import_module(f"engine.policies.{name}").POLICY
    assert policy.name == name.removesuffix("_")  # of what is a word of Python's
    assert POLICIES.get(policy.name) is policy


def test_every_registered_policy_has_a_file() -> None:
    assert sorted(POLICIES) == sorted(name.removesuffix("_") for name in policy_files())


def test_every_sampling_policy_has_a_file_and_a_rule_in_the_oracle() -> None:
    folder = ROOT / "engine" / "policies" / "sampling"
    files = {p.stem for p in folder.glob("*.py")} - {"__init__", "sizes"}
    assert files == set(SAMPLING)
    assert {name.replace("_", "-") for name in files} < set(naive_sampling.METHODS)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_has_a_rule_in_the_oracle(name: str) -> None:
    assert name in naive.POLICIES, f"write the rule of {name} in tests/naive.py, from its source"
    rows = [(0, 1, 1.0), (1, 1, 2.0), (2, 2, 1.0)]
    params = {"curve_left": (1.0,), "curve_right": (1.0,), "function": lambda *_: 1.0}
    done = naive.replay(
        rows,
        rows,
        window_left=2,
        window_right=2,
        budget_left=1,
        budget_right=1,
        policy=name,
        params=params,
    )
    assert (done.peak_left, done.peak_right) == (1, 1)


def test_the_oracle_has_no_rule_without_a_policy() -> None:
    assert set(naive.POLICIES) == set(POLICIES)


ORACLES = [
    "naive", "naive_facts", "naive_grubjoin", "naive_harvest", "naive_models", "naive_multijoin",
    "naive_optimum", "naive_ordering", "naive_sampling", "naive_yield",
]  # fmt: skip


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_imports_nothing_of_ours(name: str) -> None:
    found = {i.package for i in imports(ROOT / "tests" / f"{name}.py")}
    assert found <= sys.stdlib_module_names | {
        "naive", "naive_multijoin", "naive_sampling", "naive_yield", "numpy"
    }  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_readable(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MOST_LINES, f"{path.relative_to(ROOT)} has {lines} lines: split it"


def test_folders_that_the_compiled_caches_name_leaves_out_hold_nothing_compiled() -> None:
    compiles = re.compile(
        r"engine\.jit import .*\b(jit|kernel|woven)\b|^@\w*portable|^@njit", re.MULTILINE
    )
    left_out = tuple(folder.replace("/", ".") for folder in UNCOMPILED)
    for path in SOURCES:
        text, place = path.read_text(), path.relative_to(ROOT).as_posix()
        compiling = compiles.search(text) is not None
        if place.startswith(UNCOMPILED):
            assert not compiling, place
        elif compiling:
            taken = re.findall(
                rf"^from (?:{'|'.join(left_out)})\S* import (.*)$", text, re.MULTILINE
            )
            assert all(re.match(r"[A-Z][a-z]", name) for name in taken), f"{place}: more than types"
