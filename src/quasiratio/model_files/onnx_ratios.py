"""Ratio models as ONNX operations: links, recombination, and the average of the members."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.losses import ExponentialLink, PoleLink, RatioLoss, Revert, SinhLink
from quasiratio.model_files.onnx_networks import add_networks, add_scaling
from quasiratio.ratios import DirectModel, RatioModel, SignedMixtureModel, SignResolvedModel
from quasiratio.ratios.sign_odds import SHARPNESS, largest_log_odds
from quasiratio.ratios.signed_mixture import LEAST_NEGATIVE, SignPair

if TYPE_CHECKING:
    from quasiratio.model_files.onnx_graph import OnnxGraph

__all__ = ["RatioNames", "add_ratios", "add_std"]

FloatArray = npt.NDArray[np.float64]


class RatioNames(NamedTuple):
    """Names of the ratio, `(n,)`, and of the members' ratios, `(n_members, n)`, in double precision."""

    ratio: str
    members: str | None


def add_ratios(graph: OnnxGraph, features: str, model: RatioModel) -> RatioNames:
    """Add a whole model: raw features in double precision to ratios before normalisation."""
    outputs = add_networks(graph, add_scaling(graph, features, model.scaling), model.network)
    if isinstance(model, SignResolvedModel):
        outputs = _add_bounded(graph, model, outputs)
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


def _add_capped_odds(graph: OnnxGraph, log_odds: str, floor: float) -> str:
    """Add the cap of `ratios.sign_odds`, with softplus in a form that does not overflow."""
    gap = graph.add("Mul", graph.add("Sub", largest_log_odds(floor), log_odds), SHARPNESS)
    tail = graph.add("Log", graph.add("Add", graph.add("Exp", graph.add("Neg", graph.add("Abs", gap))), 1.0))
    softplus = graph.add("Add", graph.add("Relu", gap), tail)
    return graph.add("Sub", largest_log_odds(floor), graph.add("Div", softplus, SHARPNESS))


def _add_bounded(graph: OnnxGraph, model: SignResolvedModel, logits: str) -> str:
    """Add the caps of the sign odds: new logits of the negative classes."""
    columns = {}
    for label, floor in enumerate(model.floors):
        pair = [index for index, part in enumerate(model.classes) if part.label == label]
        if floor is None or len(pair) < 2:
            continue
        plus, minus = (graph.add("Gather", logits, graph.axes(index), axis=-1) for index in pair)
        capped = _add_capped_odds(graph, graph.add("Sub", minus, plus), floor)
        columns[pair[1]] = graph.add("Add", plus, capped)
    if not columns:
        return logits
    every = [
        columns.get(index) or graph.add("Gather", logits, graph.axes(index), axis=-1)
        for index in range(len(model.classes))
    ]
    return graph.add("Concat", *every, axis=-1)


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
    parts = {
        target_sign: _add_part(graph, log_ratios, target_sign, c0, model.floors.reference)
        for target_sign in (+1, -1)
        if (+1, target_sign) in log_ratios
    }
    total = graph.add("Mul", parts[+1], c1)
    if -1 not in parts:
        return total
    if model.floors.target is None:
        return graph.add("Add", total, graph.add("Mul", parts[-1], 1.0 - c1))
    quotient = graph.add("Div", parts[-1], parts[+1])
    log_odds = graph.add("Add", graph.add("Log", quotient), _log_odds_of(c1))
    odds = graph.add("Exp", _add_capped_odds(graph, log_odds, model.floors.target))
    return graph.add("Mul", total, graph.add("Sub", 1.0, odds))


def _add_part(
    graph: OnnxGraph, log_ratios: dict[SignPair, str], target_sign: int, c0: FloatArray, floor: float | None
) -> str:
    """Add the ratio of one part of the target to the whole reference."""
    plus = log_ratios[+1, target_sign]
    if (-1, target_sign) not in log_ratios:
        return graph.add("Exp", plus)
    minus = log_ratios[-1, target_sign]
    if floor is not None:
        log_odds = graph.add("Add", graph.add("Sub", plus, minus), _log_odds_of(c0))
        odds = graph.add("Exp", _add_capped_odds(graph, log_odds, floor))
        return graph.add("Div", graph.add("Exp", plus), graph.add("Mul", graph.add("Sub", 1.0, odds), c0))
    shift = graph.add("Min", plus, minus)
    terms = [
        graph.add("Mul", graph.add("Exp", graph.add("Sub", shift, part)), coefficient)
        for part, coefficient in ((plus, c0), (minus, 1.0 - c0))
    ]
    return graph.add("Div", graph.add("Exp", shift), graph.add("Add", *terms))


def _log_odds_of(c: FloatArray) -> FloatArray:
    """Return the logarithm of the coefficient of the negative part over that of the positive one."""
    return np.asarray(np.log(np.maximum(c - 1.0, LEAST_NEGATIVE) / c))


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
