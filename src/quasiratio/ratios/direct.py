"""One network, one loss: the ratio through the loss's link."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quasiratio.ratios.ratio_model import RatioModel, RatioValues

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.losses import RatioLoss
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["DirectModel"]


class DirectModel(RatioModel):
    r"""$r(x) = \mathrm{link}(z(x))$ with one raw output $z$ per network."""

    def __init__(self, scaling: FeatureScaling, network: StackedMlp, n_members: int, loss: RatioLoss) -> None:
        super().__init__(scaling, network, n_members)
        self.loss = loss

    def member_values(self, outputs: Tensor) -> RatioValues:
        """Apply the link to each member."""
        return RatioValues(self.loss.link.ratio(outputs[..., 0]), None)

    def average(self, outputs: Tensor) -> Tensor:
        """Average where the loss is convex."""
        return self.loss.average(outputs[..., 0])[None, :, None]
