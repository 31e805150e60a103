r"""Coefficient functions $\rho_k(x) = d\sigma_k(x)/d\sigma_\mathrm{ref}(x)$ of a density that is a polynomial of parameters.

Networks learn some functions $f_j$; the coefficient functions are affine in them, $\rho = A f + b$. Terms that are constant
on the reference, and linear relations between terms (such as $\sum_k P_k(\theta_\mathrm{ref})\,\rho_k = 1$), are in $A$ and $b$,
and hold exactly. Three ways to make the $f_j$ of network outputs:

* `RegressionModel`: $f_j = \mu_j + \sigma_j\,o_j$.
* `SignClassesModel`: a softmax over the reference and both signs of each function,
  $f_j = (\pi_{j+} - \pi_{j-}) / (a_j\,\pi_0)$.
* `SquareModel`: $\lambda(x \mid \theta) = |L(x)^T (1, \theta)|^2$ with $L$ lower triangular, which is never negative, and
  general for the second order: every nonnegative quadratic polynomial has this form.

Where the reference has weights of both signs, one more output is the logarithm of the odds of a negative weight (a class of its
own for the softmax), capped where the reference density is positive (see `sign_odds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.networks.stored_networks import (
    Arrays,
    stored_network,
    stored_scaling,
)
from quasiratio.ratios.coefficient_model import (
    AffineTerms,
    CoefficientModel,
    CoefficientModelDocument,
    TargetClass,
    add_columns,
    add_mean,
)
from quasiratio.ratios.sign_odds import add_capped_log_odds, capped_log_odds

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["RegressionModel", "SignClassesModel", "SquareModel", "square_terms", "stored_coefficient_model"]


class RegressionModel(CoefficientModel):
    r"""Functions that are outputs of a network, $f_j = \mu_j + \sigma_j\,o_j$.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member, with one output per function, and one more for the sign where there is any.
        n_members: Number of members.
        terms: How coefficient functions follow from the learned functions.
        floor: Smallest sign asymmetry of the reference; `None` for any.
        center: Mean of each function.
        spread: Its standard deviation.
        has_signs: Whether the last output is the sign of the reference weight.
    """

    center: Tensor
    spread: Tensor

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        terms: AffineTerms,
        floor: float | None,
        *,
        center: npt.NDArray[np.float64],
        spread: npt.NDArray[np.float64],
        has_signs: bool,
    ) -> None:
        super().__init__(scaling, network, n_members, terms, floor)
        self.has_signs = has_signs
        self.register_buffer("center", torch.from_numpy(np.array(center, dtype=np.float64, order="C")))
        self.register_buffer("spread", torch.from_numpy(np.array(spread, dtype=np.float64, order="C")))

    def training_outputs(self, outputs: Tensor) -> Tensor:
        """Return standardised functions, and the capped log-odds behind them."""
        if not self.has_signs:
            return outputs
        return torch.cat([outputs[..., :-1], capped_log_odds(outputs[..., -1:], self.floor)], dim=-1)

    def log_odds(self, outputs: Tensor) -> Tensor | None:
        """Return the last output, capped."""
        return capped_log_odds(outputs[..., -1], self.floor) if self.has_signs else None

    def member_functions(self, outputs: Tensor) -> Tensor:
        """Undo the standardisation."""
        return self.center + self.spread * outputs[..., : len(self.center)]

    def combined_functions(self, outputs: Tensor) -> Tensor:
        """Average the functions."""
        return self.member_functions(outputs.mean(dim=0))

    def document_fields(self) -> dict[str, Any]:
        """Return the kind."""
        return {"kind": "regression", "has_signs": self.has_signs}

    def add_onnx_functions(self, graph: OnnxGraph, outputs: str, *, average: bool) -> str:
        """Undo the standardisation."""
        outputs = add_columns(graph, outputs, range(len(self.center)))
        if average:
            outputs = add_mean(graph, outputs)
        return graph.add(
            "Add", graph.add("Mul", outputs, self.spread.cpu().numpy()), self.center.cpu().numpy()
        )


class SignClassesModel(CoefficientModel):
    r"""Functions from a softmax over the reference and the signs of each function.

    $f_j = (\pi_{j+} - \pi_{j-}) / (a_j\,(\pi_{0+} - \pi_{0-}))$.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member, with one output per class.
        n_members: Number of members.
        terms: How coefficient functions follow from the learned functions.
        floor: Smallest sign asymmetry of the reference; `None` for any.
        classes: The classes that carry weight; the first is the positive reference.
        scales: $a_j$ of each function.
    """

    scales: Tensor

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        terms: AffineTerms,
        floor: float | None,
        *,
        classes: Sequence[TargetClass],
        scales: npt.NDArray[np.float64],
    ) -> None:
        super().__init__(scaling, network, n_members, terms, floor)
        self.classes = tuple(classes)
        self.has_signs = TargetClass(-1, -1) in self.classes
        self.register_buffer("scales", torch.from_numpy(np.array(scales, dtype=np.float64, order="C")))

    def training_outputs(self, outputs: Tensor) -> Tensor:
        """Return the logits, with the odds of a negative reference capped."""
        if not self.has_signs or self.floor is None:
            return outputs
        columns = list(outputs.unbind(dim=-1))
        columns[1] = columns[0] + capped_log_odds(columns[1] - columns[0], self.floor)
        return torch.stack(columns, dim=-1)

    def log_odds(self, outputs: Tensor) -> Tensor | None:
        """Return the difference of the two logits of the reference, capped."""
        return capped_log_odds(outputs[..., 1] - outputs[..., 0], self.floor) if self.has_signs else None

    def member_functions(self, outputs: Tensor) -> Tensor:
        """Recombine the classes of each function, relative to the positive reference."""
        return self._functions(self.training_outputs(outputs))

    def _functions(self, logits: Tensor) -> Tensor:
        relative = (logits - logits[..., :1]).exp()
        reference = 1.0 - relative[..., 1] if self.has_signs else torch.ones_like(relative[..., 0])
        functions = [torch.zeros_like(reference) for _ in range(len(self.scales))]
        for index, (function, sign) in enumerate(self.classes):
            if function >= 0:
                functions[function] = functions[function] + sign * relative[..., index]
        return torch.stack(functions, dim=-1) / (self.scales * reference[..., None])

    def combined_functions(self, outputs: Tensor) -> Tensor:
        """Average log-probabilities, in which the cross-entropy is convex."""
        return self._functions(torch.log_softmax(self.training_outputs(outputs), dim=-1).mean(dim=0))

    def document_fields(self) -> dict[str, Any]:
        """Return the kind and the classes."""
        classes = [[part.function, part.sign] for part in self.classes]
        return {"kind": "sign-resolved", "has_signs": self.has_signs, "classes": classes}

    def add_onnx_functions(self, graph: OnnxGraph, outputs: str, *, average: bool) -> str:
        """Add the cap, the average of log-probabilities and the recombination."""
        n_classes, n_functions = len(self.classes), len(self.scales)
        if self.has_signs and self.floor is not None:
            plus, minus = (add_columns(graph, outputs, [index]) for index in (0, 1))
            capped = graph.add(
                "Add", plus, add_capped_log_odds(graph, graph.add("Sub", minus, plus), self.floor)
            )
            rest = add_columns(graph, outputs, range(2, n_classes))
            outputs = graph.add("Concat", plus, capped, rest, axis=-1)
        if average:
            outputs = add_mean(graph, graph.add("LogSoftmax", outputs, axis=-1))
        relative = graph.add("Exp", graph.add("Sub", outputs, add_columns(graph, outputs, [0])))
        signs, reference = np.zeros((n_classes, n_functions)), np.zeros((n_classes, 1))
        for index, (function, sign) in enumerate(self.classes):
            if function < 0:
                reference[index] = sign
            else:
                signs[index, function] = sign / float(self.scales[function])
        return graph.add(
            "Div", graph.add("MatMul", relative, signs), graph.add("MatMul", relative, reference)
        )


class SquareModel(CoefficientModel):
    r"""Coefficients of $\lambda = |L^T (1, \theta)|^2 = (1, \theta)\,L L^T (1, \theta)^T$, never negative.

    The outputs are the entries of $L$, row by row, in units in which the mean of every diagonal entry of $L L^T$ is one. The
    first entry is not learned where the first term is constant.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member, with one output per learned entry of $L$, and one more for the sign.
        n_members: Number of members.
        terms: How the terms follow from those of the square: the identity, or the change from parameters that are counted from
            another reference than zero.
        floor: Smallest sign asymmetry of the reference; `None` for any.
        units: Square root of the mean diagonal entry, $1 + N$ of them.
        center: Mean of each coefficient, for the standardised loss.
        spread: Its standard deviation; one for constant terms.
        fixed_first: Whether the first entry of $L$ is one (in its unit).
        has_signs: Whether the last output is the sign of the reference weight.
    """

    units: Tensor
    center: Tensor
    spread: Tensor
    can_shift: ClassVar[bool] = False

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        terms: AffineTerms,
        floor: float | None,
        *,
        units: npt.NDArray[np.float64],
        center: npt.NDArray[np.float64],
        spread: npt.NDArray[np.float64],
        fixed_first: bool,
        has_signs: bool,
    ) -> None:
        super().__init__(scaling, network, n_members, terms, floor)
        self.fixed_first, self.has_signs = fixed_first, has_signs
        for name, values in (("units", units), ("center", center), ("spread", spread)):
            self.register_buffer(name, torch.from_numpy(np.array(values, dtype=np.float64, order="C")))

    @property
    def size(self) -> int:
        """Rows of $L$."""
        return len(self.units)

    def training_outputs(self, outputs: Tensor) -> Tensor:
        """Return standardised coefficients, and the capped log-odds behind them."""
        standardised = ((self.member_functions(outputs) - self.center) / self.spread).to(outputs.dtype)
        if not self.has_signs:
            return standardised
        return torch.cat([standardised, capped_log_odds(outputs[..., -1:], self.floor)], dim=-1)

    def log_odds(self, outputs: Tensor) -> Tensor | None:
        """Return the last output, capped."""
        return capped_log_odds(outputs[..., -1], self.floor) if self.has_signs else None

    def member_functions(self, outputs: Tensor) -> Tensor:
        r"""Return the coefficients in the order of the terms: $M_{00};\ 2M_{0a};\ M_{aa}, 2M_{ab}$, row by row."""
        entries = outputs[..., :-1] if self.has_signs else outputs
        if self.fixed_first:
            entries = torch.cat([torch.ones_like(entries[..., :1]), entries], dim=-1)
        rows = []
        start = 0
        for length in range(1, self.size + 1):
            rows.append(entries[..., start : start + length])
            start += length
        columns = []
        for i, j in square_terms(self.size):
            shared = min(i, j) + 1
            product = (rows[i][..., :shared] * rows[j][..., :shared]).sum(dim=-1)
            unit = float(self.units[i] * self.units[j])
            columns.append(product * (unit if i == j else 2.0 * unit))
        return torch.stack(columns, dim=-1)

    def combined_functions(self, outputs: Tensor) -> Tensor:
        """Average the coefficients, in which the risk is convex; a mean of squares is not negative."""
        return self.member_functions(outputs).mean(dim=0)

    def document_fields(self) -> dict[str, Any]:
        """Return the kind, and whether the first entry is fixed."""
        return {"kind": "positive", "has_signs": self.has_signs, "fixed_first": self.fixed_first}

    def add_onnx_functions(self, graph: OnnxGraph, outputs: str, *, average: bool) -> str:
        """Add the products of entries that make up each coefficient."""
        n_entries = self.size * (self.size + 1) // 2 - self.fixed_first
        entries = add_columns(graph, outputs, range(n_entries))
        if self.fixed_first:
            one = graph.add("Add", graph.add("Mul", add_columns(graph, outputs, [0]), 0.0), 1.0)
            entries = graph.add("Concat", one, entries, axis=-1)
        left, right, factors = [], [], []
        for term, (i, j) in enumerate(square_terms(self.size)):
            unit = float(self.units[i] * self.units[j]) * (1.0 if i == j else 2.0)
            for column in range(min(i, j) + 1):
                left.append(i * (i + 1) // 2 + column)
                right.append(j * (j + 1) // 2 + column)
                factors.append((term, unit))
        weights = np.zeros((len(left), self.n_terms))
        for row, (term, unit) in enumerate(factors):
            weights[row, term] = unit
        products = graph.add("Mul", add_columns(graph, entries, left), add_columns(graph, entries, right))
        functions = graph.add("MatMul", products, weights)
        return add_mean(graph, functions) if average else functions


def stored_coefficient_model(
    document: CoefficientModelDocument, tensors: Arrays, prefix: str, *, device: torch.device
) -> CoefficientModel:
    """Make a model from its document and its tensors, whose names and shapes were checked."""
    scaling = stored_scaling(document.scaling)
    network = stored_network(document.network, tensors, f"{prefix}network.")
    terms = AffineTerms(tensors[f"{prefix}matrix"], tensors[f"{prefix}offset"])
    common = (scaling, network, document.n_members, terms, document.floor)
    model: CoefficientModel
    if document.kind == "sign-resolved":
        classes = [TargetClass(function, sign) for function, sign in document.classes or ()]
        model = SignClassesModel(*common, classes=classes, scales=tensors[f"{prefix}scales"])
    else:
        center, spread = tensors[f"{prefix}center"], tensors[f"{prefix}spread"]
        if document.kind == "regression":
            model = RegressionModel(*common, center=center, spread=spread, has_signs=document.has_signs)
        else:
            model = SquareModel(
                *common,
                units=tensors[f"{prefix}units"],
                center=center,
                spread=spread,
                fixed_first=document.fixed_first,
                has_signs=document.has_signs,
            )
    return model.to(device).eval()


def square_terms(size: int) -> list[tuple[int, int]]:
    """Return, for each term of second order in our order, its place in the symmetric matrix over (1, theta).

    Example:
        >>> square_terms(3)
        [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    return [(i, j) for i in range(size) for j in range(i, size)]
