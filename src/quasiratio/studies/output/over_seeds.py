"""One number out of several seeds: the median, and the spread in which differences are counted."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median, stdev

from quasiratio.studies.study import Result

__all__ = ["over_seeds"]


def over_seeds(name: str, values: Iterable[float], published: float | None = None) -> Result | None:
    """Return the median over seeds with their standard deviation, or `None` where there is no value.

    The median, since a fit that failed on one seed must show in the spread and not in the number. Values that
    are NaN or infinite are left out, and do not count as seeds.

    Args:
        name: What the number is.
        values: One per seed.
        published: The paper's number, if it has one.

    Example:
        >>> result = over_seeds("toy / RoSMM / chi2", [1.0, 1.2, 2.6], published=4.22)
        >>> result.value, round(result.spread, 3), round(result.pull_of_published, 2)
        (1.2, 0.872, -3.46)
    """
    finite = [float(value) for value in values if math.isfinite(value)]
    if not finite:
        return None
    spread = stdev(finite) if len(finite) > 1 else None
    return Result(name, median(finite), spread, len(finite), published)
