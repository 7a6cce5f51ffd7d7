"""``winnow package``: entry point of the group ``winnow.commands``."""

from __future__ import annotations

import argparse
from pathlib import Path

from engine.runtime.errors import SpecError

MEANING = "pack winnow, and the packages that it needs, for clusters where it is not installed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``winnow package``."""
    parser.add_argument(
        "--out", help="FILE.zip of the code, for --py-files; FILE-submit.py beside it starts it"
    )
    parser.add_argument(
        "--environment",
        help="FILE.tar.gz of the packages that winnow needs, pyspark left out, for --archives",
    )
    parser.add_argument(
        "--extra",
        action="append",
        default=[],
        help="an extra whose packages the environment gets as well: gpu; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Write the archives and say how to use them.

    Raises
    ------
    WinnowError
        If there is nothing to write, it cannot be written, or a package is not installed.
    """
    from spark_plugin.shipping.code import check_place, write_code  # noqa: PLC0415 - winnow is light
    from spark_plugin.shipping.environment import packed, write_environment  # noqa: PLC0415 - so too

    if args.out is None and args.environment is None:
        raise SpecError("there is nothing to pack: give --out FILE.zip, --environment FILE.tar.gz")
    if args.extra and args.environment is None:
        raise SpecError("--extra is of the packages: give --environment FILE.tar.gz as well")
    words = ["spark-submit"]
    start = "spark_plugin/submit.py"
    environment = None
    if args.environment is not None:
        environment = check_place(Path(args.environment), ".tar.gz", "--environment")
    if args.out is not None:
        code, launcher = write_code(check_place(Path(args.out), ".zip", "--out"))
        _told(code)
        _told(launcher)
        words.append(f"--py-files {code}")
        start = str(launcher)
    if environment is not None:
        found = packed(args.extra)
        _told(write_environment(environment, found), f", {len(found)} packages")
        words.append(
            f"--archives {environment}#env --conf spark.pyspark.python=./env/bin/python "
            "--conf spark.pyspark.driver.python=python3"
        )
    print(" \\\n    ".join([*words, f"{start} replay ..."]))  # noqa: T201 - what was asked for
    return 0


def _told(path: Path, more: str = "") -> None:
    print(f"{path}: {path.stat().st_size:,} bytes{more}")  # noqa: T201 - what was asked for
