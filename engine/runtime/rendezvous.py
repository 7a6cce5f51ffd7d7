"""Threads that each bring a piece of work, of which the last to come does all at once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import Generic, TypeVar

A = TypeVar("A")
R = TypeVar("R")


class _Piece(Generic[A, R]):
    """A piece of work, and what became of it."""

    def __init__(self, work: A) -> None:
        self.work = work
        self.found: list[R] = []
        self.error: BaseException | None = None

    @property
    def is_done(self) -> bool:
        return bool(self.found) or self.error is not None


class Rendezvous(Generic[A, R]):
    """Where threads meet.

    Parameters
    ----------
    work : callable
        Takes the pieces of those that wait, and returns a result for each.
    parties : int
        Threads that take part.

    Examples
    --------
    >>> meeting = Rendezvous(lambda pieces: [2 * own for own in pieces], 2)
    >>> meeting.leave()
    >>> meeting.bring(4)
    8
    """

    def __init__(self, work: Callable[[list[A]], list[R]], parties: int) -> None:
        self._work, self._parties = work, parties
        self._here: list[_Piece[A, R]] = []
        self._changed = Condition()

    def bring(self, work: A) -> R:
        """Wait until all parties wait; return what became of this piece.

        Raises
        ------
        BaseException
            What the work raised, in every thread that waited for it.
        """
        piece: _Piece[A, R] = _Piece(work)
        with self._changed:
            self._here.append(piece)
            self._meet()
            while not piece.is_done:
                self._changed.wait()
        if piece.error is not None:
            raise piece.error
        return piece.found[0]

    def leave(self) -> None:
        """Take part no more; those that wait need not wait for this thread."""
        with self._changed:
            self._parties -= 1
            self._meet()

    def _meet(self) -> None:
        if not self._here or len(self._here) < self._parties:
            return
        pieces, self._here = self._here, []
        try:
            results = self._work([own.work for own in pieces])
        except BaseException as error:  # noqa: BLE001 - it goes to those who wait
            for own in pieces:
                own.error = error
        else:
            for own, result in zip(pieces, results, strict=True):
                own.found.append(result)
        self._changed.notify_all()
