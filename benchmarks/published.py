"""The published networks and schedules: does the published ordering come out?

An MLP (2-64-64-1, ReLU) and the four sub-ratios of RoSMM (2-32-32-1 each), cross-entropy, Adam at 1e-4, batches
of 256, epochs of 1e5 events, patience 20. `python -m benchmarks.published --seeds 1`.

Whether the 1e5 events of an epoch are of both classes together or of each is not said; `--epoch-size 200000` takes the
other reading, which lets a training go on for longer. (`study signed-gaussians --published-settings` has all methods.)
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import torch

import quasiratio as qr
from benchmarks.results import EPOCH_SIZE, append_row, read_rows
from benchmarks.toy import toy_data
from quasiratio.errors import QuasiratioWarning

PUBLISHED_TRAINING: dict[str, Any] = {
    "activation": "relu",
    "batch_size": 256,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "patience": 20,
    "epoch_size": EPOCH_SIZE,
    "weight_decay": 0.0,
    "periodic": [],
    "reference_density": "any",
    "target_density": "any",
    "on_divergence": "ignore",
    "max_steps": 300 * (EPOCH_SIZE // 256),
    "verbose": False,
}


def published_mlp(seed: int, **changed: int) -> qr.DirectRatio:
    """The MLP classifier with the published network and schedule."""
    training = PUBLISHED_TRAINING | changed
    return qr.DirectRatio(loss="bce", hidden_layers=(64, 64), random_state=seed, **training)


def published_rosmm(seed: int, **changed: int) -> qr.SignedMixtureRatio:
    """RoSMM with the published networks, schedule and balanced draw."""
    training = PUBLISHED_TRAINING | changed
    return qr.SignedMixtureRatio(hidden_layers=(32, 32), balanced_draw=True, random_state=seed, **training)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epoch-size", type=int, default=EPOCH_SIZE)
    parser.add_argument("--methods", nargs="*", default=["mlp-bce", "rosmm"])
    parser.add_argument("--cases", nargs="*", default=["nonnegative", "signed"])
    arguments = parser.parse_args()
    changed = {"epoch_size": arguments.epoch_size, "max_steps": 300 * (arguments.epoch_size // 256)}
    torch.set_num_threads(arguments.threads)
    done = {
        (row["case"], row["seed"], row["method"], row.get("epoch_size", EPOCH_SIZE))
        for row in read_rows("published")
    }
    for seed in range(arguments.seeds):
        for case in arguments.cases:
            data = toy_data(case, seed)
            for name, make in (("mlp-bce", published_mlp), ("rosmm", published_rosmm)):
                if (case, seed, name, arguments.epoch_size) in done or name not in arguments.methods:
                    continue
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", QuasiratioWarning)
                    estimator = make(seed, **changed).fit(*data.training, validation=data.validation)
                seconds = time.perf_counter() - start
                row = {"case": case, "seed": seed, "method": name, "epochs": len(estimator.history_)}
                row |= {
                    "epoch_size": arguments.epoch_size,
                    "best_epoch": estimator.history_.best_epoch.tolist(),
                }
                row |= data.judge(estimator.predict_ratio(data.reference.features)) | {"seconds": seconds}
                append_row("published", row)
                print(
                    f"{case:12s} seed {seed} {name:8s} chi2 {row['chi2']:.3f} (exact {row['exact_chi2']:.3f}) "
                    f"after {row['epochs']} epochs, {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
