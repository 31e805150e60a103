"""Least-squares importance fitting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from quasiratio.losses.links import PoleLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Lsif"]


@dataclass(frozen=True)
class Lsif(RatioLoss):
    r"""Least-squares importance fitting, $\ell_0 = r^2/2$, $\ell_1 = -r$, $r = z$ (Kanamori et al. 2009).

    Its risk is $\frac12 \int q_0 (r - r^*)^2$ plus a constant: a distance wherever $q_0 > 0$.

    Example:
        >>> Lsif().ratio_range
        (-inf, inf)
    """

    name: ClassVar[str] = "lsif"
    link: ClassVar[PoleLink] = PoleLink(0.0)
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 0.0),)

    def reference(self, raw: Tensor) -> Tensor:
        """Return $r^2/2$."""
        return 0.5 * raw.square()

    def target(self, raw: Tensor) -> Tensor:
        """Return $-r$."""
        return -raw
