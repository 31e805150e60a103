"""Training time of our defaults against the published way of training, all measured in this run.

The published way: four sub-ratio classifiers, each trained on 1e5 events per epoch from a `DataLoader` in
batches of 256 and validated on all its validation events after every epoch. One epoch of each is timed. The
same fit on tensors in memory runs to its own early stop (patience 20), and so tells how many epochs such a
training has; beside the ratio for that number stands the one for 100 epochs, a round number below it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

import quasiratio as qr
from benchmarks.published import published_rosmm
from benchmarks.results import write_rows
from benchmarks.toy import Labelled, toy_data

_EPOCHS = 100
_EPOCH_SIZE = 100_000
_BATCH_SIZE = 256


def dataloader_epoch(training: Labelled, validation: Labelled) -> float:
    """Return the seconds of one epoch of all four sub-ratios with a `DataLoader`."""
    seconds = 0.0
    for reference_sign in (1, -1):
        for target_sign in (1, -1):
            train_set = _pair(training, reference_sign, target_sign)
            held_out_set = _pair(validation, reference_sign, target_sign)
            sampler = RandomSampler(train_set, num_samples=_EPOCH_SIZE)
            train_loader = DataLoader(train_set, batch_size=_BATCH_SIZE, sampler=sampler)
            held_out_loader = DataLoader(held_out_set, batch_size=_BATCH_SIZE)
            network = nn.Sequential(
                nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Sigmoid()
            )
            optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)
            loss = nn.BCELoss(reduction="none")
            start = time.perf_counter()
            for features, labels, weights in train_loader:
                optimiser.zero_grad()
                (weights * loss(network(features)[:, 0], labels)).mean().backward()
                optimiser.step()
            with torch.no_grad():
                total = 0.0
                for features, labels, weights in held_out_loader:
                    total += float((weights * loss(network(features)[:, 0], labels)).sum())
            seconds += time.perf_counter() - start
    return seconds


def _pair(events: Labelled, reference_sign: int, target_sign: int) -> TensorDataset:
    features, labels, weights = events
    chosen = np.where(labels == 0, np.sign(weights) == reference_sign, np.sign(weights) == target_sign)
    return TensorDataset(
        torch.from_numpy(features[chosen]),
        torch.from_numpy(labels[chosen]).float(),
        torch.from_numpy(np.abs(weights[chosen])).float(),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", default="nonnegative")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--loop-threads", type=int, default=None, help="Of the in-memory loop, where others.")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data = toy_data(arguments.case, seed=0)
    rows = []

    def record(name: str, seconds: float, **extra: float) -> None:
        rows.append({"what": name, "seconds": seconds, **extra})
        write_rows("training_time", rows)
        print(
            f"{name:55s} {seconds:9.1f} s " + " ".join(f"{k} {v:.4g}" for k, v in extra.items()), flush=True
        )

    epoch = dataloader_epoch(data.training, data.validation)
    dataloader = _EPOCHS * epoch
    record("RoSMM, DataLoader, published settings, 100 epochs", dataloader, seconds_per_epoch=epoch)
    fitted = {}
    for name, estimator in (
        ("sign-resolved, default", qr.SignResolvedRatio(random_state=0, verbose=False)),
        ("RoSMM, default", qr.SignedMixtureRatio(random_state=0, verbose=False)),
        ("RoSMM, in memory, published settings, early stop", published_rosmm(seed=0)),
    ):
        if name.startswith("RoSMM, in memory"):
            torch.set_num_threads(arguments.loop_threads or arguments.threads)
        start = time.perf_counter()
        estimator.fit(*data.training, validation=data.validation)
        fitted[name] = time.perf_counter() - start
        judged = data.judge(estimator.predict_ratio(data.reference.features))
        epochs = float(len(estimator.history_))
        record(
            name,
            fitted[name],
            epochs=epochs,
            chi2=judged["chi2"],
            dataloader_over_this=dataloader / fitted[name],
        )
    in_memory = fitted["RoSMM, in memory, published settings, early stop"]
    record(f"RoSMM, DataLoader, published settings, {epochs:.0f} epochs", epochs * epoch, epochs=epochs)
    for name in ("sign-resolved, default", "RoSMM, default"):
        print(
            f"{name}: 1/{epochs * epoch / fitted[name]:.0f} of the DataLoader loop (1/{dataloader / fitted[name]:.0f} "
            f"for 100 epochs), 1/{in_memory / fitted[name]:.1f} of the in-memory loop"
        )


if __name__ == "__main__":
    main()
