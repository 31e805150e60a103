"""Input scaling: when a logarithm is taken, constant features, and values beyond the edges."""

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


def test_values_beyond_the_edges_are_taken_at_the_edges_and_counted() -> None:
    """Edges are as far from the last event as that is from the tenth, in what is scaled."""
    scaling, features = scaling_of("lognormal", "gaussian")
    ordered = features.double().sort(dim=0).values
    low = float(ordered[0, 0] ** 2 / ordered[9, 0])
    high = float(2 * ordered[-1, 1] - ordered[-10, 1])
    assert high > float(
        ordered[-1, 1] + 0.05 * (ordered[-1, 1] - ordered[0, 1])
    )  # more than the least margin
    assert float(scaling.floor[0]) == pytest.approx(low, rel=1e-5)
    assert float(scaling.ceiling[1]) == pytest.approx(high, rel=1e-5)
    low, high = float(scaling.floor[0]), float(scaling.ceiling[1])
    probes = torch.tensor([[low, high], [0.5 * low, 50.0], [-3.0, 1e9], [0.0, 1e30], [20.0, 0.0]])
    scaled = scaling(probes)
    assert bool(torch.isfinite(scaled).all())
    torch.testing.assert_close(scaled[:4], scaled[0].expand(4, 2), rtol=0, atol=0)
    assert float(scaled[4, 0]) > float(scaled[0, 0])
    assert float(scaled[4, 1]) < float(scaled[0, 1])
    assert [one.tolist() for one in scaling.beyond_edges(probes)] == [[3, 3], [0, 3]]
    assert [one.tolist() for one in scaling.beyond_edges(features)] == [[0, 0], [0, 0]]


def test_a_feature_with_bounds_has_a_margin_of_a_twentieth() -> None:
    scaling, features = scaling_of("uniform")
    low, high = float(features.min()), float(features.max())
    assert float(scaling.floor) == pytest.approx(low - 0.05 * (high - low), rel=1e-5)
    assert float(scaling.ceiling) == pytest.approx(high + 0.05 * (high - low), rel=1e-5)


def test_training_events_are_followed_to_the_last() -> None:
    scaling, features = scaling_of("lognormal", "gaussian", "left tail", "constant")
    bounded = scaling(features)
    scaling.floor[1:], scaling.ceiling[:] = -torch.inf, torch.inf
    scaling.floor[0] = features[:, 0].min()
    torch.testing.assert_close(bounded, scaling(features), rtol=0, atol=0)


def test_a_rare_flag_is_no_constant() -> None:
    flag = (np.arange(N_EVENTS) < 3).astype(np.float32)[:, None]
    scaled = FeatureScaling.from_data(flag)(torch.from_numpy(flag))
    assert float(scaled[0]) > float(scaled[-1])


def test_the_decision_is_stored_with_the_model() -> None:
    scaling, features = scaling_of("lognormal", "gaussian")
    copy = FeatureScaling(2)
    copy.load_state_dict(scaling.state_dict())
    torch.testing.assert_close(copy(features), scaling(features), rtol=0, atol=0)
    assert copy.uses_log.tolist() == [True, False]


def test_without_data_it_is_the_identity() -> None:
    probes = torch.randn(5, 3)
    torch.testing.assert_close(FeatureScaling(3)(probes), probes, rtol=0, atol=0)
