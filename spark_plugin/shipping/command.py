"""``winnow package``: entry point of the group ``winnow.commands``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, TypedDict
from urllib.parse import quote as percent_encoded

from engine.options.command import Command, Group
from engine.options.kinds import ITEMS, PLACE, Names
from engine.options.option import Option
from engine.runtime.errors import SpecError, chosen
from engine.runtime.storage.disk import scratch_folder

if TYPE_CHECKING:
    from engine.commands.asked import Asked


class Packed(TypedDict, total=False):
    """What is packed."""

    out: Annotated[
        Path,
        Option("FILE.zip of the code, for --py-files; FILE-submit.py beside it starts it", PLACE),
    ]
    environment: Annotated[
        Path,
        Option(
            "FILE.tar.gz of the packages that winnow needs, pyspark left out, for --archives", PLACE
        ),
    ]
    extra: Annotated[
        Sequence[str],
        Option(
            "an extra whose packages the environment gets as well, such as gpu or storage; may be "
            "repeated",
            ITEMS,
            (),
        ),
    ]
    kernels: Annotated[
        list[str] | None,
        Option(
            "commands whose compiled kernels the environment gets, for any processor of this "
            "architecture: as of winnow warm --only, or none (default: all)",
            Names(),
        ),
    ]


COMMAND = Command(
    "package",
    "pack winnow, and the packages that it needs, for clusters where it is not installed",
    (Group("", (Packed,)),),
    example="winnow package --out winnow.zip --environment winnow-env.tar.gz",
)


def run(asked: Asked) -> int:
    """Write the archives and print how to use them.

    Raises
    ------
    WinnowError
        If there is nothing to write, it cannot be written, or a package is not installed.
    """
    from engine.commands.warm import RUNS, ship_kernels  # noqa: PLC0415 - winnow is light
    from spark_plugin.shipping import code as own_code  # noqa: PLC0415 - so too
    from spark_plugin.shipping.environment import packed, write_environment  # noqa: PLC0415 - so too

    given = asked.given
    if given["out"] is None and given["environment"] is None:
        raise SpecError("there is nothing to pack: give --out FILE.zip, --environment FILE.tar.gz")
    for name in ("extra", "kernels"):
        if given[name] and given["environment"] is None:
            raise SpecError(f"--{name} is of the packages: give --environment FILE.tar.gz as well")
    known = [*RUNS, "none"]
    kernels = [chosen("--kernels", own, known) for own in given["kernels"] or RUNS]
    words, start = ["spark-submit"], "spark_plugin/submit.py"
    code = launcher = environment = None
    if given["environment"] is not None:
        environment = own_code.check_place(given["environment"], ".tar.gz", "--environment")
        found = packed(given["extra"])
    if given["out"] is not None:
        code, launcher = own_code.code_places(given["out"])
        words.append(f"--py-files {quote(str(code))}")
        start = quote(str(launcher))
    if environment is not None:
        with scratch_folder() as folder:
            compiled = None
            if kernels != ["none"]:
                compiled = folder / "kernels"
                ship_kernels(compiled, kernels)
            _print_size(write_environment(environment, found, compiled), f", {len(found)} packages")
        uri = percent_encoded(str(environment))  # as Spark reads a place before a fragment
        words.append(
            f"--archives {quote(uri)}#env "
            "--conf spark.pyspark.python=./env/bin/python "
            "--conf spark.pyspark.driver.python=python3"
        )
    if code is not None and launcher is not None:  # last: it takes no time, so stands with the rest
        own_code.write_code(code, launcher)
        _print_size(code)
        _print_size(launcher)
    print(" \\\n    ".join([*words, f"{start} replay ..."]))  # noqa: T201 - what was asked for
    return 0


def _print_size(path: Path, more: str = "") -> None:
    print(f"{path}: {path.stat().st_size:,} bytes{more}")  # noqa: T201 - what was asked for
