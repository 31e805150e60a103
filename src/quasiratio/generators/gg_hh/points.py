r"""Weights of gg -> hh events at several points of Wilson coefficients.

The squared amplitude is a quadratic polynomial of the coefficients, so that the weights of an event at enough points determine it
everywhere. An event that was drawn from $|d\sigma|$ of its sample has the weight
$w_p = d\sigma(\theta_p)/|d\sigma_\mathrm{sample}|$ at the point $\theta_p$: the sums of these weights are proportional to cross-sections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.generators.gg_hh.amplitudes import squared_amplitude
from quasiratio.generators.gg_hh.couplings import Couplings

if TYPE_CHECKING:
    from quasiratio.generators.gg_hh.cross_section import HardProcess
    from quasiratio.generators.gg_hh.sampler import PartonEvents

__all__ = ["WILSON_COEFFICIENTS", "WeightPoint", "point_weights", "weight_points"]

FloatArray = npt.NDArray[np.float64]

WILSON_COEFFICIENTS = ("C_Hkin", "C_H", "C_uH", "C_HG")


@dataclass(frozen=True)
class WeightPoint:
    """A point of Wilson coefficients at which events get a weight.

    Attributes:
        column: Name of the column: the place of the point, then names and values, `p` for the decimal point and `m` for minus.
        couplings: The couplings there.
        expansion: `"linear"` leaves out the squares of the coefficients, `"quadratic"` keeps them.
    """

    column: str
    couplings: Couplings
    expansion: Literal["linear", "quadratic"] = "quadratic"


def weight_points(
    points: Sequence[Mapping[str, float]],
    *,
    Lambda: float = 1000.0,
    alpha_s: Literal["running", "fixed"] = "running",
    expansion: Literal["linear", "quadratic"] = "quadratic",
) -> tuple[WeightPoint, ...]:
    """Return the points of `generate(points=...)` from Wilson coefficients by name; those that are not named are zero.

    Args:
        points: One mapping of names out of `WILSON_COEFFICIENTS` to values per point.
        Lambda: New-physics scale in GeV.
        alpha_s: Which strong coupling enters the contact couplings, as in `Couplings.from_smeft`.
        expansion: Whether to keep the squares of the coefficients.

    Example:
        >>> [point.column for point in weight_points([{}, {"C_H": -2.5, "C_uH": 1.0}])]
        ['rwgt0_sm', 'rwgt1_C_H_m2p5_C_uH_1p0']
    """
    result = []
    for number, point in enumerate(points):
        unknown = [name for name in point if name not in WILSON_COEFFICIENTS]
        if unknown:
            msg = (
                f"Got a value of {', '.join(unknown)} in point {number}; expected names out of "
                f"{', '.join(WILSON_COEFFICIENTS)}."
            )
            raise InvalidInputError(msg)
        values = "_".join(f"{name}_{float(value)!r}" for name, value in point.items()) or "sm"
        column = f"rwgt{number}_{values}".replace(".", "p").replace("-", "m").replace("+", "")
        couplings = Couplings.from_smeft(
            **{k: float(v) for k, v in point.items()}, Lambda=Lambda, alpha_s=alpha_s
        )
        result.append(WeightPoint(column, couplings, expansion))
    return tuple(result)


def point_weights(
    process: HardProcess, events: PartonEvents, points: Sequence[WeightPoint]
) -> dict[str, FloatArray]:
    """Return the weights of events of a process at every point, by the name of their column."""
    if not points:
        return {}
    factors = process.form_factors(events.m_hh, events.cos_theta)
    own = np.abs(process.squared(events.m_hh, factors))
    return {
        point.column: squared_amplitude(point.expansion, events.m_hh, factors, point.couplings) / own
        for point in points
    }
