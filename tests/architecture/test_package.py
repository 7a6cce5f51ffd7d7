"""The application in archives: what is in them, and that it runs from them."""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pytest
from places import ROOT
from thorough import guards

from engine.commands import main, warm
from engine.runtime.compilation.source import module_digest
from engine.runtime.errors import OutputError, SpecError
from spark_plugin.shipping import command, environment
from spark_plugin.shipping.code import archive_at
from spark_plugin.shipping.environment import packed, write_environment


def package(*words: str) -> int:
    """Run ``winnow package``."""
    return main(["package", *words], commands={"package": command})


def test_the_zip_is_the_code_the_same_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    assert package("--out", str(first)) == 0
    shown = capsys.readouterr().out
    assert f"--py-files {first} \\\n    {tmp_path}/a-submit.py replay ..." in shown
    assert package("--out", str(second)) == 0
    assert first.read_bytes() == second.read_bytes()
    names = set(zipfile.ZipFile(first).namelist())
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for pattern in wanted["packages"]["find"]["include"]:
        top = pattern.rstrip("*")
        own = {str(path.relative_to(ROOT)) for path in (ROOT / top).rglob("*.py")}
        assert own
        assert own <= names
        assert f"{top}/py.typed" in names
    assert not [name for name in names if "__pycache__" in name or name.startswith("tests")]
    version = "import importlib.metadata as m; print(m.version('winnowjoin'))"
    told = subprocess.run(  # noqa: S603 - ours, and no package that is installed here
        [sys.executable, "-S", "-c", version], env={"PYTHONPATH": str(first)}, cwd=tmp_path,
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert told.stdout.strip() == metadata.version("winnowjoin"), told.stderr
    submit = (tmp_path / "a-submit.py").read_text()
    assert submit == (ROOT / "spark_plugin" / "submit.py").read_text()


def test_nothing_is_written_before_all_that_is_asked_for_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, packages = str(tmp_path / "a.zip"), str(tmp_path / "b.tar.gz")
    elsewhere = str(tmp_path / "none" / "b.tar.gz")
    assert package("--out", code, "--environment", packages, "--extra", "nope") == 2
    assert "--extra is 'nope'" in capsys.readouterr().err
    assert package("--out", code, "--environment", elsewhere) == 2
    assert f"create {tmp_path}/none" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_driver_without_the_packages_says_so(tmp_path: Path) -> None:
    archive = tmp_path / "winnow.zip"
    assert package("--out", str(archive)) == 0
    words = ["-S", str(tmp_path / "winnow-submit.py"), "replay", "--left", "a.parquet"]
    told = subprocess.run(  # noqa: S603 - ours, and no package that is installed here
        [sys.executable, *words], env={"PYTHONPATH": str(archive)}, cwd=tmp_path,
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 2
    assert told.stderr.startswith("winnow: error: the driver's Python")
    assert told.stderr.count("\n") == 1


def test_a_driver_without_the_code_says_so(tmp_path: Path) -> None:
    told = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-S", ROOT / "spark_plugin" / "submit.py", "policies"],
        env={}, cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert told.returncode == 2
    assert told.stderr.startswith("winnow: error: the driver's Python, ")
    assert told.stderr.endswith(
        "has no package engine: give --py-files with the zip that winnow package --out wrote\n"
    )


def test_a_full_disk_is_measured_before_it_is_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> shutil._ntuple_diskusage:
        free = 1 if any(tmp_path.iterdir()) else 1000
        return shutil._ntuple_diskusage(1000, 1000 - free, free)  # noqa: SLF001 - what it returns

    def fill(own: Path) -> None:
        own.write_bytes(b"x")
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(shutil, "disk_usage", full)
    with (
        pytest.raises(OutputError, match=r"\(1 of 1,000 bytes are free\)"),
        archive_at(tmp_path / "a.zip") as own,
    ):
        fill(own)
    assert not list(tmp_path.iterdir())


def test_what_is_no_python_is_installed_too() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for package, names in wanted["package-data"].items():
        files = {path.relative_to(ROOT / package) for path in (ROOT / package).rglob("*.*")}
        own = {str(path) for path in files if path.suffix not in {".py", ".pyc"}}
        assert own == set(names)


def test_what_was_compiled_is_found_again_from_another_archive(tmp_path: Path) -> None:
    program = (
        "import numpy as np, engine, sys\n"
        "from engine.runtime.jit import shell_sorted as f\n"
        "f(np.array([3, 1, 2]), 0, 3)\n"
        "print(engine.__file__, sum(f.entry.stats.cache_hits.values()), f.entry.stats.cache_path)\n"
    )
    seen = []
    for place in ("one", "two"):
        archive = tmp_path / place / "winnow.zip"
        archive.parent.mkdir()
        assert package("--out", str(archive)) == 0
        kept = {"WINNOW_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(archive)}
        kept |= {"WINNOW_COMPILE": "always"}
        shown = subprocess.run(  # noqa: S603 - ours
            [sys.executable, "-c", program], env=kept, cwd=tmp_path, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        where, hits, cache = shown.stdout.split()
        assert where.startswith(str(archive))
        seen.append((hits, cache))
    assert [hits for hits, _ in seen] == ["0", "1"]
    assert seen[0][1] == seen[1][1]
    name = f"engine.runtime.jit-{module_digest('engine.runtime.jit')}"  # of what is in no zip
    assert seen[0][1].split("/")[-1] == name


@guards(
    "setup.py",
    "pyproject.toml",
    "engine/runtime/cache_folders.py",
    "tests/architecture/test_package.py",
)
@pytest.mark.parametrize("shipped", [True, False])
def test_a_wheel_has_the_kernels_that_it_is_given(tmp_path: Path, *, shipped: bool) -> None:
    (tmp_path / "kernels" / "module-digest").mkdir(parents=True)
    (tmp_path / "kernels" / "module-digest" / "a.nbi").write_bytes(b"index")
    given = {"WINNOW_WHEEL_KERNELS": str(tmp_path / "kernels")} if shipped else {}
    words = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run([sys.executable, *words], env=os.environ | given, check=True)  # noqa: S603 - ours
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl") != shipped
    program = (
        "import sys; from pathlib import Path; from engine.runtime import cache_folders as ours;"
        "found = ours.shipped_kernels();"
        "print(ours.__file__, [own.name for own in found.rglob('*.nbi')] if found else found)"
    )
    target = tmp_path / "installed"
    words = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run([sys.executable, *words], check=True)  # noqa: S603 - ours
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-S", "-c", program], env={"PYTHONPATH": str(target)}, cwd=tmp_path,
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.startswith(str(target))
    assert done.stdout.endswith("['a.nbi']\n" if shipped else "None\n")


def test_packages_are_what_is_needed_and_no_more() -> None:
    names = {own.name.lower() for own in packed()}
    assert {"numba", "numpy", "llvmlite", "pyarrow", "pandas", "scipy"} <= names
    assert not names & {"pyspark", "py4j", "pytest", "mypy", "ruff", "winnowjoin"}


def test_an_environment_runs_where_it_is_unpacked(tmp_path: Path) -> None:
    chosen = [own for own in packed() if own.name.lower() in {"packaging", "rich", "numpy"}]
    (kernels := tmp_path / "kernels" / "module-digest").mkdir(parents=True)
    kernels.joinpath("a.nbi").write_bytes(b"index")
    first, second = (
        write_environment(tmp_path / f"{i}.tar.gz", chosen, kernels.parent) for i in range(2)
    )
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        names = archive.getnames()
        archive.extraction_filter = getattr(tarfile, "tar_filter", None)  # not before Python 3.11.4
        archive.extractall(tmp_path / "env")  # noqa: S202 - our own
    assert not [name for name in names if "/tests/" in name or name.endswith(".pyc")]
    program = (
        "import numpy, os, rich; print(numpy.__file__, numpy.arange(3).sum());"
        "print(open(os.environ['WINNOW_KERNELS'] + '/module-digest/a.nbi').read())"
    )
    shown = run(tmp_path / "env" / "bin" / "python", "-c", program, python=sys.executable)
    assert str(tmp_path / "env" / "lib" / "numpy") in shown.stdout
    assert shown.stdout.endswith("\nindex\n")
    missing = run(tmp_path / "env" / "bin" / "python", "-c", "", python="no-such-python")
    assert missing.returncode == 127
    assert "no-such-python is not on this machine: install Python 3." in missing.stderr


@pytest.mark.parametrize("asked", [["--kernels", "lookup,replay"], ["--kernels", "none"], []])
def test_an_environment_has_the_kernels_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    compiled: list[str] = []

    def ship(folder: Path, names: Sequence[str]) -> None:
        compiled.extend(names)
        folder.mkdir()
        (folder / "a.nbi").touch()

    few = [own for own in packed() if own.name.lower() == "packaging"]
    monkeypatch.setattr(warm, "ship_kernels", ship)
    monkeypatch.setattr(environment, "packed", lambda _: few)
    assert package("--environment", str(tmp_path / "env.tar.gz"), *asked) == 0
    with tarfile.open(tmp_path / "env.tar.gz") as archive:
        there = "kernels/a.nbi" in archive.getnames()
    wanted = {"none": [], "": [*warm.RUNS]}
    assert compiled == wanted.get("".join(asked[1:]), ["lookup", "replay"])
    assert there == bool(compiled)


def run(*words: str | Path, python: str) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing of this environment."""
    return subprocess.run(  # noqa: S603 - ours
        words, env={"PATH": os.environ["PATH"], "WINNOW_PYTHON": python}, capture_output=True,
        text=True, check=False, cwd="/",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "there is nothing to pack: give --out FILE.zip"),
        (("--out", "winnow.tar"), r"--out winnow.tar must end in .zip"),
        (("--environment", "env.zip"), "must end in .tar.gz"),
        (("--out", "there.zip"), "there.zip exists: remove it"),
        (("--out", "no/where.zip"), "no/where.zip is in no folder that exists: create no"),
        (("--out", "new.zip", "--extra", "gpu"), "--extra is of the packages"),
        (("--environment", "new.tar.gz", "--extra", "gpus"), "--extra is 'gpus'; choose of bench"),
        (("--out", "new.zip", "--kernels", "none"), "--kernels is of the packages"),
        (("--environment", "new.tar.gz", "--kernels", "replays"), "Did you mean 'replay'?"),
    ],
)
def test_what_cannot_be_packed_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    words: Sequence[str], why: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("there.zip").touch()
    assert package(*words) == 2
    assert why in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"there.zip"}


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_variables_that_make_exports_end_where_they_seem_to() -> None:
    """With a comment behind it, a value would end in the blanks before that."""
    exported = re.findall(r"^export (\w+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    environment = {name: own for name, own in os.environ.items() if name not in exported}
    words = ["make", "--print-data-base", "--dry-run", "help"]
    found = subprocess.run(  # noqa: S603 - this project's Makefile
        words, cwd=ROOT, env=environment, check=True, capture_output=True, text=True
    ).stdout
    values = dict(re.findall(r"^(\w+) :?= ?(.*)$", found, re.MULTILINE))
    assert values["WINNOW_COMPILE"] == "always"
    assert all(values[name] == values[name].strip() for name in exported)


def test_a_package_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = metadata.distribution

    def without(name: str) -> metadata.Distribution:
        if name == "llvmlite":
            raise metadata.PackageNotFoundError(name)
        return whole(name)

    monkeypatch.setattr(environment.metadata, "distribution", without)
    with pytest.raises(SpecError, match="package llvmlite, which numba needs, is not installed"):
        packed()


def test_every_option_is_documented() -> None:
    page = (ROOT / "docs" / "cluster.md").read_text()
    documented = set(re.findall(r"^\| `(--\S+)", page, re.MULTILINE))
    assert documented == {option.written for option in command.COMMAND.options.values()}
