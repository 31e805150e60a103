"""A `WeightedSample` brings its weights: no estimator drops them, whichever way the sample is given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.quick_ratios import quick_ratios

import quasiratio as qr
from quasiratio.errors import InvalidInputError

QUICK: dict[str, Any] = {
    "max_steps": 30, "batch_size": 256, "hidden_layers": (6,), "random_state": 0, "verbose": False, "device": "cpu",
}  # fmt: skip
RATIOS = quick_ratios(QUICK)
# Thirty steps on a thousand events may fit badly; that is not what this file is about.
pytestmark = pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
every_ratio = pytest.mark.parametrize("kind", RATIOS)


def sample(n: int, mean: float, seed: int) -> qr.WeightedSample:
    """Weights that depend on the feature, so that leaving them out changes the ratio."""
    rng = np.random.default_rng(seed)
    x = rng.normal(mean, 1.0, (n, 2))
    return qr.WeightedSample(x, np.exp(0.5 * x[:, 0]) * rng.choice([1.0, -0.2], n, p=[0.9, 0.1]), ["a", "b"])


def stacked(reference: qr.WeightedSample, target: qr.WeightedSample) -> tuple[qr.WeightedSample, Any]:
    events = qr.WeightedSample(
        np.concatenate([reference.features, target.features]),
        np.concatenate([reference.weights, target.weights]),
        reference.names,
    )
    return events, np.repeat([0, 1], [len(reference), len(target)])


REFERENCE, TARGET = sample(600, 0.0, 1), sample(500, 0.4, 2)
HELD_OUT = sample(300, 0.0, 3), sample(300, 0.4, 4)
EVENTS, LABELS = stacked(REFERENCE, TARGET)
CHECKED, CHECKED_LABELS = stacked(*HELD_OUT)
POINTS = np.random.default_rng(5).normal(size=(50, 2))


@every_ratio
def test_fit_takes_the_weights_of_a_sample(kind: str) -> None:
    expected = RATIOS[kind]().fit(EVENTS, LABELS, sample_weight=EVENTS.weights)
    found = RATIOS[kind]().fit(EVENTS, LABELS)
    unweighted = RATIOS[kind]().fit(EVENTS.features, LABELS)
    assert np.array_equal(found.predict_ratio(POINTS), expected.predict_ratio(POINTS))
    assert found.fingerprint_ == expected.fingerprint_
    assert not np.allclose(found.predict_ratio(POINTS), unweighted.predict_ratio(POINTS), rtol=1e-3)
    assert found.score(CHECKED, CHECKED_LABELS) == found.score(
        CHECKED, CHECKED_LABELS, sample_weight=CHECKED.weights
    )


@every_ratio
def test_weights_that_are_given_override_those_of_the_sample(kind: str) -> None:
    ones = np.ones(len(EVENTS))
    found = RATIOS[kind]().fit(EVENTS, LABELS, sample_weight=ones)
    expected = RATIOS[kind]().fit(EVENTS.features, LABELS)
    assert np.array_equal(found.predict_ratio(POINTS), expected.predict_ratio(POINTS))


@every_ratio
def test_validation_takes_the_weights_of_a_sample(kind: str) -> None:
    given = (CHECKED, CHECKED_LABELS, CHECKED.weights)
    expected = RATIOS[kind]().fit(EVENTS, LABELS, validation=given)
    found = RATIOS[kind]().fit(EVENTS, LABELS, validation=(CHECKED, CHECKED_LABELS, None))
    assert np.array_equal(found.predict_ratio(POINTS), expected.predict_ratio(POINTS))
    if hasattr(found, "history_"):
        assert np.array_equal(found.history_.validation_loss, expected.history_.validation_loss)


@every_ratio
def test_fit_samples_is_a_fit_of_the_stacked_samples(kind: str) -> None:
    expected = RATIOS[kind]().fit(EVENTS, LABELS, EVENTS.weights, (CHECKED, CHECKED_LABELS, CHECKED.weights))
    found = RATIOS[kind]().fit_samples(REFERENCE, TARGET, validation=HELD_OUT)
    assert np.array_equal(found.predict_ratio(POINTS), expected.predict_ratio(POINTS))
    assert found.fingerprint_ == expected.fingerprint_


def test_fit_samples_takes_frames_and_dictionaries_with_weights() -> None:
    expected = RATIOS["sign-resolved"]().fit_samples(REFERENCE, TARGET)
    frame = pd.DataFrame(REFERENCE.features, columns=["a", "b"])
    columns = {"a": TARGET.features[:, 0], "b": TARGET.features[:, 1]}
    found = RATIOS["sign-resolved"]().fit_samples(
        frame, columns, reference_weight=REFERENCE.weights, target_weight=TARGET.weights
    )
    assert np.array_equal(found.predict_ratio(POINTS), expected.predict_ratio(POINTS))
    assert found.feature_names_ == ("a", "b")


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        ((REFERENCE, sample(9, 0, 1).features), {}, r"features \['a', 'b'\] in the reference and \['x0', 'x1'\]"),
        ((REFERENCE, TARGET), {"validation": REFERENCE}, r"expected the pair \(reference, target\)"),
        ((REFERENCE, TARGET), {"validation": (REFERENCE,)}, r"expected the pair \(reference, target\)"),
        (
            (REFERENCE, TARGET),
            {"validation": (HELD_OUT[0].features, HELD_OUT[1].features)},
            "validation samples without weights",
        ),
        ((REFERENCE, TARGET), {"reference_weight": [1.0]}, "expected one weight per event"),
    ],
)  # fmt: skip
def test_fit_samples_says_what_is_wrong(arguments: Any, options: Any, sentence: str) -> None:
    with pytest.raises(InvalidInputError, match=sentence):
        RATIOS["sign-resolved"]().fit_samples(*arguments, **options)


def test_the_positive_reweighter_takes_the_weights_of_a_sample() -> None:
    expected = qr.PositiveReweighter(**QUICK).fit(REFERENCE.features, REFERENCE.weights)
    found = qr.PositiveReweighter(**QUICK).fit(REFERENCE)
    assert found.report_ == expected.report_
    weights = expected.predict_weights(REFERENCE.features, REFERENCE.weights)
    assert np.array_equal(found.predict_weights(REFERENCE), weights)
    kept = [
        fitted.resample(REFERENCE, weights, np.random.default_rng(0))
        for fitted, weights in ((expected, REFERENCE.weights), (found, None))
    ]
    assert np.array_equal(kept[0].kept, kept[1].kept)
    assert np.array_equal(kept[0].weights, kept[1].weights)


def test_the_positive_reweighter_refuses_events_without_weights() -> None:
    fitted = qr.PositiveReweighter(**QUICK).fit(REFERENCE)
    for use in (
        lambda: qr.PositiveReweighter(**QUICK).fit(REFERENCE.features),
        lambda: fitted.predict_weights(REFERENCE.features),
        lambda: fitted.resample(REFERENCE.features, None, np.random.default_rng(0)),
    ):
        with pytest.raises(InvalidInputError, match=r"Got no weights.*sample_weight"):
            use()


def test_the_reweighter_takes_the_weights_of_samples() -> None:
    arrays = (REFERENCE.features, TARGET.features, REFERENCE.weights, TARGET.weights)
    expected = qr.Reweighter(RATIOS["sign-resolved"](), n_folds=2).fit(*arrays)
    found = qr.Reweighter(RATIOS["sign-resolved"](), n_folds=2).fit(REFERENCE, TARGET)
    weights = expected.predict_weights(REFERENCE.features, REFERENCE.weights)
    assert np.array_equal(found.predict_weights(REFERENCE), weights)
