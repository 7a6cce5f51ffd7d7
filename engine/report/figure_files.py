"""Figures of matplotlib as files."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable
from pathlib import Path

from engine.report.envelope import check_place
from engine.report.figures import Drawn
from engine.runtime.errors import OutputError, SpecError
from engine.runtime.storage.places import save_bytes, try_to_put
from engine.runtime.storage.uris import Place, Uri

FORMATS = {".png": b"\x89PNG", ".svg": b"<"}


def check_plot(path: Place) -> None:
    """Find out before the work whether a plot could be written.

    Raises
    ------
    SpecError
        If its name has another end than `FORMATS`.
    OutputError
        If its place is none.
    """
    if Path(path.name).suffix not in FORMATS:
        raise SpecError(f"--plot is {path}; give a file that ends in {' or '.join(FORMATS)}")
    check_place(path, "plot", begins=FORMATS[Path(path.name).suffix])


def save_figure(figure: Drawn, path: Place) -> None:
    """Write a figure to a file or object, equal bytes for an equal figure; folders are made.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    from matplotlib import rc_context  # noqa: PLC0415 - as above

    suffix = Path(path.name).suffix
    metadata = {"Date": None} if suffix == ".svg" else {}
    content = io.BytesIO()
    with warnings.catch_warnings(), rc_context({"svg.hashsalt": "winnow"}):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure.savefig(content, format=suffix[1:], dpi=150, metadata=metadata)
    save_bytes(path, content.getvalue(), "plot")


def check_folder(folder: Place) -> None:
    """Find out before the work whether plots could be written into a folder.

    Raises
    ------
    OutputError
        If not.
    """
    if isinstance(folder, Uri):
        try_to_put(folder)
        return
    above = next(own for own in (folder, *folder.absolute().parents) if own.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OutputError(f"plots {folder} cannot be written: {above} is no folder to write to")


def save_each(figures: Iterable[tuple[str, Drawn]], folder: Place) -> list[Place]:
    """Write figures by their names, each in every format, into a folder that is made.

    Raises
    ------
    OutputError
        If one cannot be written.
    """
    files: list[Place] = []
    for name, figure in figures:
        for form in FORMATS:
            files.append(folder / f"{name}{form}")
            save_figure(figure, files[-1])
    return files
