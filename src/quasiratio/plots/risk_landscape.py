"""Risks as functions of the mixture coefficients, with everything else held fixed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray
from quasiratio.plots.drawable import drawable_grid, drawable_values

__all__ = ["RiskCurve", "RiskLandscape", "spread"]

_FAR = 50.0
"""In median absolute deviations; a parabola reaches two to three."""


@dataclass(frozen=True, eq=False)
class RiskLandscape:
    """A risk over $(c_0, c_1)$. Risks that are NaN or infinite are left out of figures.

    Args:
        name: Name of the loss.
        c0: Increasing coefficients of the reference.
        c1: Increasing coefficients of the target.
        risks: The risk at each pair, `(n_c0, n_c1)`.

    Example:
        >>> RiskLandscape("mse", [1.0, 2.0], [1.0, 1.5], [[3.0, 2.0], [1.0, 4.0]]).minimum
        (2.0, 1.0)
    """

    name: str
    c0: FloatArray
    c1: FloatArray
    risks: FloatArray

    def __post_init__(self) -> None:
        for name in ("c0", "c1"):
            object.__setattr__(self, name, _increasing(getattr(self, name), f"values of {name}"))
        shape = len(self.c0), len(self.c1)
        risks = drawable_grid(self.risks, f"risks of {self.name!r}", shape=shape, finite=False)
        object.__setattr__(self, "risks", risks)

    @property
    def minimum(self) -> tuple[float, float]:
        """The pair $(c_0, c_1)$ of the grid with the lowest finite risk."""
        i, j = np.unravel_index(np.argmin(_masked(self.risks)), self.risks.shape)
        return float(self.c0[i]), float(self.c1[j])

    @property
    def runs_away(self) -> bool:
        """Whether the lowest risk stands apart from all others, as beside a pole, so that it is no minimum."""
        return _runs_away(self.risks)


@dataclass(frozen=True, eq=False)
class RiskCurve:
    """A risk over one coefficient. Risks that are NaN or infinite are left out of figures.

    Args:
        name: Name of the loss.
        c: Increasing coefficients.
        risks: The risk at each of them.

    Example:
        >>> RiskCurve("pare", [1.0, 1.5, 2.0], [0.3, 0.1, 0.2]).minimum
        1.5
    """

    name: str
    c: FloatArray
    risks: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "c", _increasing(self.c, "coefficients"))
        risks = np.asarray(self.risks)
        if risks.ndim != 1:
            msg = f"Got risks of {self.name!r} of shape {risks.shape}; expected one per coefficient."
            raise InvalidInputError(msg)
        grid = drawable_grid(risks[None], f"risks of {self.name!r}", shape=(1, len(self.c)), finite=False)
        object.__setattr__(self, "risks", grid[0])

    @property
    def minimum(self) -> float:
        """The coefficient with the lowest finite risk."""
        return float(self.c[np.argmin(_masked(self.risks))])

    @property
    def runs_away(self) -> bool:
        """Whether the lowest risk stands apart from all others, as beside a pole, so that it is no minimum."""
        return _runs_away(self.risks)


def spread(risks: FloatArray) -> tuple[float, float]:
    """Return the median of the finite risks and their median absolute deviation from it.

    Example:
        >>> spread(np.array([1.0, 2.0, 4.0, np.inf]))
        (2.0, 1.0)
    """
    finite = risks[np.isfinite(risks)]
    middle = float(np.median(finite))
    return middle, float(np.median(np.abs(finite - middle)))


def _increasing(values: FloatArray, role: str) -> FloatArray:
    array = drawable_values(values, role)
    if len(array) < 2 or np.any(np.diff(array) <= 0):
        msg = f"Got {len(array)} {role} that do not increase; expected at least two, in increasing order."
        raise InvalidInputError(msg)
    return array


def _masked(risks: FloatArray) -> FloatArray:
    return np.where(np.isfinite(risks), risks, np.inf)


def _runs_away(risks: FloatArray) -> bool:
    middle, deviation = spread(risks)
    return middle - float(_masked(risks).min()) > _FAR * deviation
