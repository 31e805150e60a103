"""The REVERT loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from torch.nn.functional import softplus

from quasiratio.losses.links import SinhLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from torch import Tensor

    from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = ["Revert"]


@dataclass(frozen=True)
class Revert(RatioLoss):
    r"""REVERT, $\ell_0 = -\ln s - \ln(1-s)$, $\ell_1 = s$ with $s = \sigma(z)$ (arXiv:2512.19913).

    At the optimum $r = 1/s - 1/(1-s) = -2 \sinh z$, any real number. The target enters only through the
    bounded score $s$, so negative target densities do no harm; the risk is unbounded where $q_0 < 0$.

    Example:
        >>> Revert().is_bounded(q_reference=1.0, q_target=-50.0)
        True
    """

    name: ClassVar[str] = "revert"
    link: ClassVar[SinhLink] = SinhLink()
    requires_positive: ClassVar[tuple[tuple[float, float], ...]] = ((1.0, 0.0),)

    def reference(self, raw: Tensor) -> Tensor:
        r"""Return $-\ln \sigma(z) - \ln \sigma(-z)$."""
        return softplus(raw) + softplus(-raw)

    def target(self, raw: Tensor) -> Tensor:
        r"""Return $\sigma(z)$."""
        return torch.sigmoid(raw)

    def average(self, raw: Tensor) -> Tensor:
        r"""Average the scores $s = \sigma(z)$: in these, not in $z$, the risk is convex."""
        return torch.logit(torch.sigmoid(raw.double()).mean(dim=0)).to(raw.dtype)

    def add_onnx_average(self, graph: OnnxGraph, raw: str) -> str:
        """Add the average of the scores to a graph."""
        score = graph.add("ReduceMean", graph.add("Sigmoid", raw), graph.axes(0), keepdims=1)
        return graph.add("Log", graph.add("Div", score, graph.add("Sub", 1.0, score)))
