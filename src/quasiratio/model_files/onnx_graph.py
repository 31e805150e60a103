"""A small writer of ONNX graphs: operations are calls, values are names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import MissingExtraError

if TYPE_CHECKING:
    from types import ModuleType

    import onnx

__all__ = ["OPSET", "OnnxGraph", "RatioNames", "add_std", "onnx_package"]

OPSET = 18
"""Of early 2023; graphs were run in onnxruntime 1.15 to 1.31."""


def onnx_package() -> ModuleType:
    """Return the package `onnx`, or say how to install it."""
    try:
        import onnx  # noqa: PLC0415 - optional
    except ImportError as error:
        msg = (
            "ONNX export needs the package onnx, which is not installed; run pip install 'quasiratio[onnx]'."
        )
        raise MissingExtraError(msg) from error
    return onnx


class OnnxGraph:
    """Nodes and constants, collected in order.

    Numbers among the inputs of an operation become double-precision constants.

    Args:
        reserved: Names of inputs and outputs, which nothing inside may have.

    Example:
        >>> graph = OnnxGraph(["x"])
        >>> graph.add("Mul", graph.add("Exp", "x"), 2.0)
        'Mul_3'
        >>> [node.op_type for node in graph.nodes]
        ['Exp', 'Mul']
    """

    def __init__(self, reserved: Iterable[str]) -> None:
        self._onnx = onnx_package()
        self._taken = set(reserved)
        self._count = 0
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def add(self, operation: str, *inputs: str | float | npt.NDArray[Any], **attributes: Any) -> str:  # noqa: ANN401
        """Add an operation and return the name of its result."""
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        result = self._new_name(operation)
        self.nodes.append(self._onnx.helper.make_node(operation, names, [result], name=result, **attributes))
        return result

    def constant(self, value: float | npt.NDArray[Any]) -> str:
        """Add a constant; floats are stored in double precision, arrays as they are."""
        array = np.asarray(value, dtype=np.float64) if isinstance(value, float | int) else np.asarray(value)
        name = self._new_name("constant")
        self.constants.append(self._onnx.numpy_helper.from_array(np.array(array, order="C"), name))
        return name

    def cast(self, value: str, dtype: npt.DTypeLike) -> str:
        """Convert to another type of number."""
        return self.add("Cast", value, to=self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def double(self, array: npt.NDArray[np.float32]) -> str:
        """Add a float32 constant and its conversion to double, which halves the file."""
        return self.cast(self.constant(array), np.float64)

    def axes(self, *numbers: int) -> str:
        """Add a list of axes, shapes or indices."""
        return self.constant(np.array(numbers, dtype=np.int64))

    def name_result(self, value: str, name: str) -> None:
        """Give a value the name of an output."""
        self.nodes.append(self._onnx.helper.make_node("Identity", [value], [name], name=f"output {name}"))

    def _new_name(self, stem: str) -> str:
        while True:
            self._count += 1
            name = f"{stem}_{self._count}"
            if name not in self._taken:
                return name


class RatioNames(NamedTuple):
    """Names of a result, `(n,)`, and of the members' results, `(n_members, n)`, in double precision."""

    ratio: str
    members: str | None

    def scaled(self, graph: OnnxGraph, factor: float) -> RatioNames:
        """Multiply both by a number."""
        members = None if self.members is None else graph.add("Mul", self.members, factor)
        return RatioNames(graph.add("Mul", self.ratio, factor), members)


def add_std(graph: OnnxGraph, members: str, n_members: int) -> str:
    """Add the standard deviation across members, `(n_members, n)` to `(n,)`."""
    mean = graph.add("ReduceMean", members, graph.axes(0), keepdims=1)
    deviation = graph.add("Sub", members, mean)
    squares = graph.add("Mul", deviation, deviation)
    total = graph.add("ReduceSum", squares, graph.axes(0), keepdims=0)
    return graph.add("Sqrt", graph.add("Div", total, float(n_members - 1)))
