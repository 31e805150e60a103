"""Every estimator as an ONNX graph, against PyTorch, on a million events of the Signed toy.

`python -m benchmarks.onnx_agreement` prints the largest |difference| / (1 + |r|) of each; 1e-5 is promised.
Estimators whose row is in `benchmarks/results/onnx_agreement.json` already are not fitted again.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import quasiratio as qr
from benchmarks.results import append_row, read_rows
from benchmarks.toy import toy_data
from quasiratio.errors import QuasiratioWarning
from quasiratio.losses import LOSSES

_EVENTS = 1_000_000
_CHUNK = 50_000


def estimators() -> dict[str, qr.SignResolvedRatio]:
    """Return one unfitted estimator of every kind, by name."""
    options = {"max_steps": 300, "random_state": 0, "verbose": False}
    ratios = {f"direct, {loss}": qr.DirectRatio(loss=loss, **options) for loss in LOSSES}
    for tune in ("none", "coefficients", "all"):
        ratios[f"RoSMM, tune={tune}"] = qr.SignedMixtureRatio(tune=tune, **options)
    ratios["sign-resolved"] = qr.SignResolvedRatio(**options)
    ratios["sign-resolved, tune=all"] = qr.SignResolvedRatio(tune="all", **options)
    ratios["sign-resolved x4"] = qr.SignResolvedRatio(n_members=4, **options)
    ratios["RoSMM x3"] = qr.SignedMixtureRatio(n_members=3, **options)
    ratios["auto"] = qr.AutoRatio(**options)
    return ratios


def run_graph(path: Path, features: np.ndarray) -> np.ndarray:
    """Return the first output of the graph."""
    session = onnxruntime.InferenceSession(path)
    parts = [
        session.run(None, {"features": features[start : start + _CHUNK]})[0]
        for start in range(0, len(features), _CHUNK)
    ]
    return np.concatenate(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    warnings.simplefilter("ignore", QuasiratioWarning)  # short fits
    data = toy_data("signed", 0, (50_000, 20_000, 1000))
    features = np.random.default_rng(1).normal(0.0, 2.3, size=(_EVENTS, 2)).astype(np.float32)
    X, y, w = data.training
    done = {row["estimator"] for row in read_rows("onnx_agreement")}

    def record(name: str, estimator: qr.SignResolvedRatio, expected: np.ndarray) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "model.onnx"
            estimator.export_onnx(path)
            start = time.perf_counter()
            actual = run_graph(path, features)
            seconds = time.perf_counter() - start
        held = np.abs(expected) < np.finfo(np.float32).max  # the graph's output is a float
        difference = (np.abs(actual - expected) / (1 + np.abs(expected)))[held].max()
        row = {
            "estimator": name,
            "events": _EVENTS,
            "beyond_float": int(np.sum(~held)),
            "largest_difference": float(difference),
            "smallest": float(expected.min()),
            "largest": float(expected.max()),
            "seconds": seconds,
        }
        append_row("onnx_agreement", row)
        print(
            f"{name:25s} {difference:.2e}  ratios {expected.min():.3g} to {expected.max():.3g}, "
            f"{row['beyond_float']} beyond float32, graph {seconds:.1f} s",
            flush=True,
        )

    for name, estimator in estimators().items():
        if name in done:
            continue
        estimator.fit(X, y, sample_weight=w, validation=data.validation)
        record(name, estimator, estimator.predict_ratio(features))
    options = {"max_steps": 300, "random_state": 0, "verbose": False}
    ones = np.ones(_EVENTS)
    for name, n_folds in (("reweighter", 1), ("reweighter, 3 folds", 3)):
        if name in done:
            continue
        reweighter = qr.Reweighter(qr.SignResolvedRatio(**options), n_folds=n_folds)
        reweighter.fit(X[y == 0], X[y == 1], original_weight=w[y == 0], target_weight=w[y == 1])
        record(name, reweighter, reweighter.predict_weights(features, ones))
    if "positive reweighter" not in done:
        positive = qr.PositiveReweighter(**options).fit(X[y == 1], w[y == 1])
        record("positive reweighter", positive, positive.predict_weights(features, ones))
    worst = max(row["largest_difference"] for row in read_rows("onnx_agreement"))
    print(f"the largest of all: {worst:.2e} (promised: 1e-5)")


if __name__ == "__main__":
    main()
