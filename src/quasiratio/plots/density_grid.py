"""A signed density on a grid of two variables, with its marginals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from quasiratio.metrics import uniform_edges, weighted_histogram
from quasiratio.metrics.arrays import FloatArray, checked_weights, require_positive_sum
from quasiratio.metrics.binning import checked_edges
from quasiratio.plots.drawable import drawable_grid, drawable_values

__all__ = ["DensityGrid"]


@dataclass(frozen=True, eq=False)
class DensityGrid:
    """Densities in the cells of a grid, which may be negative.

    Args:
        edges_x: Increasing edges of the first variable.
        edges_y: Increasing edges of the second variable.
        values: Density in each cell, `(n_x, n_y)`.
        marginal_x: Density of the first variable alone.
        marginal_y: Density of the second variable alone.
        error_x: Statistical error of `marginal_x`; zero when left out.
        error_y: Statistical error of `marginal_y`; zero when left out.

    Example:
        >>> grid = DensityGrid([0, 1, 2], [0, 1], [[1.5], [-0.5]], [1.5, -0.5], [1.0])
        >>> grid.is_signed
        True
    """

    edges_x: FloatArray
    edges_y: FloatArray
    values: FloatArray
    marginal_x: FloatArray
    marginal_y: FloatArray
    error_x: FloatArray | None = None
    error_y: FloatArray | None = None

    def __post_init__(self) -> None:
        for axis in ("x", "y"):
            edges = checked_edges(getattr(self, f"edges_{axis}"))
            object.__setattr__(self, f"edges_{axis}", edges)
            for kind in ("marginal", "error"):
                given = getattr(self, f"{kind}_{axis}")
                given = np.zeros(len(edges) - 1) if given is None else given
                checked = drawable_values(
                    given, f"values of {kind}_{axis} in its bins", n_expected=len(edges) - 1
                )
                object.__setattr__(self, f"{kind}_{axis}", checked)
        shape = len(self.edges_x) - 1, len(self.edges_y) - 1
        object.__setattr__(self, "values", drawable_grid(self.values, "densities", shape=shape))

    @property
    def is_signed(self) -> bool:
        """Whether any cell is negative."""
        return bool((self.values < 0).any())

    @classmethod
    def from_events(
        cls,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        weights: npt.ArrayLike | None = None,
        *,
        edges_x: npt.ArrayLike | None = None,
        edges_y: npt.ArrayLike | None = None,
        n_bins: int = 50,
    ) -> DensityGrid:
        """Fill a grid with events of signed weights; the marginals are those of all events.

        Args:
            x: First variable of each event.
            y: Second variable of each event.
            weights: Signed weights of positive sum; all one when left out.
            edges_x: Edges of the first variable; `n_bins` from the 0.1 to the 99.9 percentile by default.
            edges_y: Edges of the second variable; likewise.
            n_bins: Number of bins where no edges are given.

        Example:
            >>> grid = DensityGrid.from_events([0.5, 1.5], [0.5, 0.5], edges_x=[0, 1, 2], edges_y=[0, 1])
            >>> grid.values.tolist(), grid.marginal_y.tolist()
            ([[0.5], [0.5]], [1.0])
        """
        first = drawable_values(x, "values of the first variable")
        second = drawable_values(y, "values of the second variable", n_expected=len(first))
        w = checked_weights(weights, len(first), "weights")
        total = require_positive_sum(w, "weights")
        bounds_x = uniform_edges(first, first, n_bins=n_bins) if edges_x is None else checked_edges(edges_x)
        bounds_y = uniform_edges(second, second, n_bins=n_bins) if edges_y is None else checked_edges(edges_y)
        cells, _, _ = np.histogram2d(first, second, bins=(bounds_x, bounds_y), weights=w)
        area = np.diff(bounds_x)[:, None] * np.diff(bounds_y)
        marginals = [
            weighted_histogram(v, w / total, edges=b) for v, b in ((first, bounds_x), (second, bounds_y))
        ]
        return cls(
            bounds_x,
            bounds_y,
            cells / area / total,
            *(m.values / np.diff(m.edges) for m in marginals),
            *(np.sqrt(m.variances) / np.diff(m.edges) for m in marginals),
        )

    @classmethod
    def from_function(
        cls,
        density: Callable[[FloatArray], npt.ArrayLike],
        *,
        edges_x: npt.ArrayLike,
        edges_y: npt.ArrayLike,
    ) -> DensityGrid:
        """Evaluate a density at the centres of the cells; the marginals are sums over the grid.

        Args:
            density: Function of `(n, 2)` points.
            edges_x: Edges of the first variable.
            edges_y: Edges of the second variable.

        Example:
            >>> flat = DensityGrid.from_function(lambda X: X[:, 0] * 0 + 0.5, edges_x=[0, 1], edges_y=[0, 1, 2])
            >>> flat.marginal_x.tolist(), flat.marginal_y.tolist()
            ([1.0], [0.5, 0.5])
        """
        bounds_x, bounds_y = checked_edges(edges_x), checked_edges(edges_y)
        centers = [(bounds[1:] + bounds[:-1]) / 2 for bounds in (bounds_x, bounds_y)]
        points = np.stack(np.meshgrid(*centers, indexing="ij"), axis=-1).reshape(-1, 2)
        at_points = drawable_values(density(points), "densities", n_expected=len(points))
        values = at_points.reshape(len(centers[0]), len(centers[1]))
        return cls(bounds_x, bounds_y, values, values @ np.diff(bounds_y), np.diff(bounds_x) @ values)
