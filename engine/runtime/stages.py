"""The stages of a job: what each took, and how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.runtime.executors import Executor

Progress = Callable[[str, int, int], None]


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total


@dataclass
class Stages:
    """Seconds spent, stage by stage, and where progress is told."""

    progress: Progress = _silent
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count the time of the block under `name`."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begun
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def mapped(
        self, executor: Executor, name: str, function: Callable[[Any], Any], tasks: list[Any]
    ) -> list[Any]:
        """Run the tasks of a stage and tell how far they are."""
        results = []
        with self.timed(name):
            self.progress(name, 0, len(tasks))
            for result in executor.map(function, tasks):
                results.append(result)
                self.progress(name, len(results), len(tasks))
        return results
