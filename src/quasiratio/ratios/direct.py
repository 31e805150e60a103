"""One network, one loss: the ratio through the loss's link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quasiratio.ratios.ratio_model import RatioModel, RatioValues

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.losses import RatioLoss
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["DirectModel"]

_STEP = 1e-3


class DirectModel(RatioModel):
    r"""$r(x) = \mathrm{link}(z(x))$ with one raw output $z$ per network."""

    def __init__(self, scaling: FeatureScaling, network: StackedMlp, n_members: int, loss: RatioLoss) -> None:
        super().__init__(scaling, network, n_members)
        self.loss = loss

    def member_values(self, outputs: Tensor) -> RatioValues:
        """Apply the link to each member."""
        return RatioValues(self.loss.link.ratio(outputs[..., 0]), None)

    def sensitivity(self, outputs: Tensor) -> Tensor:
        r"""Return $|dr/dz|\,(1 + |z|)$ by a finite difference, which any link allows."""
        raw = outputs[..., 0]
        scale = 1.0 + raw.abs()
        moved: Tensor = self.loss.link.ratio(raw + _STEP * scale) - self.loss.link.ratio(raw)
        return moved.abs() / _STEP

    def average(self, outputs: Tensor) -> Tensor:
        """Average where the loss is convex."""
        return self.loss.average(outputs[..., 0])[None, :, None]
