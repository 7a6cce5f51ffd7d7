#!/usr/bin/env python3
"""Whether what entrypoint.sh started is well: exit status 0, or 1 and the reason on standard error.

A master is well if it says so on its page; a worker if the master counts it among the living; the
other roles as long as their process runs. Python's own library is all that it takes.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

SECONDS = 5.0


class UnwellError(Exception):
    """What is wrong."""


def state_of(page: str) -> dict[str, Any]:
    """Return what the page of a master or worker tells of it.

    Raises
    ------
    UnwellError
        If it does not answer.
    """
    url = f"{page.rstrip('/')}/json/"
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:  # noqa: S310 - http of Spark's
            told = json.load(answer)
    except (OSError, ValueError) as error:
        raise UnwellError(f"{url} does not answer: {error}") from None
    if not isinstance(told, dict):
        raise UnwellError(f"{url} tells no state")
    return told


def check_process(number: int) -> None:
    """Raise `UnwellError` if there is no such process."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        raise UnwellError(f"process {number} is gone") from None
    except PermissionError:
        pass  # it is somebody's: it runs


def check_master(page: str) -> None:
    """Raise `UnwellError` if a master leads nobody and stands by for nobody."""
    status = state_of(page).get("status")
    if status not in {"ALIVE", "STANDBY"}:
        raise UnwellError(f"the master is {status}")


def check_worker(page: str) -> None:
    """Raise `UnwellError` if a worker is not among the living of its master."""
    own = state_of(page)
    master = own.get("masterwebuiurl")
    if not master:
        raise UnwellError("the worker has found no master")
    workers = {one.get("id"): one.get("state") for one in state_of(master).get("workers", [])}
    state = workers.get(own.get("id"), "unknown to the master")
    if state != "ALIVE":
        raise UnwellError(f"the worker is {state}")


def main() -> int:
    """Check the role of this container."""
    file = Path(os.environ.get("WINNOW_RUN", "/tmp/winnow"), "role")  # noqa: S108 - as entrypoint.sh
    try:
        try:
            role, number, page = file.read_text().splitlines()
        except (OSError, ValueError):
            raise UnwellError(f"nothing was started: there is no {file}") from None
        check_process(int(number))
        if role == "master":
            check_master(page)
        elif role == "worker":
            check_worker(page)
    except UnwellError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
