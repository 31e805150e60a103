"""Binary cross-entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch.nn.functional import softplus

from quasiratio.losses.links import ExponentialLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Bce"]


@dataclass(frozen=True)
class Bce(RatioLoss):
    r"""Binary cross-entropy, $\ell_0 = \ln(1 + e^z)$, $\ell_1 = \ln(1 + e^{-z})$, $r = e^z$.

    The ordinary classifier with the ratio trick. It cannot output a negative ratio, and its risk is
    unbounded below wherever either density is negative.

    Example:
        >>> Bce().ratio_range
        (0.0, inf)
        >>> Bce().is_bounded(q_reference=1.0, q_target=-0.1)
        False
    """

    name: ClassVar[str] = "bce"
    link: ClassVar[ExponentialLink] = ExponentialLink()
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 0.0), (0.0, 1.0))

    def reference(self, raw: Tensor) -> Tensor:
        r"""Return $\ln(1 + e^z)$."""
        return softplus(raw)

    def target(self, raw: Tensor) -> Tensor:
        r"""Return $\ln(1 + e^{-z})$."""
        return softplus(-raw)

    def per_event(self, raw: Tensor, label: Tensor) -> Tensor:
        r"""Return both branches at once: $\ln(1 + e^z) - y z$."""
        return softplus(raw) - label * raw
