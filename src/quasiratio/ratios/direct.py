"""One network, one loss: the ratio through the loss's link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import model_validator

from quasiratio.losses.loss_document import LossDocument, loss_document
from quasiratio.ratios.ratio_model import (
    RatioModel,
    RatioModelDocument,
    RatioValues,
    StoredModel,
    usable_loss,
)

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.losses import RatioLoss
    from quasiratio.model_files.onnx_graph import OnnxGraph
    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["DirectModel", "DirectModelDocument"]

_STEP = 1e-3


class DirectModelDocument(RatioModelDocument):
    """One network and the link of one loss."""

    kind: Literal["direct"]
    loss: LossDocument

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.require_networks(1, 1)
        return self


class DirectModel(RatioModel):
    r"""$r(x) = \mathrm{link}(z(x))$ with one raw output $z$ per network."""

    document_type: ClassVar[type[RatioModelDocument]] = DirectModelDocument

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

    def document_fields(self) -> dict[str, Any]:
        """Return the loss."""
        return {"kind": "direct", "loss": loss_document(self.loss)}

    @classmethod
    def from_document(cls, document: DirectModelDocument, stored: StoredModel) -> Self:
        """Make the model again."""
        loss = usable_loss(document.loss, stored.losses)
        return cls(stored.scaling, stored.network, document.n_members, loss)

    def add_onnx_members(self, graph: OnnxGraph, outputs: str, *, n_members: int) -> str:  # noqa: ARG002
        """Add the link to a graph."""
        return self.loss.add_onnx_ratio(graph, graph.add("Squeeze", outputs, graph.axes(-1)))

    def add_onnx_average(self, graph: OnnxGraph, outputs: str) -> str:
        """Add the average where the loss is convex to a graph."""
        return self.loss.checked_onnx_average(graph, outputs)
