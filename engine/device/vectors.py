"""Exact joins of dense vectors on a GPU: it multiplies and compacts, the CPU decides and writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.multiway.exact.layout import TILES
from engine.multiway.exact.plan import plan_of
from engine.multiway.exact.screen import Screen
from engine.multiway.exact.tiles import Propose
from engine.multiway.predicate import Predicate
from engine.runtime.device_choice import (
    ON_GPU,
    Wanted,
    attempt,
    combined_choice,
    prefer_gpu_tiles,
    wanted_device,
)
from engine.runtime.errors import SpecError
from engine.runtime.jit import Ints
from gpu_kernels.devices import Choice, Device, open_device
from gpu_kernels.multiway.predicates import DISTANCE, DOT

if TYPE_CHECKING:
    from gpu_kernels.multiway.proposals import DeviceProposals


class ChosenProposals:
    """Proposes the matches of joins of dense vectors, on the GPU if that was chosen and is faster.

    Pairs that match are the same on every device, as float64 decides. From where the GPU fails, the
    CPU does the work.

    Parameters
    ----------
    wanted : Wanted
    opened : callable
        Gives the device.

    Attributes
    ----------
    choice : Choice
        Where the work was done so far, and why; before it begins, what was chosen.
    """

    def __init__(self, wanted: Wanted, opened: Callable[[], Device] = open_device) -> None:
        self.choice = wanted.choice
        self._wanted, self._opened = wanted, opened

    def __call__(self, screen: Screen, products: int) -> Propose | None:
        """Return what proposes the pairs of a join; None if the CPU is to do it.

        Parameters
        ----------
        screen : Screen
        products : int
            Multiplications of the join.

        Raises
        ------
        DeviceError
            If the GPU was demanded and cannot do it; also from what is returned.
        """
        wanted = prefer_gpu_tiles(self._wanted, products)

        def made(device: Device) -> tuple[DeviceProposals, Device]:
            from gpu_kernels.multiway.proposals import (  # noqa: PLC0415 - loads numba.cuda
                Bounds,
                DeviceProposals,
            )

            bounds = Bounds(
                float(screen.low), screen.sure, screen.margin, screen.kind == DOT,
                screen.kind == DISTANCE and screen.row.shape[1] > 1,
            )  # fmt: skip
            return DeviceProposals(device, screen.row, screen.size, bounds), device

        found, self.choice = attempt(wanted, made, self._opened)
        return None if found is None else self._proposing(wanted, *found)

    def _proposing(self, wanted: Wanted, proposals: DeviceProposals, device: Device) -> Propose:
        lock = threading.Lock()
        worked: list[Choice] = []

        def entered() -> Device:
            device.enter()
            return device

        def propose(rows: range, columns: range, low: Ints, high: Ints) -> Ints | None:
            with lock:  # the device does one at a time, while other threads decide and write
                if worked and worked[-1].device != ON_GPU:
                    return None
                found, choice = attempt(
                    wanted, lambda _: proposals.pairs(rows, columns, low, high), entered
                )
                worked.append(choice)
                self.choice = combined_choice(worked, choice)
                return found

        return propose


def proposals_on(
    option: str, predicate: Predicate, dimensions: int, *, scored: bool
) -> ChosenProposals | None:
    """Return what proposes the matches of an exact join; None if it is none of matrix products.

    Parameters
    ----------
    option : {"auto", "cpu", "gpu"}
    predicate : Predicate
    dimensions : int
        Numbers of a tuple's attributes.
    scored : bool
        Whether the scores of matches are asked for.

    Raises
    ------
    SpecError
        If a GPU is demanded for a join that it does not make.
    DeviceError
        If a GPU is demanded and there is none.
    """
    if plan_of(predicate, dimensions, scored=scored) == TILES and not predicate.equal:
        return ChosenProposals(wanted_device(option))
    if option == ON_GPU:
        raise SpecError(
            f"--device is 'gpu': {predicate.text} of {dimensions} numbers is looked up on the CPU; "
            "give auto or cpu"
        )
    return None
