"""Parts of the graphs that ONNX does not have itself: the error function, bits of floats, a hash."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import erf

from quasiratio.estimators.reweighter import _add_bits, add_folds, fold_of_events
from quasiratio.model_files.onnx_graph import OPSET, OnnxGraph
from quasiratio.networks import ACTIVATIONS
from quasiratio.networks.activations import activation_named, add_erf


def add_activation(name: str, graph: OnnxGraph, x: str) -> str:
    add_onnx = activation_named(name).add_onnx
    assert add_onnx is not None, "every activation of ours can be exported"
    return add_onnx(graph, x)


def session_of(graph: OnnxGraph, output: str, dtype: int) -> onnxruntime.InferenceSession:
    """Run a graph with one double-precision matrix as its input."""
    helper = onnx.helper
    graph.name_result(output, "y")
    proto = helper.make_graph(
        graph.nodes,
        "test",
        [helper.make_tensor_value_info("x", onnx.TensorProto.DOUBLE, [None, None])],
        [helper.make_tensor_value_info("y", dtype, None)],
        initializer=graph.constants,
    )
    model = helper.make_model(proto, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    return onnxruntime.InferenceSession(model.SerializeToString())


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_in_double_precision(name: str) -> None:
    graph = OnnxGraph(["x", "y"])
    session = session_of(graph, add_activation(name, graph, "x"), onnx.TensorProto.DOUBLE)
    x = np.concatenate([np.linspace(-40, 40, 4001), [0.0, -0.0, 3.0, -3.0, 1e-300, 700.0, -700.0]])[:, None]
    (y,) = session.run(None, {"x": x})
    np.testing.assert_allclose(y, ACTIVATIONS[name](torch.from_numpy(x)).numpy(), rtol=1e-13, atol=1e-13)


def test_silu_is_no_product_with_a_sigmoid() -> None:
    """That onnxruntime up to 1.20 replaces by a function it has in single precision only, and fails."""
    graph = OnnxGraph(["x", "y"])
    add_activation("silu", graph, "x")
    assert "Sigmoid" not in {node.op_type for node in graph.nodes}


def test_the_error_function_is_one_of_double_precision() -> None:
    graph = OnnxGraph(["x", "y"])
    session = session_of(graph, add_erf(graph, "x"), onnx.TensorProto.DOUBLE)
    x = np.concatenate([np.linspace(-7, 7, 20_001), [0.0, 1e-12, -1e-8, 30.0, -1e10]])[:, None]
    np.testing.assert_allclose(session.run(None, {"x": x})[0], erf(x), rtol=0, atol=1e-14)


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
SPECIAL = [
    0.0,
    -0.0,
    1e-45,
    -1e-45,
    1.1754942e-38,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    1.0,
    0.99999994,
    2.0,
]
_bits = OnnxGraph(["x", "y"])
BITS = session_of(_bits, _add_bits(_bits, "x"), onnx.TensorProto.INT64)


@given(arrays(np.float32, (50, 1), elements=FLOATS))
def test_bits_of_any_float(values: npt.NDArray[np.float32]) -> None:
    values = np.vstack([values, np.array(SPECIAL, np.float32)[:, None]])
    (bits,) = BITS.run(None, {"x": values.astype(np.float64)})
    np.testing.assert_array_equal(bits, (values + np.float32(0.0)).view(np.uint32).astype(np.int64))


def test_bits_around_every_power_of_two() -> None:
    powers = np.float32(2.0) ** np.arange(-149, 128, dtype=np.float32)
    around = np.concatenate([np.nextafter(powers, 0), powers, np.nextafter(powers, np.float32(np.inf))])
    values = np.concatenate([around, -around])[:, None]
    (bits,) = BITS.run(None, {"x": values.astype(np.float64)})
    np.testing.assert_array_equal(bits, (values + np.float32(0.0)).view(np.uint32).astype(np.int64))


@pytest.mark.parametrize(("n_features", "n_folds"), [(1, 2), (2, 3), (7, 5), (3, 64)])
def test_folds_are_those_of_the_reweighter(n_features: int, n_folds: int) -> None:
    graph = OnnxGraph(["x", "y"])
    session = session_of(graph, add_folds(graph, "x", n_features, n_folds), onnx.TensorProto.INT64)
    rng = np.random.default_rng(n_features)
    x = (rng.normal(size=(20_000, n_features)) * 10.0 ** rng.integers(-44, 38, (20_000, n_features))).astype(
        np.float32
    )
    x[:100] = 0.0
    x[100:200] *= -0.0
    (folds,) = session.run(None, {"x": x.astype(np.float64)})
    np.testing.assert_array_equal(folds, fold_of_events(x, n_folds))
    assert set(folds) == set(range(n_folds))
