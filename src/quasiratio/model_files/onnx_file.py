"""ONNX files: inputs, outputs and metadata around a graph, checked and written whole."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from quasiratio.atomic_files import write_file
from quasiratio.errors import InvalidInputError
from quasiratio.model_files.onnx_graph import OPSET, OnnxGraph, onnx_package

__all__ = ["add_inputs", "checked_onnx_path", "input_names", "write_onnx"]

_IR_VERSION = 8  # of the same release as the opset
_BATCH = "batch"


def checked_onnx_path(path: str | os.PathLike[str], *, overwrite: bool) -> Path:
    """Return where a graph can be written, or raise; a file that is there is replaced with `overwrite` only."""
    target = Path(path)
    if os.path.isdir(target) or not target.name or "\0" in str(target):  # noqa: PTH112
        msg = f"Got {str(target)!r} for an ONNX graph; expected the name of a file, such as model.onnx."
        raise InvalidInputError(msg)
    if not os.path.isdir(target.parent):  # noqa: PTH112
        msg = f"Got {str(target)!r} for an ONNX graph, but {str(target.parent)!r} does not exist; create it first."
        raise InvalidInputError(msg)
    if os.path.lexists(target) and not overwrite:
        msg = f"Got {str(target)!r} for an ONNX graph, which exists; expected a new file."
        raise InvalidInputError(msg, advice="Choose another, or replace it with `overwrite=True`.")
    return target


def input_names(features: Sequence[str], outputs: Sequence[str], *, separate: bool) -> list[str]:
    """Return the names of the inputs, which must be usable and not those of outputs."""
    if not separate:
        return ["features"]
    bad = [name for name in features if not name or name in outputs]
    if bad or len(set(features)) < len(features):
        msg = (
            f"Got the features {list(features)} as inputs of their own; expected different names, none of them empty or "
            f"one of {', '.join(outputs)}. Use separate_inputs=False."
        )
        raise InvalidInputError(msg)
    return list(features)


def add_inputs(graph: OnnxGraph, inputs: Sequence[str]) -> str:
    """Add the conversion of all inputs to one `(n, d)` matrix in double precision."""
    joined = inputs[0] if len(inputs) == 1 else graph.add("Concat", *inputs, axis=1)
    return graph.cast(joined, np.float64)


def write_onnx(
    path: Path,
    graph: OnnxGraph,
    inputs: Mapping[str, int],
    outputs: Mapping[str, str],
    *,
    metadata: Mapping[str, str],
    description: str,
    rows: Mapping[str, str] | None = None,
    double_inputs: Collection[str] = (),
) -> None:
    """Write a graph, checked by ONNX itself.

    Args:
        path: The file.
        graph: Nodes and constants.
        inputs: Names, and numbers of columns.
        outputs: Names, and the double-precision values they stand for.
        metadata: Stored with the graph.
        description: What the graph does, in a sentence.
        rows: Names of the first axis of inputs that need not have one row per event.
        double_inputs: Names of the inputs in double precision; others, and outputs, are in single precision.
    """
    onnx = onnx_package()
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    types = dict.fromkeys(double_inputs, onnx.TensorProto.DOUBLE)
    for name, value in outputs.items():
        graph.name_result(graph.cast(value, np.float32), name)
    proto = helper.make_graph(
        graph.nodes,
        "quasiratio",
        [
            helper.make_tensor_value_info(
                name, types.get(name, float32), [(rows or {}).get(name, _BATCH), width]
            )
            for name, width in inputs.items()
        ],
        [helper.make_tensor_value_info(name, float32, [_BATCH]) for name in outputs],
        initializer=graph.constants,
    )
    model = helper.make_model(
        proto,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=_IR_VERSION,
        producer_name="quasiratio",
        producer_version=metadata["quasiratio_version"],
        doc_string=description,
    )
    helper.set_model_props(model, dict(metadata))
    onnx.checker.check_model(model, full_check=True)
    write_file(path, model.SerializeToString())
