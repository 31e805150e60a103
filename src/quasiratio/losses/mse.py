"""Mean squared error of an unconstrained score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from quasiratio.losses.links import PoleLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Mse"]


@dataclass(frozen=True)
class Mse(RatioLoss):
    r"""Squared error, $\ell_0 = s^2$, $\ell_1 = (1-s)^2$ with $s = z$ (no sigmoid), $r = s/(1-s)$.

    Ratios near the pole $r = -1$ need unbounded scores; the risk is unbounded where $q_0 + q_1 < 0$.

    Example:
        >>> Mse().link.pole
        -1.0
    """

    name: ClassVar[str] = "mse"
    link: ClassVar[PoleLink] = PoleLink(1.0)
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 1.0),)

    def reference(self, raw: Tensor) -> Tensor:
        """Return $s^2$."""
        return raw.square()

    def target(self, raw: Tensor) -> Tensor:
        """Return $(1-s)^2$."""
        return (1.0 - raw).square()
