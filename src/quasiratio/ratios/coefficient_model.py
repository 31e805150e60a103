r"""What every model of coefficient functions has: learned functions, their completion, members, files and graphs.

Networks learn some functions $f_j$; the coefficient functions are affine in them, $\rho = A f + b$. Terms that are constant on the
reference, and linear relations between terms, are in $A$ and $b$, and hold exactly.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from pydantic import model_validator
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
)
from quasiratio.ratios.double_precision import DoubleNetworks
from quasiratio.ratios.sign_odds import Asymmetry

if TYPE_CHECKING:
    import numpy.typing as npt

    from quasiratio.networks import FeatureScaling, StackedMlp

__all__ = [
    "AffineTerms",
    "CoefficientModel",
    "CoefficientModelDocument",
    "CoefficientNames",
    "CoefficientPredictions",
    "StoredModel",
    "TargetClass",
    "TrainingView",
    "add_columns",
    "add_mean",
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
    """What the documents of all coefficient models have in `model.json`; each adds its `kind` and its own."""

    n_members: Count
    n_terms: Count
    n_functions: Count
    scaling: ScalingDocument
    network: NetworkDocument
    floor: Asymmetry | None
    has_signs: bool

    @model_validator(mode="after")
    def _check_network(self) -> Self:
        refuse_if(
            self.network.n_inputs != self.scaling.n_inputs,
            "the networks and the scaling have different numbers of features",
        )
        refuse_if(
            self.network.n_networks != self.n_members, "the number of networks is not that of the members"
        )
        refuse_if(self.network.n_outputs != self.n_outputs, "the networks have the wrong number of outputs")
        return self

    @property
    def n_outputs(self) -> int:
        """Outputs of each network."""
        raise NotImplementedError

    def constants(self) -> dict[str, int]:
        """Return name and length of the constants that the model adds to matrix and offset."""
        raise NotImplementedError

    def tensors(self, prefix: str) -> Iterator[tuple[str, TensorSpec]]:
        """Return names, types and shapes of all tensors."""
        yield from self.network.tensors(f"{prefix}network.")
        yield f"{prefix}matrix", TensorSpec("float64", (self.n_terms, self.n_functions))
        yield f"{prefix}offset", TensorSpec("float64", (self.n_terms,))
        for name, length in self.constants().items():
            yield f"{prefix}{name}", TensorSpec("float64", (length,))


class StoredModel(NamedTuple):
    """What every model is made of again; `constants` are those of its document."""

    scaling: FeatureScaling
    network: StackedMlp
    n_members: int
    terms: AffineTerms
    floor: float | None
    constants: dict[str, Any]


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
    document_type: ClassVar[type[CoefficientModelDocument]]
    can_shift: ClassVar[bool] = True
    """Whether constants may be added to the functions; a sum of squares would be one no more."""

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
        with self.network.threads(n_events):
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

    @classmethod
    @abstractmethod
    def from_document(cls, document: Any, stored: StoredModel) -> Self:  # noqa: ANN401 - of `document_type`
        """Make the model again."""

    def document(self) -> CoefficientModelDocument:
        """Describe the trained model, all but its tensors."""
        return self.document_type(
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


def add_columns(graph: OnnxGraph, values: str, columns: Sequence[int]) -> str:
    """Add a choice of columns, of the last axis, to a graph."""
    return graph.add("Gather", values, graph.axes(*columns), axis=-1)


def add_mean(graph: OnnxGraph, values: str) -> str:
    """Add the mean over members, which keeps its axis, to a graph."""
    return graph.add("ReduceMean", values, graph.axes(0), keepdims=1)


class TrainingView(nn.Module):
    """A coefficient model seen as a map from scaled features to what its objective takes."""

    def __init__(self, model: CoefficientModel) -> None:
        super().__init__()
        self.model = model

    def forward(self, inputs: Tensor) -> Tensor:
        """Return outputs of shape `(n_members, n, ...)`."""
        return self.model.training_outputs(self.model.network(inputs))
