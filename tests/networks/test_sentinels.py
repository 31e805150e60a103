"""Numbers that stand for missing values without being declared: which are recognised, and what networks get."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from quasiratio.errors import FeatureWarning
from quasiratio.networks import (
    FeatureScaling,
    recognised_angles,
    recognised_sentinels,
    refuse_degrees,
    warn_of_degrees,
)
from quasiratio.networks.sentinels import isolated_value

N_EVENTS = 5000
RNG = np.random.default_rng(0)
SCORE = RNG.normal(2.0, 1.0, N_EVENTS)
MOMENTUM = 20.0 + RNG.lognormal(3.0, 1.0, N_EVENTS)
ANGLE = RNG.uniform(-np.pi, np.pi, N_EVENTS)
IS_GONE = RNG.random(N_EVENTS) < 0.1


def gone(values: npt.NDArray[np.float64], number: float) -> npt.NDArray[np.float64]:
    return np.where(IS_GONE, number, values)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (gone(SCORE, -999.0), -999.0),
        (gone(SCORE, 9999.0), 9999.0),
        (gone(MOMENTUM, -999.0), -999.0),  # nearer than the largest momentum, farther than their bulk is wide
        (gone(ANGLE, -10.0), -10.0),
        (gone(1.7e9 + SCORE, -999.0), -999.0),
        (np.where(np.arange(N_EVENTS) < 10, -999.0, SCORE), -999.0),
        (np.where(np.arange(N_EVENTS) < 9, -999.0, SCORE), None),  # too few to be sure
        (gone(MOMENTUM, 0.0), None),  # a number as others are
        (gone(SCORE, 2.0), None),  # inside
        (
            gone(1.7e9 + SCORE, 1.7e9 - 30.0),
            None,
        ),  # float32, which models compare in, does not tell it from others
        (1e-300 * gone(MOMENTUM, -999.0), None),
        (IS_GONE.astype(float), None),
        (RNG.poisson(2.0, N_EVENTS).astype(float), None),
        (np.full(N_EVENTS, -999.0), None),
        (SCORE, None),
        (np.empty(0), None),
    ],
)
def test_far_values_of_many_events_are_recognised(
    values: npt.NDArray[np.float64], expected: float | None
) -> None:
    assert isolated_value(values) == expected


def test_declared_columns_are_left_alone() -> None:
    features = np.column_stack([gone(SCORE, -999.0), gone(SCORE, -99.0)])
    assert recognised_sentinels(features) == {0: -999.0, 1: -99.0}
    assert recognised_sentinels(features, {0: -5.0}) == {1: -99.0}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_there_keeps_its_width_and_its_logarithm(dtype: type) -> None:
    """With -999 among the numbers the score had a width of 0.003, and no momentum a logarithm."""
    features: npt.NDArray[Any] = np.column_stack([gone(SCORE, -999.0), gone(MOMENTUM, -999.0)]).astype(dtype)
    scaling = FeatureScaling.from_data(features, fill=recognised_sentinels(features))
    declared = FeatureScaling.from_data(features, fill={0: -999.0, 1: -999.0})
    scaled = scaling(torch.from_numpy(features))
    torch.testing.assert_close(scaled, declared(torch.from_numpy(features)), rtol=0, atol=0)
    assert scaling.uses_log.tolist() == [False, True]
    assert scaled[~IS_GONE, :2].std(dim=0).tolist() == pytest.approx([1.0, 1.0], abs=0.01)
    assert scaled[:, 2].tolist() == (~IS_GONE).tolist()
    assert scaling.fills == {0: -999.0, 1: -999.0}
    assert [one.tolist() for one in scaling.beyond_edges(torch.from_numpy(features))] == [[0, 0], [0, 0]]


@pytest.mark.parametrize("n_far", [1, 5])
@pytest.mark.parametrize("far", [-999.0, 1e6])
def test_a_few_far_values_do_not_hide_the_others(n_far: int, far: float) -> None:
    values = np.where(np.arange(N_EVENTS) < n_far, far, SCORE).astype(np.float32)[:, None]
    scaled = FeatureScaling.from_data(values)(torch.from_numpy(values))
    assert float(scaled[n_far:].std()) > 0.4
    assert bool((scaled[:n_far].abs() > scaled[n_far:].abs().max()).all())


def test_angles_with_sentinels_are_angles_and_degrees_are_refused() -> None:
    turn = gone(ANGLE, -999.0)
    assert recognised_angles(["jet_phi", "jet_eta"], np.column_stack([turn, turn])) == [0]
    refuse_degrees("jet_phi", turn)
    with pytest.raises(ValueError, match=r"from -179.9 to 179.8, which look like degrees"):
        refuse_degrees("jet_phi", gone(np.degrees(ANGLE), -999.0))


@pytest.mark.parametrize("start", [-180.0, 0.0])
def test_azimuths_in_degrees_are_warned_of(start: float) -> None:
    degrees = gone(np.linspace(start, start + 360.0, N_EVENTS), -999.0)
    with pytest.warns(FeatureWarning, match=r"'jet_phi' looks like an angle in degrees.*radians\(jet_phi\)"):
        warn_of_degrees(["jet_phi", "jet_eta"], np.column_stack([degrees, degrees]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_degrees(["jet_phi", "metPhi"], np.column_stack([ANGLE, 0.5 * degrees]))
