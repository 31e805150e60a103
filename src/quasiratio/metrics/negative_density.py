"""When is a density negative? The one test of it: a sum of weights below zero by several of its errors.

Events are ordered by something that tells where negative weights are frequent, the odds of a sign or the output of a
network that runs away, and the sum is taken over tails of that order: small ones see a small region, large ones a shallow
one. Isolated events of the wrong sign are not significant.
"""

from __future__ import annotations

from typing import Any

__all__ = ["NEGATIVE_SIGMAS", "TAIL_FRACTIONS", "is_negative", "tail_lengths"]

TAIL_FRACTIONS = (0.01, 0.05, 0.2)
"""Tails that are looked at, as shares of the events."""
NEGATIVE_SIGMAS = 4.0
"""Five missed cross-entropy on the Signed toy with 1e4 validation events per class."""


def tail_lengths(n_events: int) -> list[int]:
    """Return the number of events in each tail.

    Example:
        >>> tail_lengths(250)
        [2, 12, 50]
    """
    return [max(1, int(fraction * n_events)) for fraction in TAIL_FRACTIONS]


def is_negative(total: Any, error: Any, sigmas: float = NEGATIVE_SIGMAS) -> Any:  # noqa: ANN401 - numbers or tensors
    """Tell whether a sum of weights is negative beyond doubt.

    Args:
        total: The sum, or sums of several.
        error: Its standard error, the root of the sum of squares.
        sigmas: How many errors it must be below zero.

    Example:
        >>> is_negative(-10.0, 2.0), is_negative(-10.0, 4.0)
        (True, False)
    """
    return total < -sigmas * error
