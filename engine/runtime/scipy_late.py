"""Functions of SciPy, which is loaded when the first is called: half a second for each process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from engine.runtime.jit import Floats


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Floats:
    """Return the regularised incomplete beta function."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.betainc(a, b, x))


def gammaincc(a: ArrayLike, x: ArrayLike) -> Floats:
    """Return the regularised upper incomplete gamma function."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.gammaincc(a, x))


def gammaincinv(a: ArrayLike, p: ArrayLike) -> Floats:
    """Return quantiles of a gamma variable of shape a."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.gammaincinv(a, p))


def gammainccinv(a: ArrayLike, p: ArrayLike) -> Floats:
    """Return what a gamma variable of shape a exceeds with probability p."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.gammainccinv(a, p))


def ndtr(x: ArrayLike) -> Floats:
    """Return probabilities of the normal distribution."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.ndtr(x))


def ndtri(p: ArrayLike) -> Floats:
    """Return quantiles of the normal distribution."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.ndtri(p))


def stdtrit(degrees: ArrayLike, p: ArrayLike) -> Floats:
    """Return quantiles of Student's t."""
    from scipy import special  # noqa: PLC0415 - see above

    return np.asarray(special.stdtrit(degrees, p))


def brentq(function: Callable[[float], float], low: float, high: float, **options: float) -> float:
    """Return a zero of a function between two places where its signs differ."""
    from scipy import optimize  # noqa: PLC0415 - see above

    return float(optimize.brentq(function, low, high, **options))


def least_at(
    function: Callable[[float], float], bounds: tuple[float, float], tolerance: float
) -> float:
    """Return where a function of one argument is least within bounds."""
    from scipy import optimize  # noqa: PLC0415 - see above

    found: Any = optimize.minimize_scalar(
        function, bounds=bounds, method="bounded", options={"xatol": tolerance}
    )
    return float(found.x)
