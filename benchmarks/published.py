"""The published networks and schedules: does the published ordering come out?

An MLP (2-64-64-1, ReLU) and the four sub-ratios of RoSMM (2-32-32-1 each), cross-entropy, Adam at 1e-4, batches
of 256, epochs of 1e5 events, patience 20. `python -m benchmarks.published --seeds 1`.
"""

from __future__ import annotations

import argparse
import time
import warnings

import torch

import quasiratio as qr
from benchmarks.results import append_row, read_rows
from benchmarks.toy import toy_data
from quasiratio.errors import QuasiratioWarning

PUBLISHED_TRAINING = {
    "activation": "relu",
    "batch_size": 256,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "patience": 20,
    "epoch_size": 100_000,
    "weight_decay": 0.0,
    "periodic": [],
    "reference_density": "any",
    "target_density": "any",
    "on_divergence": "ignore",
    "max_steps": 300 * (100_000 // 256),
    "verbose": False,
}


def published_mlp(seed: int) -> qr.DirectRatio:
    """The MLP classifier with the published network and schedule."""
    return qr.DirectRatio(loss="bce", hidden_layers=(64, 64), random_state=seed, **PUBLISHED_TRAINING)


def published_rosmm(seed: int) -> qr.SignedMixtureRatio:
    """RoSMM with the published networks, schedule and balanced draw."""
    return qr.SignedMixtureRatio(
        hidden_layers=(32, 32), balanced_draw=True, random_state=seed, **PUBLISHED_TRAINING
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    done = {(row["case"], row["seed"], row["method"]) for row in read_rows("published")}
    for seed in range(arguments.seeds):
        for case in ("nonnegative", "signed"):
            data = toy_data(case, seed)
            for name, make in (("mlp-bce", published_mlp), ("rosmm", published_rosmm)):
                if (case, seed, name) in done:
                    continue
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", QuasiratioWarning)
                    estimator = make(seed).fit(*data.training, validation=data.validation)
                seconds = time.perf_counter() - start
                row = {"case": case, "seed": seed, "method": name, "epochs": len(estimator.history_)}
                row |= data.judge(estimator.predict_ratio(data.reference.features)) | {"seconds": seconds}
                append_row("published", row)
                print(
                    f"{case:12s} seed {seed} {name:8s} chi2 {row['chi2']:.3f} (exact {row['exact_chi2']:.3f}) "
                    f"after {row['epochs']} epochs, {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
