r"""Coefficient functions of a density that is never negative, $\lambda(x \mid \theta) = |L(x)^T (1, \theta)|^2$."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import model_validator
from torch import Tensor

from quasiratio.model_files.document import refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.ratios.coefficient_model import (
    AffineTerms,
    CoefficientModel,
    CoefficientModelDocument,
    StoredModel,
    add_columns,
    add_mean,
)
from quasiratio.ratios.sign_odds import capped_log_odds

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = ["SquareDocument", "SquareModel", "square_terms"]


class SquareDocument(CoefficientModelDocument):
    """`SquareModel`."""

    kind: Literal["positive"]
    fixed_first: bool

    @model_validator(mode="after")
    def _check_square(self) -> Self:
        is_square = self.n_rows * (self.n_rows + 1) == 2 * self.n_terms and self.n_functions == self.n_terms
        refuse_if(not is_square, "no square has these terms")
        return self

    @property
    def n_rows(self) -> int:
        """Rows of the triangular matrix."""
        return round((math.sqrt(8 * self.n_terms + 1) - 1) / 2)

    @property
    def n_outputs(self) -> int:
        """One for each learned entry, and the sign."""
        return self.n_functions - self.fixed_first + self.has_signs

    def constants(self) -> dict[str, int]:
        """Units of the rows, mean and spread of each term."""
        return {"units": self.n_rows, "center": self.n_functions, "spread": self.n_functions}


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
    document_type: ClassVar[type[CoefficientModelDocument]] = SquareDocument
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

    @classmethod
    def from_document(cls, document: SquareDocument, stored: StoredModel) -> Self:
        """Make the model again."""
        return cls(
            *stored[:-1], **stored.constants, fixed_first=document.fixed_first, has_signs=document.has_signs
        )

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


def square_terms(size: int) -> list[tuple[int, int]]:
    """Return, for each term of second order in our order, its place in the symmetric matrix over (1, theta).

    Example:
        >>> square_terms(3)
        [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    """
    return [(i, j) for i in range(size) for j in range(i, size)]
