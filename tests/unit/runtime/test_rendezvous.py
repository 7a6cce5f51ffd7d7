"""Threads that meet: one does the work of all, whoever leaves is not waited for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.runtime.rendezvous import Rendezvous


def test_every_piece_is_done_once_together_with_those_of_all_who_are_there() -> None:
    met: list[list[tuple[int, int]]] = []

    def doubled(pieces: list[tuple[int, int]]) -> list[int]:
        met.append(sorted(pieces))
        return [2 * number for _, number in pieces]

    meeting = Rendezvous(doubled, 5)

    def party(own: int) -> list[int]:
        try:
            return [meeting.bring((own, own + turn)) for turn in range(own)]
        finally:
            meeting.leave()

    with ThreadPoolExecutor(5) as pool:
        found = list(pool.map(party, range(5)))
    assert found == [[2 * (own + turn) for turn in range(own)] for own in range(5)]
    # party p brings p pieces: all that are left meet each time
    assert [[own for own, _ in pieces] for pieces in met] == [
        [1, 2, 3, 4], [2, 3, 4], [3, 4], [4],
    ]  # fmt: skip


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()], ids=repr)
def test_an_error_is_everyones(error: BaseException) -> None:
    def fails(_: list[int]) -> list[int]:
        raise error

    meeting = Rendezvous(fails, 3)

    def party(own: int) -> BaseException | None:
        try:
            meeting.bring(own)
        except (ValueError, KeyboardInterrupt) as raised:
            return raised
        finally:
            meeting.leave()
        return None

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(party, range(3))) == [error] * 3
