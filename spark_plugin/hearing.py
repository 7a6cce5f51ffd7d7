"""What tasks on executors tell while they work, sent to the driver for its progress bars.

By datagrams to the address by which executors know the driver: nothing waits for them, and where
none arrives a bar moves task by task.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from pyspark.sql import SparkSession

from engine.runtime.work import heard, listening, rows_done, told
from spark_plugin.connect import of_connect

_EVERY = 0.2
"""Seconds between a task's datagrams."""
_LONGEST = 4096


class Place(NamedTuple):
    """Where tasks tell."""

    host: str
    port: int
    token: str
    """Which job's datagrams count."""


@contextmanager
def hearing(session: SparkSession) -> Iterator[Place | None]:
    """Hear what tasks tell at the place that is yielded, None if nobody wants to know.

    It is told again in this process, to whoever listens.
    """
    place = ear = None
    if heard() and not of_connect(session):  # whose driver is not here
        with suppress(OSError):
            ear, place = _ear(session)
    if ear is None or place is None:
        yield None
        return
    threading.Thread(target=_hear, args=(ear, place.token), daemon=True).start()
    try:
        yield place
    finally:
        with suppress(OSError):
            ear.shutdown(socket.SHUT_RDWR)
        ear.close()


def _ear(session: SparkSession) -> tuple[socket.socket, Place]:
    conf = session.sparkContext.getConf()
    host = conf.get("spark.driver.host", "localhost") or "localhost"
    found = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
    ear = socket.socket(found[0], socket.SOCK_DGRAM)
    try:
        ear.bind((conf.get("spark.driver.bindAddress", host) or host, 0))
    except OSError:
        ear.close()
        raise
    return ear, Place(host, ear.getsockname()[1], secrets.token_hex(8))


def _hear(ear: socket.socket, token: str) -> None:
    """Tell again what is heard: of each task, by whichever attempt is ahead."""
    most: dict[int, int] = {}
    with suppress(OSError):  # it is closed
        while message := ear.recv(_LONGEST):
            with suppress(ValueError, TypeError):  # not ours
                sender, task, rows, text = json.loads(message)
                if sender != token:
                    continue
                more = rows - most.get(task, 0)
                if more > 0:
                    most[task] = rows
                    rows_done(more)
                if text:
                    told(text)


@contextmanager
def telling(place: Place | None, task: int) -> Iterator[None]:
    """Send what the work in the block tells, as that of a task, to a place."""
    if place is None:
        yield
        return
    rows, text, last = 0, "", 0.0
    found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_DGRAM)
    with socket.socket(found[0][0], socket.SOCK_DGRAM) as mouth:
        mouth.setblocking(False)

        def send() -> None:
            message = json.dumps([place.token, task, rows, text]).encode()
            with suppress(OSError):
                mouth.sendto(message, found[0][4])

        def tell(more: int, said: str) -> None:
            nonlocal rows, text, last
            rows, text, now = rows + more, said or text, time.monotonic()
            if now - last > _EVERY:
                last = now
                send()

        with listening(tell):
            yield
        send()
