"""Risks over a grid of mixture coefficients, with the sub-ratios of a fitted RoSMM held fixed."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from quasiratio.errors import QuasiratioWarning
from quasiratio.estimators import SignedMixtureRatio
from quasiratio.estimators.signed_mixture import coefficient_risk
from quasiratio.estimators.training_data import stacked_samples
from quasiratio.losses import Mse, Pare, RatioLoss
from quasiratio.sample import WeightedSample
from quasiratio.training import Pool, normalized_per_group

__all__ = ["risk_grid", "risk_grids"]

FloatArray = npt.NDArray[np.float64]
SignPair = tuple[int, int]
SamplePair = tuple[WeightedSample, WeightedSample]

_COLUMNS_AT_ONCE = 8
_LOSSES: dict[str, RatioLoss] = {"MSE": Mse(), "PARE": Pare()}


class _Events(NamedTuple):
    training: SamplePair
    validation: SamplePair
    test: SamplePair


def risk_grids(arguments: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fit a RoSMM and yield, by loss, its coefficients and the risks over the grid, as plain numbers."""
    case, seed = arguments["case"], arguments["seed"]
    events = _smeft_events(arguments) if case == "smeft" else _toy_events(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", QuasiratioWarning)
        fitted = SignedMixtureRatio(random_state=seed, verbose=False, **arguments["training"])
        fitted.fit_samples(*events.training, validation=events.validation)
    test, labels = stacked_samples(*events.test)
    sub_ratios, weights = fitted.predict_sub_ratios(test), np.array(test.weights)
    with np.errstate(divide="ignore"):  # far from the target a sub-ratio can be zero, and then adds nothing
        log_ratios = {pair: np.log(ratio) for pair, ratio in sub_ratios.items()}
    n_points = arguments["n_points"]
    lower, upper = arguments["c0"]
    c0 = np.linspace(lower, upper, n_points) if upper > lower else np.array([lower])
    lower, upper = arguments["c1"]
    c1 = np.linspace(lower, upper, n_points if len(c0) > 1 else 4 * n_points)
    for name, loss in _LOSSES.items():
        risks = risk_grid(log_ratios, labels, weights, c0, c1, loss)
        yield (
            name,
            {
                "nominal": fitted.coefficients_[0].tolist(),
                "c0": c0.tolist(),
                "c1": c1.tolist(),
                "risks": risks.tolist(),
            },
        )


def risk_grid(
    log_ratios: Mapping[SignPair, FloatArray],
    labels: npt.NDArray[np.int64],
    weights: FloatArray,
    c0: FloatArray,
    c1: FloatArray,
    loss: RatioLoss,
) -> FloatArray:
    r"""Return the risk at each pair of coefficients, `(n_c0, n_c1)`.

    Args:
        log_ratios: Sub-log-ratios of the events by the signs of their parts.
        labels: 0 for the reference, 1 for the target.
        weights: Signed weights; both classes are scaled to the same sum.
        c0: Coefficients of the reference.
        c1: Coefficients of the target.
        loss: The loss whose risk is wanted.

    Example:
        >>> zero = np.zeros(4)
        >>> labels, weights = np.array([0, 0, 1, 1]), np.ones(4)
        >>> risk_grid({(1, 1): zero}, labels, weights, np.ones(1), np.array([1.0, 2.0]), Mse()).round(4)
        array([[0.25  , 0.2778]])
    """
    is_target = torch.from_numpy(labels == 1)
    scaled = normalized_per_group(torch.from_numpy(weights)[None], is_target)
    pool = Pool(None, is_target.double(), scaled)
    tensors = {pair: torch.from_numpy(values)[None] for pair, values in log_ratios.items()}
    rows = []
    for of_reference in c0:
        blocks = []
        for first in range(0, len(c1), _COLUMNS_AT_ONCE):
            of_target = torch.from_numpy(c1[first : first + _COLUMNS_AT_ONCE])
            pairs = torch.stack([torch.full_like(of_target, float(of_reference)), of_target], dim=1)
            blocks.append(coefficient_risk(tensors, pool, pairs, loss))
        rows.append(torch.cat(blocks))
    return np.asarray(torch.stack(rows).double().numpy())


def _toy_events(arguments: Mapping[str, Any]) -> _Events:
    from quasiratio.distributions import signed_gaussian_case  # noqa: PLC0415

    case, rng = signed_gaussian_case(arguments["case"]), np.random.default_rng(arguments["seed"])
    return _Events(*(case.samples(n, rng) for n in arguments["sizes"]))


def _smeft_events(arguments: Mapping[str, Any]) -> _Events:
    from quasiratio.generators.gg_hh import generate  # noqa: PLC0415

    sizes = arguments["sizes"]
    samples = [
        generate(name, sum(sizes), arguments["seed"], parton_level=True).to_sample()
        for name in ("sm", "linear")
    ]
    bounds = np.cumsum([0, *sizes])
    stretches = [slice(first, last) for first, last in itertools.pairwise(bounds)]
    reference, target = samples
    return _Events(*((reference[part], target[part]) for part in stretches))
