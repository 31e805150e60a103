r"""What a loss is, and how to write a new one.

What to use when: `revert` or `lsif` for a signed ratio over a positive reference; `pare` for the same with
an adjustable pole; `bce`, `mlc` or `sqr` only where both densities are positive; `mse` where the ratio
stays above $-1$. Where the reference density itself may be negative, none of them is safe: use
`SignedMixtureRatio` or `SignResolvedRatio`.

A new loss is one small class: two per-event losses, a link, and the combinations of densities that must be
positive for its risk to be bounded. An instance works wherever a loss name does. This one minimises
$-q_0 \cos\theta - q_1 \sin\theta$, so that $\theta$ is the angle of the vector $(q_0, q_1)$ and
$r = \tan\theta$; it is bounded for weights of any sign:

```python
from dataclasses import dataclass
from quasiratio.losses import RatioLoss

class TangentLink:
    ratio_range = (-math.inf, math.inf)
    def ratio(self, raw): return torch.tan(raw)
    def raw(self, ratio): return torch.atan(ratio)

@dataclass(frozen=True)
class Angle(RatioLoss):
    name, link, requires_positive = "angle", TangentLink(), ()
    def reference(self, raw): return -torch.cos(raw)
    def target(self, raw): return -torch.sin(raw)

qr.DirectRatio(loss=Angle()).fit(X, y, sample_weight=w)
```
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import torch

from quasiratio.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt
    from torch import Tensor

    from quasiratio.losses.links import Link
    from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = ["RatioLoss"]


class RatioLoss(ABC):
    r"""A per-event loss whose population optimum is the ratio $r = q_1/q_0$, through its link.

    The risk $\int q_0\,\ell_0(z) + q_1\,\ell_1(z)$ at one point $x$ is bounded below exactly where every
    combination $a_0 q_0 + a_1 q_1$ of `requires_positive` is positive. Estimators read it to warn, and
    tests to know where the best constant prediction is $\sum w_1 / \sum w_0$.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Short name, as users write it."""

    @property
    @abstractmethod
    def link(self) -> Link:
        """How raw outputs become ratios."""

    @property
    @abstractmethod
    def requires_positive(self) -> tuple[tuple[float, float], ...]:
        r"""Pairs $(a_0, a_1)$ for which $a_0 q_0 + a_1 q_1 > 0$ must hold for a bounded risk."""

    @abstractmethod
    def reference(self, raw: Tensor) -> Tensor:
        """Loss of a reference event (`y = 0`) with raw output `raw`."""

    @abstractmethod
    def target(self, raw: Tensor) -> Tensor:
        """Loss of a target event (`y = 1`) with raw output `raw`."""

    def per_event(self, raw: Tensor, label: Tensor) -> Tensor:
        """Loss of each event; labels are 0 (reference) or 1 (target)."""
        return torch.where(label > 0.5, self.target(raw), self.reference(raw))

    def average(self, raw: Tensor) -> Tensor:
        """Average the members' raw outputs (first axis) where the risk is convex: in `raw` itself.

        By Jensen's inequality the risk of the average is then never above the members' average risk.
        """
        return raw.mean(dim=0)

    def resolved(self, first_estimate: npt.ArrayLike) -> RatioLoss:  # noqa: ARG002
        """Return the loss with its parameters chosen from a first estimate of the ratio; most have none."""
        return self

    @property
    def ratio_range(self) -> tuple[float, float]:
        """Open interval of ratios that a network with this loss can learn."""
        return self.link.ratio_range

    @property
    def expresses_negative_ratios(self) -> bool:
        """Whether any negative ratio is in range."""
        return self.ratio_range[0] < 0

    def is_bounded(self, q_reference: float, q_target: float) -> bool:
        """Whether the risk at a point with these (signed) densities is bounded below."""
        return all(a0 * q_reference + a1 * q_target > 0 for a0, a1 in self.requires_positive)

    def add_onnx_ratio(self, graph: OnnxGraph, raw: str) -> str:
        """Add the map from raw outputs to ratios to a graph."""
        return self._onnx_form("add_onnx_ratio")(graph, raw)

    def add_onnx_raw(self, graph: OnnxGraph, ratio: str) -> str:
        """Add the map from ratios to raw outputs to a graph."""
        return self._onnx_form("add_onnx_raw")(graph, ratio)

    def add_onnx_average(self, graph: OnnxGraph, raw: str) -> str:
        """Add the average of the members' raw outputs (first axis, which stays with length one) to a graph.

        Whoever overrides `average` overrides this as well, if it is to be exported.
        """
        return graph.add("ReduceMean", raw, graph.axes(0), keepdims=1)

    def checked_onnx_average(self, graph: OnnxGraph, raw: str) -> str:
        """Add the average, or raise where `average` was overridden without an ONNX form."""
        for kind in type(self).__mro__:
            if "add_onnx_average" in vars(kind):
                return self.add_onnx_average(graph, raw)
            if "average" in vars(kind):
                break
        raise self._not_exportable("average")  # noqa: EM101 - no message

    def _onnx_form(self, name: str) -> Callable[[OnnxGraph, str], str]:
        form: Callable[[OnnxGraph, str], str] | None = getattr(self.link, name, None)
        if form is None:
            raise self._not_exportable("link")  # noqa: EM101 - no message
        return form

    def _not_exportable(self, part: str) -> InvalidInputError:
        msg = (
            f"Got the loss {self.name!r}, whose {part} is your own code and has no ONNX form; expected one of "
            f"quasiratio's. Use a loss with ExponentialLink, PoleLink or SinhLink, and the usual average, or give yours "
            "an ONNX form (see `losses.links`)."
        )
        return InvalidInputError(msg)
