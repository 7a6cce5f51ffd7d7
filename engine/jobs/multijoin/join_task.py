"""What one task of a multi-way join is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.archives.roles import JoinColumns
from engine.jobs.multijoin.read import WHOLE, Share, StreamSource
from engine.multiway.harvest.prior import PairPrior
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import Windows
from engine.options.multijoin import MultiJoinOptions


@dataclass(frozen=True)
class MultiJoinTask:
    """A join, or a share of it.

    Attributes
    ----------
    options : MultiJoinOptions
    sources : tuple of StreamSource
    columns : JoinColumns
    windows : Windows
    start_ts : int or None
    tau, expire_every : int or None
        Ticks.
    harvest : HarvestSettings or None
    edges : tuple of int
        Left edges of the time bins, and the end of the last.
    share : Share
    threads : int or None
    draft : Path or None
        Folder for the part of the dataset; None to count only.
    priors : tuple of PairPrior
        What profiles say of the streams of a harvested join.
    """

    options: MultiJoinOptions
    sources: tuple[StreamSource, ...]
    columns: JoinColumns
    windows: Windows
    start_ts: int | None
    tau: int | None
    expire_every: int | None
    harvest: HarvestSettings | None
    edges: tuple[int, ...]
    share: Share = WHOLE
    threads: int | None = None
    draft: Path | None = None
    priors: tuple[PairPrior, ...] = ()
