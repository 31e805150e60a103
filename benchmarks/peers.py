"""What a user would pick instead from the package index, on the same toys.

Each peer gets the events it can digest in reasonable time (200,000 per class) and the treatment of negative
weights that its users resort to: signed weights where it accepts them, absolute weights where not. Ours is
trained on the same events.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch
from hep_ml.reweight import GBReweighter
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

import quasiratio as qr
from benchmarks.results import write_rows
from benchmarks.toy import ToyData, toy_data

SIZES = (200_000, 60_000, 1_400_000)


def hep_ml(data: ToyData) -> np.ndarray:
    """hep_ml's gradient-boosted reweighter with signed weights."""
    features, labels, weights = data.training
    reweighter = GBReweighter(gb_args={"subsample": 0.5})
    reweighter.fit(features[labels == 0], features[labels == 1], weights[labels == 0], weights[labels == 1])
    return reweighter.predict_weights(data.reference.features)


def _ratio_trick(model, data: ToyData, *, signed: bool) -> np.ndarray:
    features, labels, weights = data.training
    scaler = StandardScaler().fit(features)
    model.fit(scaler.transform(features), labels, sample_weight=weights if signed else np.abs(weights))
    score = model.predict_proba(scaler.transform(data.reference.features))[:, 1]
    return score / (1.0 - score)


def boosting_signed(data: ToyData) -> np.ndarray:
    """scikit-learn's histogram boosting, signed weights."""
    return _ratio_trick(HistGradientBoostingClassifier(random_state=0), data, signed=True)


def boosting_absolute(data: ToyData) -> np.ndarray:
    """The same with absolute weights."""
    return _ratio_trick(HistGradientBoostingClassifier(random_state=0), data, signed=False)


def network_absolute(data: ToyData) -> np.ndarray:
    """scikit-learn's network, absolute weights."""
    model = MLPClassifier((64, 64), batch_size=2048, max_iter=20, random_state=0)
    return _ratio_trick(model, data, signed=False)


def ours(data: ToyData) -> np.ndarray:
    """`SignResolvedRatio()` on the same events."""
    model = qr.SignResolvedRatio(random_state=0, verbose=False).fit(
        *data.training, validation=data.validation
    )
    return model.predict_ratio(data.reference.features)


PEERS = {
    "hep_ml GBReweighter, signed w": hep_ml,
    "HistGradientBoosting, signed w": boosting_signed,
    "HistGradientBoosting, |w|": boosting_absolute,
    "MLPClassifier, |w|": network_absolute,
    "quasiratio SignResolvedRatio": ours,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    rows = []
    for case in ("nonnegative", "signed"):
        data = toy_data(case, 0, SIZES)
        for name, run in PEERS.items():
            start = time.perf_counter()
            row = {"case": case, "peer": name}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ratio = np.asarray(run(data), dtype=float)
                row |= data.judge(ratio)
            except Exception as error:  # noqa: BLE001 - a refusal is a result
                row["refused"] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
            row["seconds"] = time.perf_counter() - start
            rows.append(row)
            print(row, flush=True)
    write_rows("peers", rows)


if __name__ == "__main__":
    main()
