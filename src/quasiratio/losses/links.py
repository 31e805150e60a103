r"""Links: how a network's raw output $z$ becomes a ratio $r$, and back.

A loss *has a* link. Three are enough for all seven losses:

| link | $r(z)$ | $z(r)$ | range of $r$ |
|---|---|---|---|
| `ExponentialLink` | $e^z$ | $\ln r$ | $(0, \infty)$ |
| `PoleLink(eps)` | $z / (1 - \epsilon^2 z)$ | $r / (1 + \epsilon^2 r)$ | all but $-1/\epsilon^2$ |
| `SinhLink` | $-2 \sinh z$ | $-\mathrm{arsinh}(r/2)$ | all reals |

A link with `add_onnx_ratio` and `add_onnx_raw`, as these have, can be exported; one of your own needs them for that only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = ["ExponentialLink", "Link", "PoleLink", "SinhLink"]


class Link(Protocol):
    """A map between raw network outputs and ratios, both ways."""

    @property
    def ratio_range(self) -> tuple[float, float]:
        """Smallest open interval that holds every ratio a continuous network can learn."""
        ...

    def ratio(self, raw: Tensor) -> Tensor:
        """Turn raw outputs into ratios."""
        ...

    def raw(self, ratio: Tensor) -> Tensor:
        """Turn ratios into the raw outputs that give them."""
        ...


@dataclass(frozen=True)
class ExponentialLink:
    r"""$r = e^z$: only positive ratios.

    Example:
        >>> ExponentialLink().ratio(torch.tensor([0.0]))
        tensor([1.])
    """

    ratio_range: tuple[float, float] = (0.0, math.inf)

    def ratio(self, raw: Tensor) -> Tensor:
        """Return $e^z$."""
        return raw.exp()

    def raw(self, ratio: Tensor) -> Tensor:
        r"""Return $\ln r$."""
        return ratio.log()

    def add_onnx_ratio(self, graph: OnnxGraph, raw: str) -> str:
        """Add $e^z$ to a graph."""
        return graph.add("Exp", raw)

    def add_onnx_raw(self, graph: OnnxGraph, ratio: str) -> str:
        r"""Add $\ln r$ to a graph."""
        return graph.add("Log", ratio)


@dataclass(frozen=True)
class PoleLink:
    r"""$r = z / (1 - \epsilon^2 z)$, with a pole at $r = -1/\epsilon^2$.

    $\epsilon = 0$ is the identity (LSIF) and $\epsilon = 1$ the ratio trick $s/(1-s)$ of MSE.

    Example:
        >>> PoleLink(1.0).ratio(torch.tensor([0.5]))
        tensor([1.])
        >>> PoleLink(0.5).pole
        -4.0
    """

    eps: float = 0.0

    @property
    def pole(self) -> float:
        r"""The ratio $-1/\epsilon^2$ that no finite output can express."""
        return -math.inf if self.eps == 0 else -1.0 / self.eps**2

    @property
    def ratio_range(self) -> tuple[float, float]:
        """Ratios above the pole: where the reference density is positive only these can be learned."""
        return (self.pole, math.inf)

    def ratio(self, raw: Tensor) -> Tensor:
        r"""Return $z / (1 - \epsilon^2 z)$."""
        return raw / (1.0 - self.eps**2 * raw)

    def raw(self, ratio: Tensor) -> Tensor:
        r"""Return $r / (1 + \epsilon^2 r)$."""
        return ratio / (1.0 + self.eps**2 * ratio)

    def add_onnx_ratio(self, graph: OnnxGraph, raw: str) -> str:
        """Add the map to ratios to a graph."""
        if self.eps == 0:
            return raw
        return graph.add("Div", raw, graph.add("Sub", 1.0, graph.add("Mul", raw, self.eps**2)))

    def add_onnx_raw(self, graph: OnnxGraph, ratio: str) -> str:
        """Add the map from ratios to a graph."""
        return graph.add("Div", ratio, graph.add("Add", graph.add("Mul", ratio, self.eps**2), 1.0))


@dataclass(frozen=True)
class SinhLink:
    r"""$r = -2 \sinh z$: every real ratio, as REVERT needs with $s = \sigma(z)$.

    Example:
        >>> SinhLink().raw(SinhLink().ratio(torch.tensor([0.5])))
        tensor([0.5000])
    """

    ratio_range: tuple[float, float] = (-math.inf, math.inf)

    def ratio(self, raw: Tensor) -> Tensor:
        r"""Return $-2 \sinh z$."""
        return -2.0 * torch.sinh(raw)

    def raw(self, ratio: Tensor) -> Tensor:
        r"""Return $-\mathrm{arsinh}(r/2)$."""
        return -torch.asinh(0.5 * ratio)

    def add_onnx_ratio(self, graph: OnnxGraph, raw: str) -> str:
        r"""Add $e^{-z} - e^z$ to a graph."""
        return graph.add("Sub", graph.add("Exp", graph.add("Neg", raw)), graph.add("Exp", raw))

    def add_onnx_raw(self, graph: OnnxGraph, ratio: str) -> str:
        r"""Add $-\mathrm{arsinh}(r/2)$ to a graph, by its logarithm."""
        half = graph.add("Mul", ratio, 0.5)
        root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", half, half), 1.0))
        size = graph.add("Log", graph.add("Add", graph.add("Abs", half), root))
        return graph.add("Neg", graph.add("Mul", graph.add("Sign", half), size))
