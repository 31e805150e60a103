"""Maximum-likelihood classifier loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from torch import expm1

from quasiratio.losses.links import ExponentialLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Mlc"]


@dataclass(frozen=True)
class Mlc(RatioLoss):
    r"""Maximum-likelihood classifier, $\ell_0 = r - 1$, $\ell_1 = -\ln r$, $r = e^z$.

    Its smallest risk is minus the Kullback-Leibler divergence of the target from the reference
    (D'Agnolo and Wulzer, arXiv:1806.02350). Positive ratios only.

    Example:
        >>> import torch
        >>> float(Mlc().reference(torch.tensor(0.0)))
        0.0
    """

    name: ClassVar[str] = "mlc"
    link: ClassVar[ExponentialLink] = ExponentialLink()
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 0.0), (0.0, 1.0))

    def reference(self, raw: Tensor) -> Tensor:
        """Return $e^z - 1$."""
        return expm1(raw)

    def target(self, raw: Tensor) -> Tensor:
        """Return $-z$."""
        return -raw
