"""Ratio models as ONNX operations: links, recombination, and the average of the members."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.losses import ExponentialLink, PoleLink, RatioLoss, Revert, SinhLink
from quasiratio.persistence.onnx_networks import add_networks, add_scaling
from quasiratio.ratios import DirectModel, RatioModel, SignedMixtureModel, SignResolvedModel

if TYPE_CHECKING:
    from quasiratio.persistence.onnx_graph import OnnxGraph

__all__ = ["RatioNames", "add_ratios", "add_std"]


class RatioNames(NamedTuple):
    """Names of the ratio, `(n,)`, and of the members' ratios, `(n_members, n)`, in double precision."""

    ratio: str
    members: str | None


def add_ratios(graph: OnnxGraph, features: str, model: RatioModel) -> RatioNames:
    """Add a whole model: raw features in double precision to ratios before normalisation."""
    outputs = add_networks(graph, add_scaling(graph, features, model.scaling), model.network)
    members = _add_members(graph, model, outputs, n_members=model.n_members)
    if model.n_members == 1:
        return RatioNames(_first_row(graph, members), None)
    if model.tuned_with is None:
        averaged = _add_members(graph, model, _add_average(graph, model, outputs), n_members=1)
        return RatioNames(_first_row(graph, averaged), members)
    loss = model.tuned_with
    mean = _add_loss_average(graph, loss, _add_raw(graph, loss, members))
    return RatioNames(_add_link(graph, loss, _first_row(graph, mean)), members)


def add_std(graph: OnnxGraph, members: str, n_members: int) -> str:
    """Add the standard deviation across members, `(n_members, n)` to `(n,)`."""
    mean = graph.add("ReduceMean", members, graph.axes(0), keepdims=1)
    deviation = graph.add("Sub", members, mean)
    squares = graph.add("Mul", deviation, deviation)
    total = graph.add("ReduceSum", squares, graph.axes(0), keepdims=0)
    return graph.add("Sqrt", graph.add("Div", total, float(n_members - 1)))


def _add_members(graph: OnnxGraph, model: RatioModel, outputs: str, *, n_members: int) -> str:
    """Add the ratios of each member, or of their average where `n_members` is one: `(n_members, n)`."""
    if isinstance(model, DirectModel):
        return _add_link(graph, model.loss, graph.add("Squeeze", outputs, graph.axes(-1)))
    if isinstance(model, SignResolvedModel):
        return _add_signed_ratio(graph, model, outputs)
    if isinstance(model, SignedMixtureModel):
        return _add_recombination(graph, model, outputs, n_members)
    msg = f"Got a model of the class {type(model).__qualname__}, which cannot be exported."
    raise InvalidInputError(msg)


def _add_average(graph: OnnxGraph, model: RatioModel, outputs: str) -> str:
    """Add the average of the networks of all members."""
    if isinstance(model, DirectModel):
        return _add_loss_average(graph, model.loss, outputs)
    if isinstance(model, SignResolvedModel):
        outputs = graph.add("LogSoftmax", outputs, axis=-1)
        return graph.add("ReduceMean", outputs, graph.axes(0), keepdims=1)
    n_pairs = model.network.n_networks // model.n_members
    by_member = graph.add("Reshape", outputs, graph.axes(model.n_members, n_pairs, -1, 1))
    return graph.add("ReduceMean", by_member, graph.axes(0), keepdims=0)


def _add_signed_ratio(graph: OnnxGraph, model: SignResolvedModel, logits: str) -> str:
    largest = graph.add("ReduceMax", logits, graph.axes(-1), keepdims=1)
    scale = graph.add("Exp", graph.add("Sub", logits, largest))
    target = np.array([part.sign * part.label for part in model.classes], dtype=np.float64)
    reference = np.array([part.sign * (1 - part.label) for part in model.classes], dtype=np.float64)
    return graph.add("Div", graph.add("MatMul", scale, target), graph.add("MatMul", scale, reference))


def _add_recombination(graph: OnnxGraph, model: SignedMixtureModel, outputs: str, n_members: int) -> str:
    coefficients = model.fixed_where_certain(model.coefficients.detach()).double().cpu().numpy()
    if n_members == 1:
        coefficients = coefficients.mean(axis=0, keepdims=True)
    c0, c1 = coefficients[:, :1], coefficients[:, 1:]
    by_pair = graph.add("Reshape", outputs, graph.axes(n_members, len(model.pairs), -1))
    log_ratios = {
        pair: graph.add("Gather", by_pair, graph.constant(np.array(index)), axis=1)
        for index, pair in enumerate(model.pairs)
    }
    total = ""
    for target_sign, numerator in ((+1, c1), (-1, 1.0 - c1)):
        if (+1, target_sign) not in log_ratios:
            continue
        plus = log_ratios[+1, target_sign]
        if (-1, target_sign) in log_ratios:
            minus = log_ratios[-1, target_sign]
            shift = graph.add("Min", plus, minus)
            terms = [
                graph.add("Mul", graph.add("Exp", graph.add("Sub", shift, part)), coefficient)
                for part, coefficient in ((plus, c0), (minus, 1.0 - c0))
            ]
            scaled = graph.add("Mul", graph.add("Exp", shift), numerator)
            term = graph.add("Div", scaled, graph.add("Add", *terms))
        else:
            term = graph.add("Mul", graph.add("Exp", plus), numerator)
        total = graph.add("Add", total, term) if total else term
    return total


def _add_link(graph: OnnxGraph, loss: RatioLoss, raw: str) -> str:
    """Add the map from raw outputs to ratios."""
    link = loss.link
    if isinstance(link, ExponentialLink):
        return graph.add("Exp", raw)
    if isinstance(link, SinhLink):
        return graph.add("Sub", graph.add("Exp", graph.add("Neg", raw)), graph.add("Exp", raw))
    if isinstance(link, PoleLink):
        if link.eps == 0:
            return raw
        return graph.add("Div", raw, graph.add("Sub", 1.0, graph.add("Mul", raw, link.eps**2)))
    raise _not_exportable(loss, "link")


def _add_raw(graph: OnnxGraph, loss: RatioLoss, ratio: str) -> str:
    """Add the map from ratios to raw outputs."""
    link = loss.link
    if isinstance(link, ExponentialLink):
        return graph.add("Log", ratio)
    if isinstance(link, PoleLink):
        return graph.add("Div", ratio, graph.add("Add", graph.add("Mul", ratio, link.eps**2), 1.0))
    if isinstance(link, SinhLink):
        half = graph.add("Mul", ratio, 0.5)
        root = graph.add("Sqrt", graph.add("Add", graph.add("Mul", half, half), 1.0))
        size = graph.add("Log", graph.add("Add", graph.add("Abs", half), root))
        return graph.add("Neg", graph.add("Mul", graph.add("Sign", half), size))
    raise _not_exportable(loss, "link")


def _add_loss_average(graph: OnnxGraph, loss: RatioLoss, raw: str) -> str:
    """Add the average of the members' raw outputs (first axis, which stays with length one)."""
    if type(loss).average is RatioLoss.average:
        return graph.add("ReduceMean", raw, graph.axes(0), keepdims=1)
    if type(loss).average is Revert.average:
        score = graph.add("ReduceMean", graph.add("Sigmoid", raw), graph.axes(0), keepdims=1)
        return graph.add("Log", graph.add("Div", score, graph.add("Sub", 1.0, score)))
    raise _not_exportable(loss, "average")


def _first_row(graph: OnnxGraph, rows: str) -> str:
    return graph.add("Squeeze", rows, graph.axes(0))


def _not_exportable(loss: RatioLoss, part: str) -> InvalidInputError:
    msg = (
        f"Got the loss {loss.name!r}, whose {part} is your own code and has no ONNX form; expected one of "
        f"quasiratio's. Use a loss with ExponentialLink, PoleLink or SinhLink, and the usual average."
    )
    return InvalidInputError(msg)
