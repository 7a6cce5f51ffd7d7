"""A headless Chromium, spoken to over pipes: it opens a page and tells what it did.

``make thorough`` gets one by running this file; tests that need one are skipped without it.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
MOST_SECONDS = 60.0
_READ, _WRITE = 3, 4
"""Descriptors of which ``--remote-debugging-pipe`` reads and to which it writes."""


def found() -> str | None:
    """Return the path of a browser: ``WINNOW_BROWSER``, or one on the PATH."""
    named = os.environ.get("WINNOW_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """A page in a tab of its own.

    Attributes
    ----------
    events : list of dict
        What the browser has told unasked.
    """

    def __init__(self, send: int, receive: int) -> None:
        self._send, self._receive = send, receive
        self._number, self._rest = 0, b""
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a method of the browser's protocol."""
        self._number += 1
        message: dict[str, Any] = {
            "id": self._number, "method": method, "params": parameters,
        }  # fmt: skip
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._send, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + MOST_SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._receive], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self._receive, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._rest += data
        message, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(message))

    def open(self, path: Path, width: int, height: int = 900) -> None:
        """Open a file in a window of that size, and wait until it is there."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + MOST_SECONDS
        while self.value("document.readyState") != "complete" or self.value("location.href") == (
            "about:blank"
        ):
            assert time.monotonic() < end, "the page does not load"

    def value(self, expression: str) -> Any:
        """Return what an expression of JavaScript comes to."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def point(self, x: float, y: float, kind: str = "mouseMoved") -> None:
        """Move the pointer to a place of the window, or press and release it there."""
        kinds = ("mousePressed", "mouseReleased") if kind == "click" else (kind,)
        for own in kinds:
            more = {"button": "left", "clickCount": 1} if kind == "click" else {}
            self.call("Input.dispatchMouseEvent", type=own, x=x, y=y, **more)

    def complaints(self) -> list[str]:
        """Return errors of scripts, what the content policy has refused, and requests outside."""
        self.value("1")
        told = []
        for own in self.events:
            what = own.get("params", {})
            if own["method"] == "Runtime.exceptionThrown":
                told.append(json.dumps(what["exceptionDetails"]))
            elif own["method"] == "Log.entryAdded":
                told.append(what["entry"]["text"])
            elif own["method"] == "Network.requestWillBeSent":
                told.append(what["request"]["url"])
        return [own for own in told if not own.startswith("file://")]


@contextmanager
def opened() -> Iterator[Page]:
    """Yield a page of a new browser, which goes with it."""
    name = found()
    assert name is not None
    to_browser, from_browser = os.pipe(), os.pipe()

    def place() -> None:
        read, write = os.dup(to_browser[0]), os.dup(from_browser[1])
        os.dup2(read, _READ)
        os.dup2(write, _WRITE)

    with tempfile.TemporaryDirectory(prefix="winnow-browser-", ignore_cleanup_errors=True) as home:
        options = (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
            f"--user-data-dir={home}", "--remote-debugging-pipe", "about:blank",
        )  # fmt: skip
        process = subprocess.Popen(  # noqa: S603 - a browser that was found here
            [name, *options], preexec_fn=place, close_fds=False,  # noqa: PLW1509 - before exec
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            for own in (to_browser[0], from_browser[1]):
                os.close(own)
            yield Page(to_browser[1], from_browser[0])
        finally:
            for own in (to_browser[1], from_browser[0]):
                os.close(own)
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def install() -> None:
    """Install Debian's Chromium if there is no browser and this user may."""
    if found() is not None or shutil.which("apt-get") is None or os.geteuid() != 0:
        return
    for words in (
        "update -qq",
        "install -y -qq --no-install-recommends chromium fonts-dejavu-core",
    ):
        subprocess.run(["apt-get", *words.split()], check=True, stdout=sys.stderr)  # noqa: S603, S607


if __name__ == "__main__":
    install()
    print(f"browser: {found()}")  # noqa: T201
    sys.exit(0)
