"""An object store on loopback that speaks S3: moto's server, which counts requests and can kill.

Run as a script it serves until its standard input ends, and prints its port first. Requests whose
path begins with ``/_`` are for tests: see `_control`.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

KEY = "test-access-key-id"
"""The access key that is known; any secret goes with it."""
REGION = "us-east-1"
"""Of all buckets."""
_WRITES = ("PUT", "POST")
_UNKNOWN = (
    b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>InvalidAccessKeyId</Code><Message>The AWS "
    b"Access Key Id you provided does not exist in our records.</Message></Error>"
)
_ELSEWHERE = (
    b"<?xml version='1.0' encoding='UTF-8'?><Error><Code>AuthorizationHeaderMalformed</Code>"
    b"<Message>The authorization header is malformed; the region is wrong; expecting '%s'</Message>"
    b"<Region>%s</Region></Error>"
).replace(b"%s", REGION.encode())
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class Watched:
    """A WSGI application with a log of its requests, and a process to kill at one of them."""

    def __init__(self, application: Wsgi) -> None:
        self._application, self._lock = application, threading.Lock()
        self._log: list[dict[str, Any]] = []
        self._kill: dict[str, int] = {}
        self._begun = 0

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request."""
        path = environ["PATH_INFO"]
        if path.startswith("/_"):
            return self._control(path, environ, start)
        method = environ["REQUEST_METHOD"]
        signed = environ.get("HTTP_AUTHORIZATION", "")
        if KEY in signed and f"/{REGION}/" not in signed:
            found = [("Content-Type", "application/xml"), ("x-amz-bucket-region", REGION)]
            start("400 Bad Request", found)
            return [b"" if method == "HEAD" else _ELSEWHERE]
        if KEY not in signed:
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"" if method == "HEAD" else _UNKNOWN]
        writes = method in _WRITES and environ.get("QUERY_STRING") != "delete"
        with self._lock:
            due = writes and self._kill and self._begun == self._kill["at"]
            self._begun += writes
        if due and self._kill["before"]:
            os.kill(self._kill["pid"], signal.SIGKILL)
            start("503 Slow Down", [])
            return []  # as if it had not come
        sent = 0 if method == "HEAD" else None
        body = b"".join(self._application(environ, start))
        if due and not self._kill["before"]:
            os.kill(self._kill["pid"], signal.SIGKILL)
        with self._lock:
            self._log.append(
                {
                    "method": method,
                    "writes": writes,
                    "path": path,
                    "query": environ.get("QUERY_STRING", ""),
                    "range": environ.get("HTTP_RANGE"),
                    "bytes": len(body) if sent is None else sent,
                }
            )
        return [body]

    def _control(
        self, path: str, environ: dict[str, Any], start: Callable[..., Any]
    ) -> Iterable[bytes]:
        """Answer ``/_log``, ``/_clear`` or ``/_kill``, whose body is ``{pid, at, before}``.

        `at` counts requests that write, but for removals.
        """
        with self._lock:
            found = list(self._log)
            if path != "/_log":
                self._log.clear()
                self._kill, self._begun = {}, 0
            if path == "/_kill":
                size = int(environ["CONTENT_LENGTH"])
                self._kill = json.loads(environ["wsgi.input"].read(size))
        start("200 OK", [("Content-Type", "application/json")])
        return [json.dumps(found).encode()]


def main() -> None:
    """Serve until the standard input ends."""
    from moto.server import (  # noqa: PLC0415 - tests import this file without moto
        DomainDispatcherApplication,
        create_backend_app,
    )
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415 - as above

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: object, **__: object) -> None:
            """Log nothing."""

    application = Watched(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    print(server.server_port, flush=True)  # noqa: T201 - what it is asked for
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    main()
