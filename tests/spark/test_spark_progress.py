"""Bars that move while tasks run on Spark: what they tell reaches the driver, and no more."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from engine.runtime.executors import Stages
from engine.runtime.work import listening, rows_done, told
from spark_plugin.executor import SparkExecutor
from spark_plugin.hearing import hearing


def test_a_bar_moves_within_a_task_on_spark(spark: Any) -> None:
    def slow(task: int) -> int:
        for _ in range(4):
            rows_done(10)
            time.sleep(0.4)
        told(f"answer {task}")
        return task

    seen: list[tuple[str, int, int]] = []
    stages = Stages(SparkExecutor(spark), lambda *own: seen.append(own))
    assert stages.mapped("replay", slow, [1, 2], [40, 40]) == [1, 2]
    done = [own[1] for own in seen]
    assert done == sorted(done)
    assert any(0 < own < 40 for own in done)
    assert (done[-1], seen[-1][2]) == (80, 80)
    assert any(own[0].startswith("replay: answer") for own in seen)


def test_only_the_tasks_of_this_job_are_heard(spark: Any) -> None:
    rows: list[int] = []
    with listening(lambda more, _: rows.append(more)), hearing(spark) as place:
        assert place is not None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            for message in (
                b"\xff", b"[]", b"5", json.dumps(["no token", 0, 7, ""]).encode(),
                json.dumps([place.token, 0, 50, ""]).encode(),
                json.dumps([place.token, 0, 30, ""]).encode(),  # a second attempt, behind the first
                json.dumps([place.token, 0, 60, ""]).encode(),
            ):  # fmt: skip
                other.sendto(message, (place.host, place.port))
            for _ in range(100):
                if sum(rows) >= 60:
                    break
                time.sleep(0.1)
    assert rows == [50, 10]


def test_nothing_is_sent_where_nobody_listens(spark: Any) -> None:
    with hearing(spark) as place:
        assert place is None
