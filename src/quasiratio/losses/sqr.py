"""Square-root loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from quasiratio.losses.links import ExponentialLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Sqr"]


@dataclass(frozen=True)
class Sqr(RatioLoss):
    r"""Square-root loss, $\ell_0 = \sqrt r$, $\ell_1 = 1/\sqrt r$, $r = e^z$.

    Positive ratios only; the risk is unbounded where either density is negative.

    Example:
        >>> Sqr().expresses_negative_ratios
        False
    """

    name: ClassVar[str] = "sqr"
    link: ClassVar[ExponentialLink] = ExponentialLink()
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 0.0), (0.0, 1.0))

    def reference(self, raw: Tensor) -> Tensor:
        """Return $e^{z/2}$."""
        return (0.5 * raw).exp()

    def target(self, raw: Tensor) -> Tensor:
        """Return $e^{-z/2}$."""
        return (-0.5 * raw).exp()
