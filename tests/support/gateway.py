"""What stands before a server of another cloud: it can kill a writer, refuse, and translate.

Run as a script, with the server's port and the cloud's name, it serves until its standard input
ends, and prints its own port first. Requests whose path begins with ``/_`` are for tests.

fake-gcs-server has Google's JSON API, which pyarrow reads by, and not the XML API by which obstore
writes; requests of that one (documented as cloud.google.com/storage/docs/xml-api) become requests
of the other. All other requests, and Azurite's, are passed on as they are.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

_HOP = {"connection", "content-length", "host", "keep-alive", "transfer-encoding"}
"""Headers of one connection, which are not passed on."""
_SENT = {"date", "server"}
"""Headers that every answer has."""
_JSON = ("/storage/v1/", "/upload/", "/download/", "/batch/")
_BOUND = "the-part-ends-here"
REFUSED = "Invalid Credentials"


class Answer(NamedTuple):
    """A response."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


class Kill(NamedTuple):
    """Who is to be killed, and at which write to come, counted from 0."""

    pid: int
    at: int
    before: bool


class Passage:
    """Passes requests on to a server of this machine.

    Parameters
    ----------
    port : int
        Of the server.
    google : bool
        Whether requests of Google's XML API are translated.
    """

    def __init__(self, port: int, *, google: bool) -> None:
        self._port, self._google, self._lock = port, google, threading.Lock()
        self._kill: Kill | None = None
        self._writes: list[str] = []
        self._refuses = False

    def told(self, what: str, body: Any) -> list[str]:
        """Be told whom to kill, or whether to refuse; return what was written, and forget it."""
        with self._lock:
            written, self._writes = self._writes, []
            self._kill = Kill(**body) if what == "kill" else None
            self._refuses = body if what == "refuse" else self._refuses
        return written

    def answered(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Return the answer to a request."""
        if self._refuses:
            error = {"error": {"code": 401, "message": REFUSED}}
            return Answer(401, [("Content-Type", "application/json")], json.dumps(error).encode())
        due = None
        if method in ("PUT", "POST") and "comp=batch" not in target:  # Azure removes by batches
            with self._lock:
                kill, number = self._kill, len(self._writes)
                self._writes.append(unquote(urlsplit(target).path))
            due = kill if kill is not None and kill.at == number else None
        if due is not None and due.before:
            os.kill(due.pid, signal.SIGKILL)
            return Answer(503, [], b"")  # as if it had not come
        own = self._google and not target.startswith(_JSON)
        found = (self._translated if own else self._passed)(method, target, headers, body)
        if due is not None:
            os.kill(due.pid, signal.SIGKILL)
        return found

    def _passed(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            own = {name: value for name, value in headers.items() if name.lower() not in _HOP}
            connection.request(method, target, body or None, own)
            answer = connection.getresponse()
            kept = [
                (name, value) for name, value in answer.getheaders() if name.lower() not in _HOP
            ]
            if method == "HEAD":
                kept.append(("Content-Length", answer.getheader("Content-Length", "0")))
            return Answer(answer.status, kept, answer.read())
        finally:
            connection.close()

    def _translated(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Answer:
        """Answer a request of Google's XML API: objects listed, put whole, or removed."""
        parts = urlsplit(target)
        bucket, _, name = (unquote(own) for own in parts.path.lstrip("/").partition("/"))
        asked = {key: own[0] for key, own in parse_qs(parts.query, keep_blank_values=True).items()}
        if method == "GET" and not name and asked.get("list-type") == "2":
            return self._listed(bucket, asked)
        if method == "PUT" and not asked:
            return self._put(bucket, name, headers, body)
        if method == "DELETE" and not asked:
            found = self._passed(
                "DELETE", f"/storage/v1/b/{bucket}/o/{quote(name, safe='')}", {}, b""
            )
            return Answer(204 if found.status == 200 else found.status, [], b"")
        if method in ("GET", "HEAD"):
            return self._passed(method, target, headers, body)
        return Answer(501, [], f"{method} {target} is not translated".encode())

    def _listed(self, bucket: str, asked: dict[str, str]) -> Answer:
        given = {
            "prefix": asked.get("prefix", ""),
            "pageToken": asked.get("continuation-token", ""),
        }
        found = self._passed("GET", f"/storage/v1/b/{bucket}/o?{urlencode(given)}", {}, b"")
        if found.status != 200:
            return found
        content = json.loads(found.body)
        rows = "".join(
            f"<Contents><Key>{escape(own['name'])}</Key><Size>{own['size']}</Size>"
            f"<LastModified>{own['updated']}</LastModified><ETag>{escape(own['etag'])}</ETag></Contents>"
            for own in content.get("items", ())
        )
        more = content.get("nextPageToken")
        if more:
            rows += f"<NextContinuationToken>{escape(more)}</NextContinuationToken>"
        xml = f"<ListBucketResult>{rows}</ListBucketResult>"
        return Answer(200, [("Content-Type", "application/xml")], xml.encode())

    def _put(self, bucket: str, name: str, headers: dict[str, str], body: bytes) -> Answer:
        given = {"uploadType": "multipart", "name": name}
        if "x-goog-if-generation-match" in headers:
            given["ifGenerationMatch"] = headers["x-goog-if-generation-match"]
        kind = {"Content-Type": f"multipart/related; boundary={_BOUND}"}
        parts = (
            f"--{_BOUND}\r\nContent-Type: application/json\r\n\r\n{json.dumps({'name': name})}\r\n",
            f"--{_BOUND}\r\nContent-Type: application/octet-stream\r\n\r\n",
            f"\r\n--{_BOUND}--\r\n",
        )
        first, second, last = (own.encode() for own in parts)
        target = f"/upload/storage/v1/b/{bucket}/o?{urlencode(given)}"
        found = self._passed("POST", target, kind, first + second + body + last)
        if found.status != 200:
            return Answer(found.status, [], found.body)
        put = json.loads(found.body)
        return Answer(200, [("ETag", put["etag"]), ("x-goog-generation", put["generation"])], b"")


class Gateway:
    """A running gateway.

    Parameters
    ----------
    port : int
        By which it is reached.
    """

    def __init__(self, port: int) -> None:
        self.port = port

    def kill(self, pid: int, at: int, *, before: bool) -> None:
        """Have a process killed at a write to come, counted from 0, before or after it is done."""
        self._tell("kill", {"pid": pid, "at": at, "before": before})

    def refuse(self, refuses: bool) -> None:
        """Have it answer as to credentials that are unknown, or no longer."""
        self._tell("refuse", refuses)

    def writes(self) -> list[str]:
        """Return the paths of writes since the last call, but for removals, and forget them."""
        return self._tell("forget", None)

    def _tell(self, what: str, body: object) -> list[str]:
        place, content = f"http://127.0.0.1:{self.port}/_{what}", json.dumps(body).encode()
        with urllib.request.urlopen(place, content, timeout=60) as answer:
            found: list[str] = json.load(answer)
        return found


@contextmanager
def opened(port: int, cloud: str) -> Iterator[Gateway]:
    """Yield a gateway to a server; it ends with the block, or with this process."""
    line = [sys.executable, str(Path(__file__)), str(port), cloud]
    with subprocess.Popen(  # noqa: S603 - this file
        line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield Gateway(int(server.stdout.readline()))
        finally:
            server.stdin.close()


def main(port: str, cloud: str) -> None:
    """Serve until the standard input ends."""
    passage = Passage(int(port), google=cloud == "google")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.path.startswith("/_"):
                told = passage.told(self.path[2:], json.loads(body))
                found = Answer(200, [], json.dumps(told).encode())
            else:
                headers = {name.lower(): value for name, value in self.headers.items()}
                found = passage.answered(self.command, self.path, headers, body)
            self.send_response(found.status)
            for name, value in found.headers:
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(found.body)))
            self.end_headers()
            with suppress(ConnectionError):  # of a client that wants no more
                self.wfile.write(b"" if self.command == "HEAD" else found.body)

        do_DELETE = do_GET = do_HEAD = do_PATCH = do_POST = do_PUT = _answer  # noqa: N815 - its names

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)  # noqa: T201 - what it is asked for
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
