"""A ratio along one axis, with a band."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray, checked_values, require_finite
from quasiratio.metrics.binning import checked_edges
from quasiratio.plots.drawable import drawable_values

__all__ = ["RatioCurve"]

_QUANTILES = (0.16, 0.84)


@dataclass(frozen=True, eq=False)
class RatioCurve:
    """Values of a ratio at increasing positions.

    Args:
        name: Name of the method.
        x: Positions along the axis.
        values: The ratio at each of them.
        lower: Lower edge of a band, or `None`.
        upper: Upper edge of the band, or `None`.

    Example:
        >>> RatioCurve("exact", [0.0, 1.0], [-1.0, 1.0]).lower is None
        True
    """

    name: str
    x: FloatArray
    values: FloatArray
    lower: FloatArray | None = None
    upper: FloatArray | None = None

    def __post_init__(self) -> None:
        positions = drawable_values(self.x, f"positions of {self.name!r}")
        if np.any(np.diff(positions) <= 0):
            msg = f"Got positions of {self.name!r} that do not increase; expected them in increasing order."
            raise InvalidInputError(msg)
        object.__setattr__(self, "x", positions)
        for name in ("values", "lower", "upper"):
            given = getattr(self, name)
            if given is None and name != "values":
                continue
            array = np.asarray(given, dtype=np.float64)
            if array.shape != positions.shape:
                msg = (
                    f"Got {name} of shape {array.shape} for the curve {self.name!r} with {len(positions)} "
                    "positions; expected one number per position."
                )
                raise InvalidInputError(msg)
            require_finite(array, f"{name} of {self.name!r}")
            object.__setattr__(self, name, array)
        if (self.lower is None) != (self.upper is None):
            msg = f"Got one edge of a band for the curve {self.name!r}; expected both, or none."
            raise InvalidInputError(msg)

    @classmethod
    def from_draws(cls, name: str, x: npt.ArrayLike, ratios: npt.ArrayLike) -> RatioCurve:
        """Make a curve from several values per position: mean, and a band with 68% of them.

        Args:
            name: Name of the method.
            x: Positions.
            ratios: `(n_positions, n_draws)`: points of equal `x`, or the members of an ensemble.

        Example:
            >>> RatioCurve.from_draws("ring", [0.0, 1.0], [[1.0, 3.0], [4.0, 4.0]]).values.tolist()
            [2.0, 4.0]
        """
        array = np.asarray(ratios, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] == 0:
            msg = f"Got ratios of shape {array.shape}; expected (n_positions, n_draws), with draws."
            raise InvalidInputError(msg)
        require_finite(array, f"ratios of {name!r}")
        lower, upper = np.quantile(array, _QUANTILES, axis=1)
        return cls(name, np.asarray(x), array.mean(axis=1), lower, upper)

    @classmethod
    def from_events(
        cls, name: str, x: npt.ArrayLike, ratios: npt.ArrayLike, *, edges: npt.ArrayLike
    ) -> RatioCurve:
        """Make a curve from events: in each bin the mean, and a band with 68% of the events.

        Bins without events are left out. Events count once each, whatever their weights.

        Args:
            name: Name of the method.
            x: The feature of each event.
            ratios: The ratio at each event.
            edges: Increasing edges of the bins.

        Example:
            >>> RatioCurve.from_events("mlp", [0.2, 0.4, 1.5], [1.0, 3.0, 5.0], edges=[0, 1, 2]).values.tolist()
            [2.0, 5.0]
        """
        values = checked_values(x, "values of the feature")
        given = checked_values(ratios, f"ratios of {name!r}", n_expected=len(values))
        centers, by_bin = _in_bins(name, values, edges)
        rows = np.array([[given[i].mean(), *np.quantile(given[i], _QUANTILES)] for i in by_bin])
        return cls(name, centers, rows[:, 0], rows[:, 1], rows[:, 2])

    @classmethod
    def from_members(
        cls, name: str, x: npt.ArrayLike, ratios: npt.ArrayLike, *, edges: npt.ArrayLike
    ) -> RatioCurve:
        """Make a curve from an ensemble: in each bin the mean, and one standard deviation across the members.

        Each member's ratios are averaged over the events of a bin first, so that the band is the uncertainty
        of the average and not the spread of the ratio within the bin. Bins without events are left out.

        Args:
            name: Name of the method.
            x: The feature of each event.
            ratios: `(n_members, n_events)`, with at least two members.
            edges: Increasing edges of the bins.

        Example:
            >>> curve = RatioCurve.from_members("mlp", [0.2, 0.4], [[1.0, 3.0], [3.0, 5.0]], edges=[0, 1])
            >>> curve.values.tolist(), curve.upper.round(3).tolist()
            ([3.0], [4.414])
        """
        values = checked_values(x, "values of the feature")
        given = np.asarray(ratios, dtype=np.float64)
        if given.ndim != 2 or len(given) < 2 or given.shape[1] != len(values):
            msg = (
                f"Got ratios of shape {given.shape} for {len(values)} events; expected (n_members, n_events), "
                "with at least two members."
            )
            raise InvalidInputError(msg)
        require_finite(given, f"ratios of {name!r}")
        centers, by_bin = _in_bins(name, values, edges)
        averages = np.array([given[:, i].mean(axis=1) for i in by_bin])
        mean, std = averages.mean(axis=1), averages.std(axis=1, ddof=1)
        return cls(name, centers, mean, mean - std, mean + std)


def _in_bins(
    name: str, values: FloatArray, edges: npt.ArrayLike
) -> tuple[FloatArray, list[npt.NDArray[np.int64]]]:
    """Return the centres of the bins with events, and the events in each of them."""
    bounds = checked_edges(edges)
    index = np.searchsorted(bounds, values, side="right") - 1
    by_bin = [np.flatnonzero(index == i) for i in range(len(bounds) - 1)]
    filled = [i for i, events in enumerate(by_bin) if len(events)]
    if not filled:
        msg = f"Got no event of {name!r} between {bounds[0]:.6g} and {bounds[-1]:.6g}; expected some."
        raise InvalidInputError(msg)
    return ((bounds[1:] + bounds[:-1]) / 2)[filled], [by_bin[i] for i in filled]
