"""Inputs as physicists have them: fills, large offsets, constants and copies, objects and their symmetries.

Each is part of the model: it comes back from a file, and goes to ONNX.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from sklearn.base import clone

import quasiratio as qr
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.loading import describe

pytestmark = pytest.mark.filterwarnings(
    "ignore::quasiratio.errors.QuasiratioWarning"
)  # short fits, few events
OBJECTS = {"mu1": ["pt1", "eta1", "phi1"], "mu2": ["pt2", "eta2", "phi2", "m2"]}
SHORT: dict[str, Any] = {"max_steps": 60, "random_state": 0, "verbose": False}


def events(n_events: int = 3000, seed: int = 0) -> tuple[dict[str, Any], Any]:
    """Return two muons and a label that depends on their distance in azimuth."""
    rng = np.random.default_rng(seed)
    columns = {
        "pt1": rng.exponential(30.0, n_events) + 20.0,
        "eta1": rng.normal(0.0, 1.5, n_events),
        "phi1": rng.uniform(-np.pi, np.pi, n_events),
        "pt2": rng.exponential(20.0, n_events) + 10.0,
        "eta2": rng.normal(0.0, 1.5, n_events),
        "phi2": rng.uniform(-np.pi, np.pi, n_events),
        "m2": np.full(n_events, 0.105) + rng.exponential(0.1, n_events),
        "met": rng.exponential(30.0, n_events),
    }
    odds = 0.5 + 0.4 * np.cos(columns["phi1"] - columns["phi2"])
    return columns, (rng.random(n_events) < odds).astype(int)


def onnx_ratio(model: Any, matrix: Any, path: Path) -> Any:
    model.export_onnx(path / "model.onnx", overwrite=True)
    session = onnxruntime.InferenceSession(path / "model.onnx")
    kind = np.float64 if session.get_inputs()[0].type == "tensor(double)" else np.float32
    name = session.get_outputs()[0].name
    return session.run([name], {"features": np.asarray(matrix, dtype=kind)})[0]


def round_trips(model: Any, X: Any, path: Path) -> None:
    """Compare a model with its file and its graph."""
    ratio = model.predict_ratio(X)
    model.save(path / "model")
    assert np.array_equal(qr.load(path / "model").predict_ratio(X), ratio)
    sample = qr.WeightedSample(X, fill=model.fill_ if hasattr(model, "fill_") else None)
    assert np.all(np.abs(onnx_ratio(model, sample.features, path) - ratio) < 1e-5 * (1 + np.abs(ratio)))


@pytest.mark.parametrize("symmetry", [None, "azimuth", "azimuth:mu2,eta,reflection", ["eta", "azimuth"]])
@pytest.mark.parametrize("invariants", [False, True])
def test_objects_come_back_from_files_and_onnx(symmetry: Any, invariants: bool, tmp_path: Path) -> None:
    X, y = events()
    model = qr.SignResolvedRatio(objects=OBJECTS, symmetry=symmetry, invariants=invariants, **SHORT).fit(X, y)
    round_trips(model, X, tmp_path)
    again = qr.load(tmp_path / "model")
    assert clone(again).get_params()["objects"] == OBJECTS
    assert again.periodic_features_ == model.periodic_features_
    document = describe(tmp_path / "model").estimator.model.scaling.objects
    assert [one.name for one in document.objects] == ["mu1", "mu2"]


def test_a_turn_about_the_beam_changes_nothing() -> None:
    X, y = events()
    model = qr.SignResolvedRatio(objects=OBJECTS, symmetry="azimuth", invariants=True, **SHORT).fit(X, y)
    ratio = model.predict_ratio(X)
    for angle in (0.3, 2.0, -3.0):
        turned = X | {name: (X[name] + angle + np.pi) % (2 * np.pi) - np.pi for name in ("phi1", "phi2")}
        assert np.all(np.abs(model.predict_ratio(turned) - ratio) < 1e-5 * (1 + np.abs(ratio)))
    assert ratio.std() > 0.1
    plain = qr.SignResolvedRatio(**SHORT).fit(X, y)
    assert np.abs(plain.predict_ratio(turned) - plain.predict_ratio(X)).max() > 1e-2


def test_mirror_images_have_one_ratio() -> None:
    X, y = events()
    model = qr.DirectRatio(objects=OBJECTS, symmetry="azimuth,eta,reflection", **SHORT).fit(X, y)
    ratio = model.predict_ratio(X)
    for mirrored in (("eta1", "eta2"), ("phi1", "phi2")):
        image = X | {name: -X[name] for name in mirrored}
        assert np.all(np.abs(model.predict_ratio(image) - ratio) < 1e-5 * (1 + np.abs(ratio)))


def test_an_object_without_eta(tmp_path: Path) -> None:
    X, y = events()
    objects = {"mu1": ["pt1", "eta1", "phi1"], "nu": ["met", "-", "phi2"], "x": ["pt2", "eta2", "m2"]}
    model = qr.DirectRatio(objects=objects, symmetry="azimuth", invariants=True, **SHORT).fit(X, y)
    round_trips(model, X, tmp_path)


@pytest.mark.parametrize("kind", [qr.SignResolvedRatio, qr.AutoRatio, qr.SignedMixtureRatio])
def test_fills_bring_an_indicator(kind: Any, tmp_path: Path) -> None:
    X, y = events()
    missing = np.random.default_rng(3).random(len(y)) < np.where(y == 1, 0.6, 0.2)
    with_gaps = X | {"pt2": np.where(missing, np.nan, X["pt2"])}
    model = kind(fill={"pt2": 0.0}, **SHORT).fit(with_gaps, y)
    ratio = model.predict_ratio(with_gaps)
    assert ratio[missing].mean() > 1.5 * ratio[~missing].mean()  # it matters whether the value is there
    assert np.array_equal(model.predict_ratio(with_gaps | {"pt2": np.where(missing, 0.0, X["pt2"])}), ratio)
    round_trips(model, with_gaps, tmp_path)
    matrix = np.column_stack(list(with_gaps.values()))  # ONNX takes NaN as well
    assert np.all(np.abs(onnx_ratio(model, matrix, tmp_path) - ratio) < 1e-5 * (1 + np.abs(ratio)))


def test_a_missing_value_without_a_fill_is_an_error() -> None:
    X, y = events(300)
    gaps = np.where(np.arange(300) < 7, np.nan, X["met"])
    with pytest.raises(InvalidInputError, match=r"'met' \(7 events\)"):
        qr.DirectRatio(fill={"pt2": 0.0}, **SHORT).fit(X | {"met": gaps}, y)
    for fill, message in (
        ({"nosuch": 0.0}, "fill for 'nosuch'"),
        ({"met": "zero"}, "'zero' to fill in for 'met'"),
        ({"met": True}, "True to fill in"),
        ([0.0], "expected names of features"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            qr.DirectRatio(fill=fill, **SHORT).fit(X | {"met": gaps}, y)  # type: ignore[arg-type]


def test_samples_frames_and_reweighters_with_fills(tmp_path: Path) -> None:
    X, y = events()
    frame = pd.DataFrame(X)
    frame.loc[::3, "pt2"] = np.nan
    reference, target = frame[y == 0], frame[y == 1]
    model = qr.SignResolvedRatio(fill={"pt2": -1.0}, **SHORT)
    first = model.fit_samples(reference, target).predict_ratio(frame)
    samples = [qr.WeightedSample(one, fill={"pt2": -1.0}) for one in (reference, target)]
    second = qr.SignResolvedRatio(**SHORT).fit_samples(samples[0], samples[1])
    assert np.array_equal(second.predict_ratio(frame), first)
    assert second.fill_ == {"pt2": -1.0}
    folds = qr.Reweighter(clone(model), n_folds=2).fit(reference, target)
    folds.save(tmp_path / "folds")
    ratio = folds.predict_ratio(frame)
    assert np.array_equal(qr.load(tmp_path / "folds").predict_ratio(frame), ratio)
    factor = folds.predict_weights(frame)
    graph = onnx_ratio(folds, frame.fillna(-1.0), tmp_path)
    assert np.all(np.abs(graph - factor) < 1e-5 * (1 + np.abs(factor)))
    assert np.array_equal(onnx_ratio(folds, frame, tmp_path), graph)  # NaN is what misses, for folds as well


@pytest.mark.parametrize("n_folds", [1, 2])
def test_weights_at_once_with_a_first_feature_that_may_miss(n_folds: int, tmp_path: Path) -> None:
    X, y = events()
    frame = pd.DataFrame({"j": X["met"], "pt1": X["pt1"]})
    frame.loc[::3, "j"] = np.nan
    weights = {"nominal": np.ones(int(y.sum())), "up": 1.0 + 0.01 * X["pt1"][y == 1]}
    model = qr.VariationReweighter(qr.SignResolvedRatio(fill={"j": 0.0}, **SHORT), n_folds=n_folds)
    model.fit(frame[y == 0], frame[y == 1], target_weight=weights)
    model.export_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    factors = model.predict_ratios(frame) * model.scales_
    for events_given in (frame, frame.fillna(0.0)):
        found = session.run(None, {"features": events_given.to_numpy(np.float32)})
        assert np.all(np.abs(np.transpose(found) - factors) < 1e-5 * (1 + np.abs(factors)))


@pytest.mark.parametrize(
    "made",
    [
        lambda x: 1.7e9 + 10.0 * x,
        lambda x: 1e8 + x,
        lambda x: 1e-300 * np.exp(x),
        lambda x: 1e300 * x,
        lambda x: -5e12 + 3e3 * x,
    ],
    ids=["time stamp", "offset", "tiny", "huge", "negative"],
)
def test_large_offsets_and_scales_keep_their_information(made: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 3000)
    x = rng.normal(0.8 * y, 1.0)
    other = rng.normal(size=len(y))
    exact = np.exp(0.8 * x - 0.32)
    settings: dict[str, Any] = {"max_steps": 400, "random_state": 0, "verbose": False}
    X = np.column_stack([made(x), other])
    for model in (qr.SignResolvedRatio(**settings), qr.Reweighter(qr.DirectRatio(**settings), n_folds=2)):
        fit = model.fit(X, y) if isinstance(model, qr.SignResolvedRatio) else model.fit(X[y == 0], X[y == 1])
        ratio = fit.predict_ratio(X)
        assert np.corrcoef(np.log(np.abs(ratio)), np.log(exact))[0, 1] > 0.95
        single = fit.predict_ratio(X[:1])
        np.testing.assert_allclose(single, ratio[:1], rtol=1e-5)
    model = qr.SignResolvedRatio(**settings).fit(X, y)
    round_trips(model, X, tmp_path)
    usual = qr.SignResolvedRatio(**settings).fit(np.column_stack([x, other]), y)
    assert usual.is_exact_ is False


def test_constants_and_copies_are_no_inputs(tmp_path: Path) -> None:
    X, y = events()
    more = X | {"year": np.full(len(y), 2018.0), "again": X["met"], "flag": X["met"] > 30}
    model = qr.SignResolvedRatio(**SHORT).fit(more, y)
    assert model.dropped_features_ == ["year", "again"]
    round_trips(model, more, tmp_path)
    other_year = more | {"year": np.full(len(y), 2022.0)}
    assert np.array_equal(model.predict_ratio(other_year), model.predict_ratio(more))
    assert qr.load(tmp_path / "model").dropped_features_ == ["year", "again"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"objects": {"mu": ["pt1", "eta1"]}}, "of 2 features; expected three or four"),
        ({"objects": {"mu": ["pt1", "eta1", "nosuch"]}}, "'nosuch', which is no feature"),
        (
            {"objects": {"a": ["pt1", "eta1", "phi1"], "b": ["pt1", "eta2", "phi2"]}},
            "which another object has",
        ),
        ({"objects": 3}, "expected names with"),
        ({"symmetry": "azimuth"}, "a symmetry without objects"),
        ({"invariants": True}, "invariants without objects"),
        ({"objects": OBJECTS, "symmetry": "parity"}, "'parity'; expected one of azimuth"),
        ({"objects": OBJECTS, "symmetry": "azimuth:tau"}, "one of the objects mu1, mu2"),
        ({"objects": OBJECTS, "symmetry": "reflection"}, "without 'azimuth'"),
        ({"objects": "mu1 pt1,eta1,phi1"}, "a name of its own, a colon"),
    ],
)
def test_bad_objects_are_refused_in_one_sentence(parameters: Any, message: str) -> None:
    X, y = events(200)
    with pytest.raises(InvalidInputError, match=message) as caught:
        qr.SignResolvedRatio(**parameters, **SHORT).fit(X, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [qr.SignResolvedRatio, qr.AutoRatio])
def test_sentinels_are_recognised_and_come_back(kind: Any, tmp_path: Path) -> None:
    """Flat files have -999 where an object is not there; it used to end in a risk without a minimum."""
    X, y = events()
    gone = np.random.default_rng(4).random(len(y)) < 0.2
    X |= {name: np.where(gone, -999.0, X[name]) for name in OBJECTS["mu2"]}
    model = kind(objects=OBJECTS, symmetry="azimuth", invariants=True, **SHORT).fit(X, y)
    names = ("phi2", "m2")
    declared = kind(
        objects=OBJECTS,
        symmetry="azimuth",
        invariants=True,
        fill=dict.fromkeys(OBJECTS["mu2"], -999.0),
        **SHORT,
    ).fit(X, y)
    assert np.array_equal(declared.predict_ratio(X), model.predict_ratio(X))
    round_trips(model, X, tmp_path)
    if kind is qr.SignResolvedRatio:
        assert model.sentinels_ == dict.fromkeys(OBJECTS["mu2"], -999.0)
        assert qr.load(tmp_path / "model").sentinels_ == model.sentinels_
        assert declared.sentinels_ == {}
    for name in names:  # what was not declared may not be NaN either
        with pytest.raises(InvalidInputError, match=name):
            model.predict_ratio(X | {name: np.where(gone, np.nan, X[name])})


def test_masses_of_a_few_objects_that_are_not_there_are_finite(tmp_path: Path) -> None:
    X, y = events()
    X |= {name: np.where(np.arange(len(y)) < 3, -999.0, X[name]) for name in OBJECTS["mu2"]}
    model = qr.SignResolvedRatio(objects=OBJECTS, symmetry="azimuth", invariants=True, **SHORT).fit(X, y)
    assert model.sentinels_ == {}
    assert np.isfinite(model.predict_ratio(X)).all()
    round_trips(model, X, tmp_path)
