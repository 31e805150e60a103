"""Small fits in every corner: sizes, dimensions, shares of negative weights, spreads of the weights.

The reference is a standard normal, the target shifted by 0.4 in its first feature, so that the exact ratio is
exp(0.4 x - 0.08). Signs and sizes of the weights do not depend on the features: the exact asymmetry is a constant.
"""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import InvalidInputError, QuasiratioWarning, UntrustworthyFitWarning
from quasiratio.sample import WeightedSample

SHIFT = 0.4
CORNERS = list(itertools.product((300, 1000, 3000), (1, 4, 15), (0.0, 0.15, 0.3), (0.0, 1.0)))


def sample(n: int, dimension: int, share: float, spread: float, mean: float, seed: int) -> WeightedSample:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dimension))
    x[:, 0] += mean
    sizes = rng.lognormal(-0.5 * spread**2, spread, n)
    return WeightedSample(x, np.where(rng.random(n) < share, -sizes, sizes))


def test_there_are_enough_corners() -> None:
    assert len(CORNERS) >= 40


@pytest.mark.parametrize(("n", "dimension", "share", "spread"), CORNERS)
def test_a_corner(n: int, dimension: int, share: float, spread: float) -> None:
    reference, target = (sample(n, dimension, share, spread, mean, 1) for mean in (0.0, SHIFT))
    size = min(reference.effective_size, target.effective_size)
    few = size < 40 * dimension
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = qr.SignResolvedRatio(random_state=0, verbose=False).fit_samples(reference, target)
        except InvalidInputError as refusal:
            assert few
            assert "after the random split" in str(refusal)  # noqa: PT017
            return
        fresh = sample(20_000, dimension, share, spread, 0.0, 2)
        ratio = model.predict_ratio(fresh)
    assert [str(w.message) for w in caught if not issubclass(w.category, QuasiratioWarning)] == []
    said = [str(warning.message) for warning in caught]
    of_weights = [text for text in said if "effective size of" in text or "decides the fit alone" in text]
    of_check = [text for text in said if text.startswith("DO NOT USE")]
    has_failed = model.fit_check_.status == "failed"
    assert bool(of_weights) == few  # neither without cause nor missing
    assert bool(of_check) == has_failed
    others = [text for text in said if text not in (*of_weights, *of_check)]
    # That some target weight exceeds the range of so few reference events is no rarity with fifteen features.
    assert all("outside the reference's range" in text or "|ratio| above" in text for text in others)
    assert len(others) <= 1
    if few or has_failed:
        return
    # Beyond the last few training events nothing supports a ratio.
    inside = np.all(np.abs(fresh.features) < np.quantile(np.abs(reference.features), 0.998, axis=0), axis=1)
    ratio, x = ratio[inside], fresh.features[inside, 0].astype(float)
    exact = np.exp(SHIFT * x - 0.5 * SHIFT**2)
    assert np.abs(ratio).max() < 3 * exact.max()  # nothing that the data do not support
    assert ratio.min() > (-1.0 if share else 0.0)
    error = np.sqrt(np.mean((ratio - exact) ** 2) / np.mean((exact - 1) ** 2))
    assert error < 1.2  # one is no reweighting


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("dimension", [1, 5])
def test_one_weight_that_is_everything_is_named(share: float, dimension: int) -> None:
    reference, target = (sample(600, dimension, share, 0.5, mean, 3) for mean in (0.0, SHIFT))
    weights = np.array(target.weights)
    weights[5] = 1e12
    with pytest.warns(UntrustworthyFitWarning) as caught:
        qr.SignResolvedRatio(max_steps=5, random_state=0, verbose=False).fit_samples(
            reference, WeightedSample(target.features, weights)
        )
    assert any("number 605, has the weight 1e+12" in str(warning.message) for warning in caught)
