"""What keeps the layout as it is: directions of imports, registration, size of files."""

from __future__ import annotations

import ast
import graphlib
import importlib
import re
import subprocess
import sys
from pathlib import Path

import naive
import naive_sampling
import pytest
from imported import imports
from places import ORACLE, ROOT

from engine.options.meanings import MEANINGS
from engine.policies import POLICIES, SAMPLING
from engine.runtime.compilation.source import UNCOMPILED

PACKAGES = ("gpu_kernels", "engine", "spark_plugin", "pyspark_winnow", "winnow")
"""Each may import those before it."""
MAY_IMPORT = {package: set(PACKAGES[: i + 1]) for i, package in enumerate(PACKAGES)}
SPARK = {"spark_plugin", "pyspark_winnow"}
GPU = {"cupy", "cudf"}
MOST_LINES = 320
SOURCES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]

ROOMS = {
    "engine": {
        "runtime": "",
        "policies": "runtime",
        "archives": "runtime",
        "facts": "runtime archives",
        "exact": "runtime facts",
        "lanes": "runtime archives facts",
        "models": "runtime exact lanes",
        "value_model": "runtime policies facts exact models",
        "replay": "runtime policies facts exact lanes value_model",
        "sampling": "runtime policies archives exact lanes models replay",
        "optimum": "runtime facts exact replay",
        "multiway": "runtime exact",
        "star": "runtime policies facts lanes replay",
        "generate": "runtime",
        "options": "runtime policies archives facts replay sampling optimum multiway generate",
        "device": (
            "runtime policies facts exact lanes models value_model replay sampling optimum multiway"
        ),
        "report": "runtime policies lanes models replay options",
        "jobs": (
            "runtime policies archives facts exact lanes models value_model replay sampling"
            " optimum multiway star options device report"
        ),
        "api": "runtime archives facts models multiway generate options report jobs",
        "commands": "runtime policies archives lanes models multiway options report jobs generate",
    },
    "gpu_kernels": {
        "portable": "",
        "gpu_lease": "",
        "devices": "gpu_lease",
        "combine": "portable",
        "philox": "portable",
        "pool": "portable",
        "pool_rates": "pool portable",
        "compiler": "portable",
        "teams": "portable compiler",
        "probe": "combine compiler devices",
        "harvest": "portable compiler devices",
        "optimum": "portable combine compiler devices",
        "multiway": "portable combine compiler devices teams",
        "replay": "portable combine compiler devices philox pool pool_rates teams",
    },
    "spark_plugin": {
        "versions": "",
        "connect": "versions",
        "gpu": "",
        "hashing": "versions",
        "hearing": "connect",
        "naming": "connect",
        "accumulators": "connect naming",
        "lanes": "",
        "outcome": "",
        "rows": "connect versions naming",
        "spool": "",
        "configured": "",
        "starting": "",
        "rapids": "configured",
        "shipping": "",
        "spread": "rapids versions",
        "session": "connect configured rapids starting",
        "partitions": "gpu outcome session",
        "columns": "versions hashing lanes rows",
        "keys": "lanes",
        "facts": "versions hashing lanes naming rows session columns",
        "lookup": "versions connect hashing naming rows session columns lanes",
        "worker": "lanes spool keys facts",
        "measure": "lanes spool worker",
        "on_gpu": "lanes spool worker",
        "archives": "versions gpu hashing naming outcome rows spread session columns",
        "executor": (
            "versions connect gpu naming accumulators outcome rapids session archives hearing"
        ),
        "query": (
            "gpu lanes naming outcome partitions spread session columns facts worker measure on_gpu"
        ),
        "dataframe": "rows columns facts query",
        "multijoin_worker": "lanes",
        "multijoin": (
            "gpu hashing lanes naming outcome rows session partitions columns spread "
            "multijoin_worker"
        ),
        "door": ("versions naming accumulators outcome partitions rows lookup dataframe multijoin"),
        "sql": "dataframe door lookup",
        "command": "configured session executor",
        "submit": "rapids shipping command",
        "streaming": (
            "versions connect hashing lanes rows keys session columns worker query dataframe"
        ),
    },
}
"""What each room, a folder or module of a package, may import of the package's others, lowest
first: no room imports one that stands after it."""
MOST_ROOMS = 20


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
        assert found.package != "pyspark" or package in SPARK, where
        assert found.package not in GPU or not found.at_load, f"{where} when it is loaded"
        assert found.package not in {"tests", "benchmarks", "naive"}, where


def modules() -> dict[str, Path]:
    """Return the source files of all packages by the names under which they are imported."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in SOURCES
    }


def imported_modules() -> dict[str, set[str]]:
    """Return the modules of ours that each one imports, wherever the import stands."""
    known = modules()
    found: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module in known:
                inner = {f"{node.module}.{own.name}" for own in node.names}
                found[name] |= (inner & known.keys()) or {node.module}
            elif isinstance(node, ast.Import):
                found[name] |= {own.name for own in node.names} & known.keys()
        found[name].discard(name)
    return found


@pytest.mark.parametrize("package", sorted(ROOMS))
def test_a_room_imports_what_the_table_allows_and_all_of_that(package: str) -> None:
    found: dict[str, set[str]] = {}
    for name, others in imported_modules().items():
        if name.startswith(f"{package}."):
            room = name.split(".")[1]
            own = {other.split(".")[1] for other in others if other.startswith(f"{package}.")}
            found[room] = found.get(room, set()) | own - {room}
    assert found == {room: set(below.split()) for room, below in ROOMS[package].items()}


@pytest.mark.parametrize("package", sorted(ROOMS))
def test_rooms_stand_in_the_order_of_their_imports(package: str) -> None:
    order = list(ROOMS[package])
    for room, below in ROOMS[package].items():
        for other in below.split():
            assert order.index(other) < order.index(room), f"{room} imports {other}"


def test_contributing_lists_the_rooms_in_their_order_and_names_what_exists() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rooms = text.split("A *room* is")[1].split("### One tuple")[0]
    assert re.findall(r"^([a-z_]+)/ ", rooms, re.MULTILINE) == list(ROOMS["engine"])
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    lost = [
        name for name in named if not any((ROOT / own / name).exists() for own in ("", "engine"))
    ]
    assert lost == ["engine/policies/NAME.py", "engine/commands/NAME.py"]


def test_the_engine_has_few_rooms_and_no_loose_module() -> None:
    inside = [path for path in (ROOT / "engine").iterdir() if path.name != "__pycache__"]
    folders = sorted(path.name for path in inside if path.is_dir())
    assert folders == sorted(ROOMS["engine"])
    assert len(folders) <= MOST_ROOMS
    assert {path.name for path in inside if path.is_file()} == {"__init__.py", "py.typed"}
    for room in folders:
        text = (ROOT / "engine" / room / "__init__.py").read_text()
        assert ast.get_docstring(ast.parse(text)), f"engine/{room} does not say what is in it"


def siblings(name: str, other: str) -> tuple[str, str] | None:
    """Return the two packages or modules of one parent through which a module imports another."""
    own, theirs = name.split("."), other.split(".")
    at = next(
        (i for i, pair in enumerate(zip(own, theirs, strict=False)) if len({*pair}) > 1), None
    )
    if not at:
        return None
    return ".".join(own[: at + 1]), ".".join(theirs[: at + 1])


def test_no_packages_or_files_import_each_other_in_a_circle() -> None:
    below: dict[str, set[str]] = {}
    for name, others in imported_modules().items():
        for other in others:
            if pair := siblings(name, other):
                below.setdefault(pair[0], set()).add(pair[1])
    graphlib.TopologicalSorter(below).prepare()


ENTRIES = (
    *("engine", "engine.commands", "winnow.__main__"),
    *("spark_plugin.command", "spark_plugin.submit"),
    *("spark_plugin.shipping.command", "spark_plugin.rapids.command"),
    *("spark_plugin.dataframe", "spark_plugin.lookup"),
    *("spark_plugin.executor", "spark_plugin.session", "spark_plugin.streaming", "pyspark_winnow"),
    *("winnow", "engine.api.pairs", "engine.api.sampled", "engine.api.tasks", "spark_plugin.door"),
    *("spark_plugin.sql", "spark_plugin.multijoin"),
)
"""What `pyproject.toml` registers, and the modules whose functions users call."""


def reached_from(entries: set[str], imported: dict[str, set[str]]) -> set[str]:
    """Return the modules that load, sooner or later, where entries do: parents run first."""
    found: set[str] = set()
    waiting = set(entries)
    while waiting:
        name = waiting.pop()
        parent = name.rpartition(".")[0]
        found.add(name)
        waiting |= (imported[name] | ({parent} & imported.keys())) - found
    return found


def test_every_module_is_reachable_from_an_entry_point() -> None:
    imported = imported_modules()
    policies = {f"engine.policies.{name}" for name in policy_files()}  # the registry finds them
    commands = {f"engine.commands.{name}" for name in MEANINGS}  # loaded when they are called
    assert imported.keys() - reached_from({*ENTRIES} | policies | commands, imported) == set()


def test_what_is_installed_and_documented_are_entry_points() -> None:
    registered = re.compile(r'^[\w-]+ = "((engine|spark_plugin)[\w.]*)(:\w+)?"$', re.MULTILINE)
    found = {m[1] for m in registered.finditer((ROOT / "pyproject.toml").read_text())}
    assert len(found) == 5
    for page in (ROOT / "docs").glob("*.md"):
        found |= set(re.findall(r"from (spark_plugin[\w.]*) import", page.read_text()))
    assert found <= {*ENTRIES}


def test_engine_and_kernels_load_without_spark_and_gpu_packages() -> None:
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] not in SPARK and path.stem != "__main__"
    ]
    program = (
        "import importlib, sys\n"
        "for name in ('pyspark', 'cupy', 'cudf', 'spark_plugin'):\n"
        "    sys.modules[name] = None\n"  # an import of it raises ImportError
        f"for name in {modules!r}:\n"
        "    importlib.import_module(name.removesuffix('.__init__'))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)  # noqa: S603 - ours


def test_the_facade_is_names_alone() -> None:
    tree = ast.parse((ROOT / "winnow" / "__init__.py").read_text())
    declared = {
        (node.module, own.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("engine")
        for own in node.names
    }
    homes = importlib.import_module("winnow").__dict__["_HOMES"]
    assert declared == {(home, name) for home, names in homes.items() for name in names}
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert functions == ["__dir__", "__getattr__"]


def policy_files() -> list[str]:
    folder = ROOT / "engine" / "policies"
    return sorted(p.stem for p in folder.glob("*.py") if p.stem not in {"__init__", "base"})


@pytest.mark.parametrize("name", policy_files())
def test_every_policy_file_is_registered_under_its_name(name: str) -> None:
    policy = importlib.import_module(f"engine.policies.{name}").POLICY
    assert policy.name.replace("-", "_") == name.removesuffix("_")  # of what is a word of Python's
    assert (POLICIES | SAMPLING).get(policy.name) is policy


def test_every_sampling_policy_has_a_rule_in_the_oracle() -> None:
    assert set(SAMPLING) < set(naive_sampling.METHODS)


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_every_policy_has_a_rule_in_the_oracle(name: str) -> None:
    assert name in naive.POLICIES, (
        f"write the rule of {name} in tests/oracle/naive.py, from its source"
    )
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
    "naive", "naive_facts", "naive_grubjoin", "naive_harvest", "naive_intervals", "naive_models",
    "naive_multijoin", "naive_optimum", "naive_ordering", "naive_pool", "naive_sampling",
    "naive_yield",
]  # fmt: skip


@pytest.mark.parametrize("name", ORACLES)
def test_an_oracle_imports_nothing_of_ours(name: str) -> None:
    found = {i.package for i in imports(ORACLE / f"{name}.py")}
    assert found <= sys.stdlib_module_names | {
        "naive", "naive_multijoin", "naive_pool", "naive_sampling", "naive_yield", "numpy"
    }  # fmt: skip


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_stay_readable(path: Path) -> None:
    lines = len(path.read_text().splitlines())
    assert lines <= MOST_LINES, f"{path.relative_to(ROOT)} has {lines} lines: split it"


COPIES = {"append_column", "set_column", "remove_column", "append", "insert", "set", "remove"}
"""Methods of PyArrow's tables and schemas that copy all of their columns."""


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_loop_copies_a_table_once_a_column(path: Path) -> None:
    """That takes time in the square of the columns: `engine.runtime.columns` copies once."""
    for loop in ast.walk(ast.parse(path.read_text())):
        for own in ast.walk(loop) if isinstance(loop, ast.For | ast.While) else ():
            match own:
                case ast.Assign(
                    [ast.Name(into)], ast.Call(ast.Attribute(ast.Name(of), method))
                ) if into == of and method in COPIES:
                    pytest.fail(f"line {own.lineno} copies {of} in a loop")


def test_folders_that_the_compiled_caches_name_leaves_out_hold_nothing_compiled() -> None:
    compiles = re.compile(
        r"engine\.runtime\.jit import .*\b(jit|kernel|inlined|outlined)\b|^@\w*portable|^@njit",
        re.MULTILINE,
    )
    left_out = tuple(folder.replace("/", ".") for folder in UNCOMPILED)
    for path in SOURCES:
        text, place = path.read_text(), path.relative_to(ROOT).as_posix()
        compiling = compiles.search(text) is not None
        if place.startswith(UNCOMPILED):
            assert not compiling, place
        elif compiling:
            found = re.findall(rf"^from ({'|'.join(left_out)})\S* import (.*)$", text, re.MULTILINE)
            assert all(re.match(r"[A-Z][a-z]", name) for _, name in found), f"{place}: not a type"
