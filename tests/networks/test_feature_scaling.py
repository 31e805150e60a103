"""Input scaling: when a logarithm is taken, constant features, and values below the floor."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
import torch

from quasiratio.networks import FeatureScaling

N_EVENTS = 4000


def column(kind: str) -> npt.NDArray[np.float64]:
    rng = np.random.default_rng(0)
    return {
        "gaussian": lambda: rng.normal(5.0, 2.0, N_EVENTS),
        "positive gaussian": lambda: rng.normal(50.0, 2.0, N_EVENTS),
        "uniform": lambda: rng.uniform(1.0, 2.0, N_EVENTS),
        "lognormal": lambda: rng.lognormal(3.0, 1.0, N_EVENTS),
        "shifted lognormal": lambda: rng.lognormal(3.0, 1.0, N_EVENTS) - 1000.0,
        "lognormal with a zero": lambda: np.append(rng.lognormal(3.0, 1.0, N_EVENTS - 1), 0.0),
        "mild tail": lambda: rng.gamma(9.0, 1.0, N_EVENTS),  # skewness 2/3
        "left tail": lambda: 100.0 - rng.gamma(1.0, 5.0, N_EVENTS),
        "constant": lambda: np.full(N_EVENTS, 7.3),
        "tiny constant": lambda: np.full(N_EVENTS, 1e-30),
        "huge constant": lambda: np.full(N_EVENTS, 1e30),
    }[kind]()


def scaling_of(*kinds: str) -> tuple[FeatureScaling, torch.Tensor]:
    features = np.column_stack([column(kind) for kind in kinds]).astype(np.float32)
    return FeatureScaling.from_data(features), torch.from_numpy(features)


@pytest.mark.parametrize(
    ("kind", "uses_log"),
    [
        ("gaussian", False),
        ("positive gaussian", False),
        ("uniform", False),
        ("lognormal", True),
        ("shifted lognormal", False),
        ("lognormal with a zero", False),
        ("mild tail", False),
        ("left tail", False),
        ("constant", False),
    ],
)
def test_positive_heavy_tails_are_taken_in_logarithm(kind: str, uses_log: bool) -> None:
    scaling, features = scaling_of(kind)
    assert scaling.uses_log.tolist() == [uses_log]
    scaled = scaling(features).double()
    assert abs(float(scaled.mean())) < 1e-4
    if kind != "constant":
        assert float(scaled.std(correction=0)) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("kind", ["constant", "tiny constant", "huge constant"])
def test_a_constant_feature_becomes_zero_not_nan(kind: str) -> None:
    scaling, features = scaling_of(kind, "gaussian")
    scaled = scaling(features)
    assert bool(torch.isfinite(scaled).all())
    assert float(scaled[:, 0].abs().max()) < 1e-3


def test_columns_do_not_mix() -> None:
    together, features = scaling_of("gaussian", "lognormal", "uniform")
    for index, kind in enumerate(("gaussian", "lognormal", "uniform")):
        alone, one = scaling_of(kind)
        torch.testing.assert_close(together(features)[:, [index]], alone(one))


def test_values_below_the_floor_are_taken_at_the_floor_and_counted() -> None:
    scaling, features = scaling_of("lognormal", "gaussian")
    smallest = float(features[:, 0].min())
    probes = torch.tensor(
        [[smallest, -50.0], [0.5 * smallest, -50.0], [-3.0, -50.0], [0.0, -50.0], [20.0, 0.0]]
    )
    scaled = scaling(probes)
    assert bool(torch.isfinite(scaled).all())
    torch.testing.assert_close(scaled[:4, 0], scaled[0, 0].expand(4))
    assert float(scaled[4, 0]) > float(scaled[0, 0])
    assert scaling.below_floor(probes).tolist() == [0.6, 0.0]  # only the logarithmic feature has a floor
    assert scaling.below_floor(features).tolist() == [0.0, 0.0]


def test_the_decision_is_stored_with_the_model() -> None:
    scaling, features = scaling_of("lognormal", "gaussian")
    copy = FeatureScaling(2)
    copy.load_state_dict(scaling.state_dict())
    torch.testing.assert_close(copy(features), scaling(features), rtol=0, atol=0)
    assert copy.uses_log.tolist() == [True, False]


def test_without_data_it_is_the_identity() -> None:
    probes = torch.randn(5, 3)
    torch.testing.assert_close(FeatureScaling(3)(probes), probes, rtol=0, atol=0)
