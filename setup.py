"""A wheel with compiled kernels, which `make wheel` builds; all else is in pyproject.toml."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

KERNELS = os.environ.get("WINNOW_WHEEL_KERNELS")
"""Folder of kernels that ``winnow warm --out`` made."""


class WithKernels(build_py):
    """Puts the kernels into the package, where winnow finds them."""

    def run(self) -> None:
        """Copy the packages, and the kernels if there are."""
        own = Path(self.build_lib, "winnow", "kernels")
        shutil.rmtree(own, ignore_errors=True)  # an earlier build's
        super().run()
        if KERNELS is not None and not self.editable_mode:
            shutil.copytree(KERNELS, own)


class OfOnePlatform(bdist_wheel):
    """Names the version of Python and the processor where there are kernels."""

    def finalize_options(self) -> None:
        """Say that the wheel is not for all of them."""
        super().finalize_options()
        self.root_is_pure = KERNELS is None


setup(cmdclass={"build_py": WithKernels, "bdist_wheel": OfOnePlatform})
