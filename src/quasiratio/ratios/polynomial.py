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

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from quasiratio.columns import FeatureMatrix
from quasiratio.model_files.document import Count, Document, TensorSpec, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.networks.stored_networks import (
    Arrays,
    NetworkDocument,
    ScalingDocument,
    add_networks,
    add_scaling,
    network_document,
    network_tensors,
    scaling_document,
    stored_network,
    stored_scaling,
)
from quasiratio.ratios.double_precision import DoubleNetworks
from quasiratio.ratios.sign_odds import Asymmetry, add_capped_log_odds, capped_log_odds

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = [
    "AffineTerms",
    "CoefficientModel",
    "CoefficientModelDocument",
    "CoefficientNames",
    "CoefficientPredictions",
    "RegressionModel",
    "SignClassesModel",
    "SquareModel",
    "TargetClass",
    "TrainingView",
    "stored_coefficient_model",
]

_CHUNK_ROWS = 2**15


class AffineTerms(NamedTuple):
    """How the coefficient functions follow from the learned ones, `matrix @ f + offset`."""

    matrix: npt.NDArray[np.float64]
    offset: npt.NDArray[np.float64]


class CoefficientPredictions(NamedTuple):
    """Coefficient functions of each event, `(n, n_terms)`, and of each member, `(n_members, n, n_terms)`."""

    coefficients: npt.NDArray[np.float64]
    members: npt.NDArray[np.float64]


class TargetClass(NamedTuple):
    """A class of the softmax: the number of a learned function, or -1 for the reference, and a sign."""

    function: int
    sign: int


class CoefficientNames(NamedTuple):
    """Names of coefficient functions in a graph, `(n, n_terms)`, and of the members', `(n_members, n, n_terms)`."""

    coefficients: str
    members: str | None


class CoefficientModelDocument(Document):
    """A coefficient model in `model.json`, all but its tensors."""

    kind: Literal["regression", "sign-resolved", "positive"]
    n_members: Count
    n_terms: Count
    n_functions: Count
    scaling: ScalingDocument
    network: NetworkDocument
    floor: Asymmetry | None
    has_signs: bool
    classes: list[Annotated[list[int], Field(min_length=2, max_length=2)]] | None = None
    fixed_first: bool = False

    @model_validator(mode="after")
    def _check(self) -> Self:
        refuse_if(
            self.network.n_inputs != self.scaling.n_inputs,
            "the networks and the scaling have different numbers of features",
        )
        refuse_if(
            self.network.n_networks != self.n_members, "the number of networks is not that of the members"
        )
        refuse_if(
            (self.kind == "sign-resolved") != (self.classes is not None),
            "a softmax has classes, and nothing else",
        )
        if self.classes is None:
            n_outputs = self.n_functions - self.fixed_first + self.has_signs
            refuse_if(self.kind == "regression" and self.fixed_first, "a regression has no fixed entry")
        else:
            n_outputs = len(self.classes)
            reference = [[-1, 1], [-1, -1]] if self.has_signs else [[-1, 1]]
            refuse_if(self.classes[: len(reference)] != reference, "the reference is not the first class")
            others = self.classes[len(reference) :]
            is_known = all(0 <= function < self.n_functions and sign in (1, -1) for function, sign in others)
            refuse_if(not is_known, "a class is none of the functions")
        if self.kind == "positive":
            rows = self.n_rows
            refuse_if(
                rows * (rows + 1) != 2 * self.n_terms or self.n_functions != self.n_terms,
                "no square has these terms",
            )
        refuse_if(self.network.n_outputs != n_outputs, "the networks have the wrong number of outputs")
        return self

    @property
    def n_rows(self) -> int:
        """Rows of the triangular matrix."""
        return round((math.sqrt(8 * self.n_terms + 1) - 1) / 2)

    def tensors(self, prefix: str) -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        yield from self.network.tensors(f"{prefix}network.")
        shapes: dict[str, tuple[int, ...]] = {
            "matrix": (self.n_terms, self.n_functions),
            "offset": (self.n_terms,),
        }
        own = {
            "regression": ("center", "spread"),
            "sign-resolved": ("scales",),
            "positive": ("units", "center", "spread"),
        }
        for name in own[self.kind]:
            shapes[name] = (self.n_rows if name == "units" else self.n_functions,)
        for name, shape in shapes.items():
            yield f"{prefix}{name}", TensorSpec("float64", shape)


class CoefficientModel(nn.Module, ABC):
    """Raw features in, coefficient functions out, for `n_members` members at once.

    Args:
        scaling: Turns raw features into network inputs.
        network: One network per member.
        n_members: Number of members.
        terms: How coefficient functions follow from the learned functions.
        floor: Smallest sign asymmetry of the reference; `None` for any.
    """

    matrix: Tensor
    offset: Tensor

    def __init__(
        self,
        scaling: FeatureScaling,
        network: StackedMlp,
        n_members: int,
        terms: AffineTerms,
        floor: float | None,
    ) -> None:
        super().__init__()
        self.scaling, self.network, self.n_members = scaling, network, n_members
        self.floor = floor
        self.register_buffer("matrix", torch.from_numpy(np.array(terms.matrix, dtype=np.float64, order="C")))
        self.register_buffer("offset", torch.from_numpy(np.array(terms.offset, dtype=np.float64, order="C")))

    @property
    def n_terms(self) -> int:
        """Number of coefficient functions."""
        return len(self.offset)

    @abstractmethod
    def training_outputs(self, outputs: Tensor) -> Tensor:
        """Turn network outputs into what the objective compares with the events."""

    @abstractmethod
    def member_functions(self, outputs: Tensor) -> Tensor:
        """Turn network outputs into the learned functions of each member, `(n_members, n, n_functions)`."""

    @abstractmethod
    def combined_functions(self, outputs: Tensor) -> Tensor:
        """Return the learned functions of the whole ensemble, `(n, n_functions)`, averaged where the risk is convex."""

    def log_odds(self, outputs: Tensor) -> Tensor | None:  # noqa: ARG002
        """Return the capped logarithm of the odds of a negative reference weight, where the model has such odds."""
        return None

    def shift(self, shift: npt.NDArray[np.float64]) -> None:
        """Add constants to the coefficient functions."""
        self.offset += torch.from_numpy(shift).to(self.offset)

    @torch.inference_mode()
    def predict(self, features: FeatureMatrix, *, members: bool = False) -> CoefficientPredictions:
        """Predict in float64 and in chunks of constant memory.

        Args:
            features: `(n, d)` raw features.
            members: Whether to fill in the functions of the single members as well.
        """
        n_events = len(features)
        coefficients = np.empty((n_events, self.n_terms))
        of_members = np.empty((self.n_members if members else 0, n_events, self.n_terms))
        networks = DoubleNetworks(self.scaling, self.network)
        size = math.ceil(_CHUNK_ROWS / self.n_members)
        for start in range(0, n_events, size):
            rows = slice(start, start + size)
            outputs = networks.outputs(self.scaling.taken(features[rows], self.offset.device))
            coefficients[rows] = self._completed(self.combined_functions(outputs)).cpu().numpy()
            if members:
                of_members[:, rows] = self._completed(self.member_functions(outputs)).cpu().numpy()
        return CoefficientPredictions(coefficients, of_members)

    @torch.inference_mode()
    def reference_asymmetry(self, features: FeatureMatrix) -> npt.NDArray[np.float64] | None:
        """Return the estimated sign asymmetry of the reference, the mean of the members', or `None` where there is none."""
        networks = DoubleNetworks(self.scaling, self.network)
        parts = []
        for start in range(0, len(features), _CHUNK_ROWS):
            chunk = self.scaling.taken(features[start : start + _CHUNK_ROWS], self.offset.device)
            log_odds = self.log_odds(networks.outputs(chunk))
            if log_odds is None:
                return None
            parts.append(torch.tanh(-0.5 * log_odds).mean(dim=0).cpu().numpy())
        return np.concatenate(parts) if parts else np.empty(0)

    def _completed(self, functions: Tensor) -> Tensor:
        return functions @ self.matrix.T + self.offset

    @abstractmethod
    def document_fields(self) -> dict[str, Any]:
        """Return what the document has beside the fields of every model, `kind` among it."""

    def document(self) -> CoefficientModelDocument:
        """Describe the trained model, all but its tensors."""
        return CoefficientModelDocument(
            n_members=self.n_members,
            n_terms=self.n_terms,
            n_functions=self.matrix.shape[1],
            scaling=scaling_document(self.scaling),
            network=network_document(self.network),
            floor=self.floor,
            **self.document_fields(),
        )

    def tensors(self, prefix: str) -> Arrays:
        """Return weights and constants by name."""
        constants = {
            f"{prefix}{name}": values.cpu().numpy() for name, values in self.named_buffers(recurse=False)
        }
        return {**network_tensors(self.network, f"{prefix}network."), **constants}

    @abstractmethod
    def add_onnx_functions(self, graph: OnnxGraph, outputs: str, *, average: bool) -> str:
        """Add the learned functions to a graph: of each member, or of the ensemble (with a first axis of one)."""

    def add_onnx(self, graph: OnnxGraph, features: str) -> CoefficientNames:
        """Add the whole model to a graph: raw features in double precision to coefficient functions."""
        outputs = add_networks(graph, add_scaling(graph, features, self.scaling), self.network)
        matrix, offset = self.matrix.cpu().numpy(), self.offset.cpu().numpy()

        def completed(functions: str) -> str:
            return graph.add("Add", graph.add("MatMul", functions, np.ascontiguousarray(matrix.T)), offset)

        combined = completed(self.add_onnx_functions(graph, outputs, average=True))
        members = None
        if self.n_members > 1:
            members = completed(self.add_onnx_functions(graph, outputs, average=False))
        return CoefficientNames(graph.add("Squeeze", combined, graph.axes(0)), members)


def _add_columns(graph: OnnxGraph, values: str, columns: Sequence[int]) -> str:
    return graph.add("Gather", values, graph.axes(*columns), axis=-1)


def _add_mean(graph: OnnxGraph, values: str) -> str:
    return graph.add("ReduceMean", values, graph.axes(0), keepdims=1)


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
        outputs = _add_columns(graph, outputs, range(len(self.center)))
        if average:
            outputs = _add_mean(graph, outputs)
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
            plus, minus = (_add_columns(graph, outputs, [index]) for index in (0, 1))
            capped = graph.add(
                "Add", plus, add_capped_log_odds(graph, graph.add("Sub", minus, plus), self.floor)
            )
            rest = _add_columns(graph, outputs, range(2, n_classes))
            outputs = graph.add("Concat", plus, capped, rest, axis=-1)
        if average:
            outputs = _add_mean(graph, graph.add("LogSoftmax", outputs, axis=-1))
        relative = graph.add("Exp", graph.add("Sub", outputs, _add_columns(graph, outputs, [0])))
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
        terms: The identity: all terms are functions of $L$.
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
        entries = _add_columns(graph, outputs, range(n_entries))
        if self.fixed_first:
            one = graph.add("Add", graph.add("Mul", _add_columns(graph, outputs, [0]), 0.0), 1.0)
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
        products = graph.add("Mul", _add_columns(graph, entries, left), _add_columns(graph, entries, right))
        functions = graph.add("MatMul", products, weights)
        return _add_mean(graph, functions) if average else functions


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


class TrainingView(nn.Module):
    """A coefficient model seen as a map from scaled features to what its objective takes."""

    def __init__(self, model: CoefficientModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs of shape `(n_members, n, ...)`."""
        return self.model.training_outputs(self.model.network(inputs))
