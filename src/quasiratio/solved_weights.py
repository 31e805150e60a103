"""What the weights of events at several points say: coefficients, and how well they are determined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError

__all__ = ["SolvedWeights", "require_finite_weights", "require_polynomial", "require_reference"]

FloatArray = npt.NDArray[np.float64]

_SMALL_REFERENCE = 1e-6
_LARGEST_RESIDUAL = 0.01
_SHOWN_EVENTS = 5
_CHUNK = 2**16


@dataclass(frozen=True, eq=False)
class SolvedWeights:
    r"""Coefficients of each event, and how well the weights determine them.

    Attributes:
        coefficients: $c_k$ of each event, `(n, n_terms)`, relative to the weight of the reference.
        reference_weights: $w_\mathrm{ref}$ of each event: the `sample_weight` that belongs to the coefficients.
        residual: Per event, the largest $|w_p - \hat w_p|$ over the largest $|w_p|$; zero up to rounding where there are as
            many points as terms.
        condition_number: Of the matrix $P_k(\theta_p)$ with its columns scaled to a largest entry of one: by how much
            relative errors of weights may grow in the coefficients.
        rank: Terms that the points determine: all of them.
        inverse: $(n_\mathrm{terms}, p)$ pseudo-inverse that turned weights into coefficients.
        reference_row: The same for the weight of the reference, `(p,)`; zero where that was given.
        points: The points.
    """

    coefficients: FloatArray
    reference_weights: FloatArray
    residual: FloatArray
    condition_number: float
    rank: int
    inverse: FloatArray
    reference_row: FloatArray
    points: FloatArray

    def rounding_error(self, weights: npt.ArrayLike, bits: int = 14) -> FloatArray:
        r"""Return the standard error of each coefficient, `(n, n_terms)`, where weights were stored with few bits.

        A mantissa of $b$ bits is uniformly off by up to $2^{-b-1}$ of the weight (3e-5 for the 14 bits of nanoAOD).

        Args:
            weights: The weights that were solved.
            bits: Bits of their mantissa.
        """
        given, result = np.asarray(weights), np.empty_like(self.coefficients)
        error = _relative_error(bits)
        for start in range(0, len(given), _CHUNK):
            rows = slice(start, start + _CHUNK)
            squares, c = np.square(given[rows].astype(np.float64)), self.coefficients[rows]
            variance = squares @ np.square(self.inverse).T
            variance -= 2.0 * c * (squares @ (self.inverse * self.reference_row).T)
            variance += np.square(c) * (squares @ np.square(self.reference_row))[:, None]
            result[rows] = (
                error * np.sqrt(np.maximum(variance, 0.0)) / np.abs(self.reference_weights[rows])[:, None]
            )
        return result

    def intensity_error(self, weights: npt.ArrayLike, rows: FloatArray, bits: int = 14) -> FloatArray:
        r"""Return the standard error of combinations of the coefficients, `(n, n_rows)`, where weights were stored with few bits.

        The error of the weights of the event there, over the size of its weight at the reference: that of the latter is a factor of all
        of them, and changes no sign.

        Args:
            weights: The weights that were solved.
            rows: `(n_rows, n_terms)` combinations, such as monomials at points.
            bits: Bits of the mantissa of the weights.
        """
        given, result = np.asarray(weights), np.empty((len(self.coefficients), len(rows)))
        squared = np.square(rows @ self.inverse).T
        for start in range(0, len(given), _CHUNK):
            part = slice(start, start + _CHUNK)
            variance = np.square(given[part].astype(np.float64)) @ squared
            result[part] = np.sqrt(variance) / np.abs(self.reference_weights[part])[:, None]
        return result * _relative_error(bits)


def _relative_error(bits: int) -> float:
    """Return the standard error of a weight whose mantissa has so many bits, over the weight."""
    return float(2.0 ** (-bits - 1) / 3.0**0.5)


def require_reference(reference: FloatArray, largest: FloatArray, *, name: str) -> None:
    """Raise where the weight of the reference vanishes beside the other weights of an event.

    Args:
        reference: Weight of the reference, per event.
        largest: Largest absolute weight of the event.
        name: What the reference is called in the message.
    """
    vanishing = np.flatnonzero(np.abs(reference) <= _SMALL_REFERENCE * largest)
    if len(vanishing):
        n_empty = int(np.sum(largest[vanishing] == 0))
        shown = ", ".join(str(number) for number in vanishing[:_SHOWN_EVENTS])
        why = f" ({n_empty} of them have no weight at all)" if n_empty else ""
        msg = (
            f"Got {len(vanishing)} of {len(reference)} events{why} whose weight of the reference {name} is below "
            f"{_SMALL_REFERENCE:g} of their largest weight, such as number {shown}; expected a reference that covers all "
            "points. Choose another reference point, or leave these events out knowing what is lost."
        )
        raise InvalidInputError(msg)


def require_polynomial(residual: FloatArray, order: int) -> None:
    """Raise where the weights of an event are not those of one polynomial, beyond what rounding explains.

    Args:
        residual: Of each event, relative to its largest weight.
        order: Of the polynomial.
    """
    bad = np.flatnonzero(residual > _LARGEST_RESIDUAL)
    if len(bad):
        shown = ", ".join(str(number) for number in bad[:_SHOWN_EVENTS])
        msg = (
            f"Got {len(bad)} of {len(residual)} events, such as number {shown}, whose weights are no polynomial of order {order} at "
            f"these points: they are off by up to {residual.max():.2g} of the largest weight of the event; expected at most "
            f"{_LARGEST_RESIDUAL:g}. Check the values and the order of the points, and whether a higher order is needed."
        )
        raise InvalidInputError(msg)


def require_finite_weights(weights: npt.NDArray[Any]) -> None:
    """Raise where a weight of an event is NaN or infinite."""
    bad = np.zeros(len(weights), dtype=bool)
    for start in range(0, len(weights), _CHUNK):
        bad[start : start + _CHUNK] = ~np.isfinite(weights[start : start + _CHUNK]).all(axis=1)
    if bad.any():
        shown = ", ".join(str(number) for number in np.flatnonzero(bad)[:_SHOWN_EVENTS])
        msg = (
            f"Got {int(bad.sum())} of {len(weights)} events with a weight that is not a finite number, such as number {shown}; "
            "expected finite weights. Leave these events out knowing what is lost; nothing is filled in."
        )
        raise InvalidInputError(msg)
