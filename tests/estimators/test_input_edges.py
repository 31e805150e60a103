"""Inputs at their edges: fills that occur, sentinels, angles many turns away, names of angles, degrees, the seam."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import vonmises

import quasiratio as qr
from quasiratio.columns import needs_double
from quasiratio.errors import InvalidInputError
from quasiratio.networks import recognised_angles

SHORT: dict[str, Any] = {"max_steps": 300, "random_state": 0, "verbose": False}


def two_stamps(n_events: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], n_events)
    return 1.7e9 + rng.normal(10.0 * y, 20.0), y


class TestFillsThatOccur:
    def test_a_present_value_equal_to_the_fill_is_refused(self) -> None:
        rng = np.random.default_rng(0)
        tag = rng.choice([0.0, 1.0, np.nan], 3000)
        y = np.arange(3000) % 2
        message = r"Got \d+ values of 'tag' equal to its fill 0 .* such as -1"
        with pytest.raises(InvalidInputError, match=message):
            qr.WeightedSample({"tag": tag}, fill={"tag": 0.0})
        with pytest.raises(InvalidInputError, match=message):
            qr.SignResolvedRatio(fill={"tag": 0.0}, **SHORT).fit({"tag": tag}, y)
        assert len(qr.WeightedSample({"tag": tag}, fill={"tag": -1.0})) == 3000

    def test_what_was_filled_before_is_no_conflict(self) -> None:
        """A program that fills in the number itself gives columns without NaN."""
        filled = qr.WeightedSample({"pt": [0.0, 30.0, 0.0]}, fill={"pt": 0.0})
        assert filled.features[:, 0].tolist() == [0.0, 30.0, 0.0]

    def test_files_are_checked_as_well(self, tmp_path) -> None:
        np.savez(tmp_path / "a.npz", tag=np.array([0.0, 1.0, np.nan]), pt=np.arange(3.0))
        with pytest.raises(InvalidInputError, match="Got 1 values of 'tag' equal to its fill 0"):
            qr.io.read_sample(tmp_path / "a.npz", features=["tag=fill(tag, 0)", "pt"])
        assert qr.io.read_sample(tmp_path / "a.npz", features=["tag=fill(tag, -1)"]).fill == {"tag": -1.0}


class TestLargeOffsets:
    @pytest.mark.filterwarnings("ignore::quasiratio.errors.SupportWarning")
    @pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "undeclared"])
    def test_time_stamps_with_missing_ones_keep_their_information(self, is_declared, tmp_path) -> None:
        stamps, y = two_stamps(4000)
        missing = np.random.default_rng(1).random(len(y)) < (0.2 if is_declared else 0.02)
        stamps[missing] = 0.0 if is_declared else -999.0
        fill = {"when": 0.0} if is_declared else None
        model = qr.SignResolvedRatio(fill=fill, **SHORT).fit({"when": stamps}, y)
        probes = {"when": np.array([1.7e9 - 20.0, 1.7e9 + 40.0])}
        early, late = model.predict_ratio(probes)
        assert early < 0.6  # exactly 0.54
        assert late > 1.8  # exactly 2.4, of the stamps that are there
        model.save(tmp_path / "model")
        np.testing.assert_array_equal(qr.load(tmp_path / "model").predict_ratio(probes), [early, late])
        onnxruntime = pytest.importorskip("onnxruntime")
        model.export_onnx(tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
        matrix = np.append(stamps[:2000], probes["when"])[:, None]
        (found,) = session.run(["ratio"], {"features": matrix})
        expected = model.predict_ratio({"when": matrix[:, 0]})
        assert np.max(np.abs(found - expected) / (1 + np.abs(expected))) < 1e-5

    def test_one_number_for_many_events_does_not_hide_a_time_stamp(self) -> None:
        stamps, _ = two_stamps(2000)
        stamps[::5] = 0.0
        assert needs_double(stamps)
        counts = np.random.default_rng(0).poisson(2.0, 4000).astype(float)
        assert not needs_double(counts)

    def test_an_angle_many_turns_away_is_the_same_angle(self) -> None:
        rng = np.random.default_rng(0)
        y = np.repeat([0, 1], 4000)
        phi = rng.vonmises(0.0, np.where(y, 1.0, 0.1))
        far = phi + 2 * np.pi * 1e8
        near_model = qr.SignResolvedRatio(periodic=["a"], **SHORT).fit({"a": phi}, y)
        far_model = qr.SignResolvedRatio(periodic=["a"], **SHORT).fit({"a": far}, y)
        expected, found = near_model.predict_ratio({"a": phi}), far_model.predict_ratio({"a": far})
        assert np.sqrt(np.mean((expected - found) ** 2)) < 0.02
        assert np.ptp(found) > 0.5


class TestAngles:
    def test_declared_angles_are_added_to_those_that_are_recognised(self) -> None:
        rng = np.random.default_rng(0)
        y = np.arange(2000) % 2
        X = {name: rng.uniform(-np.pi, np.pi, 2000) for name in ("phi", "theta")}
        for periodic, expected in ((None, ["phi"]), (["theta"], ["phi", "theta"]), ((), [])):
            model = qr.SignResolvedRatio(periodic=periodic, **SHORT | {"max_steps": 5}).fit(X, y)
            assert model.periodic_features_ == expected

    def test_names_of_angles(self) -> None:
        turn = np.linspace(-np.pi, np.pi, 100)
        yes = ["metPhi", "lepPhi", "deltaphi", "DeltaPhi", "phi1", "jet_phi", "PHI", "phiStar", "metphi"]
        no = ["philosophy", "eta", "graphics", "phishing", "amphibian"]
        found = recognised_angles([*yes, *no], np.column_stack([turn] * (len(yes) + len(no))))
        assert found == list(range(len(yes)))

    def test_the_range_of_an_angle_leaves_fills_out(self) -> None:
        rng = np.random.default_rng(0)
        phi = np.where(rng.random(2000) < 0.2, np.nan, rng.uniform(-np.pi, np.pi, 2000))
        model = qr.SignResolvedRatio(fill={"phi": -99.0}, **SHORT | {"max_steps": 5})
        assert model.fit({"phi": phi}, np.arange(2000) % 2).periodic_features_ == ["phi"]

    def test_degrees_are_refused(self) -> None:
        rng = np.random.default_rng(0)
        y = np.arange(2000) % 2
        degrees = rng.uniform(-180.0, 180.0, 2000)
        with pytest.raises(InvalidInputError, match=r"'theta' from -1.* to 1.*, which look like degrees"):
            qr.SignResolvedRatio(periodic=["theta"], **SHORT).fit({"theta": degrees}, y)


def test_an_angle_that_peaks_at_the_seam_closes_there_as_anywhere() -> None:
    """A third of the target lies within half a radian of the seam. The exact ratio says what statistics alone leave."""
    rng = np.random.default_rng(0)
    peak, wide, narrow = np.pi + 0.2, 0.7, 1.5

    def angles(concentration: float, n_events: int) -> np.ndarray:
        return (rng.vonmises(peak, concentration, n_events) + np.pi) % (2 * np.pi) - np.pi

    model = qr.SignResolvedRatio(random_state=0, verbose=False)
    model.fit_samples({"phi": angles(wide, 20_000)}, {"phi": angles(narrow, 20_000)})
    reference, target = angles(wide, 40_000), angles(narrow, 40_000)
    exact = vonmises.pdf(reference - peak, narrow) / vonmises.pdf(reference - peak, wide)
    ratios = {"model": model.predict_ratio({"phi": reference}), "exact": exact}

    def chi_squared(ratio: np.ndarray, shift: float, edges: np.ndarray) -> float:
        values, wanted = ((one + shift) % (2 * np.pi) - np.pi for one in (reference, target))
        new, errors = (np.histogram(values, edges, weights=ratio**k)[0] for k in (1, 2))
        counts = np.histogram(wanted, edges)[0]
        return float(np.mean((new - counts) ** 2 / (errors + counts)))

    for shift, edges in (
        (0.0, np.linspace(-0.5, 0.5, 21)),  # from the seam
        (np.pi, np.linspace(-np.pi + 0.5, np.pi - 0.5, 41)),
    ):
        chi2 = {name: chi_squared(ratio, shift, edges) for name, ratio in ratios.items()}
        assert chi2["model"] - chi2["exact"] < 0.5
    left, right = model.predict_ratio({"phi": [np.pi, -np.pi]})
    assert abs(left - right) < 1e-6 * (1 + abs(left))
