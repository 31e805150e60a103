"""Whether the default can be trusted: signed jets, six dimensions and the Signed toy, beside other packages.

`python -m benchmarks.trusted` appends one row per (problem, size, seed, method) to `benchmarks/results/trusted.json` as
soon as it is known; rows that are there already are not computed again. Seeds 2000 to 2004 were used for no choice (1000
to 1004 were, for what is assumed of the target's density).
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from hep_ml.reweight import GBReweighter
from sklearn.ensemble import HistGradientBoostingClassifier

import quasiratio as qr
from benchmarks.problems import problem
from benchmarks.results import append_row, read_rows
from quasiratio.sample import WeightedSample

SEEDS = range(2000, 2005)
Method = Callable[[WeightedSample, WeightedSample, WeightedSample, int], tuple[np.ndarray, str]]


def _ours(make: Callable[[int], qr.SignResolvedRatio]) -> Method:
    def run(reference, target, test, seed):
        model = make(seed).fit_samples(reference, target)
        return model.predict_ratio(test), model.fit_check_.status

    return run


def hep_ml(reference, target, test, seed):
    """hep_ml's gradient-boosted reweighter, 50 trees, signed weights."""
    reweighter = GBReweighter(n_estimators=50, gb_args={"subsample": 0.5, "random_state": seed})
    reweighter.fit(reference.features, target.features, reference.weights, target.weights)
    return reweighter.predict_weights(test.features), ""


def boosting(reference, target, test, seed):
    """scikit-learn's histogram boosting on absolute weights."""
    labels = np.repeat([0, 1], [len(reference), len(target)])
    weights = np.abs(np.concatenate([reference.weights, target.weights]))
    for label in (0, 1):
        weights[labels == label] /= weights[labels == label].sum()
    model = HistGradientBoostingClassifier(random_state=seed)
    model.fit(
        np.concatenate([reference.features, target.features]), labels, sample_weight=weights * len(labels)
    )
    score = model.predict_proba(test.features)[:, 1]
    return score / (1.0 - score), ""


METHODS: dict[str, Method] = {
    "default": _ours(lambda seed: qr.SignResolvedRatio(random_state=seed, verbose=False)),
    "auto": _ours(lambda seed: qr.AutoRatio(random_state=seed, verbose=False)),
    "revert": _ours(lambda seed: qr.DirectRatio(loss="revert", random_state=seed, verbose=False)),
    "hep_ml": hep_ml,
    "boosting |w|": boosting,
}
PEERS = ("default", "revert", "hep_ml", "boosting |w|")
PLAN: list[tuple[str, int, tuple[str, ...]]] = [
    ("jets equal", 5_000, ("default",)),
    ("jets different", 5_000, ("default",)),
    ("six", 5_000, ("default",)),
    ("jets equal", 10_000, (*PEERS, "auto")),
    ("jets different", 10_000, (*PEERS, "auto")),
    ("six", 10_000, ("default", "auto")),
    ("six", 100_000, ("default", "auto")),
    ("signed", 100_000, ("default", "auto")),
    ("jets equal", 100_000, (*PEERS, "auto")),
    ("jets different", 100_000, (*PEERS, "auto")),
    ("jets negative-target", 100_000, ("default",)),
    ("jets negative-reference", 100_000, ("default",)),
    ("jets equal", 1_000_000, ("default", "boosting |w|")),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default=",".join(sorted({name for name, _, _ in PLAN})))
    parser.add_argument("--sizes", default="5000,10000,100000,1000000")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--seeds", default=",".join(str(seed) for seed in SEEDS))
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.sizes.split(",")]
    for name, size, methods in PLAN:
        if name not in arguments.problems.split(",") or size not in sizes:
            continue
        posed = problem(name)
        test = posed.test_reference()
        for seed in (int(seed) for seed in arguments.seeds.split(",")):
            reference, target = posed.samples(size, np.random.default_rng(seed))
            for method in methods:
                done = {
                    (row["problem"], row["size"], row["seed"], row["method"]) for row in read_rows("trusted")
                }
                if method not in arguments.methods.split(",") or (name, size, seed, method) in done:
                    continue
                start = time.perf_counter()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ratio, check = METHODS[method](reference, target, test, seed)
                seconds = time.perf_counter() - start
                row = {"problem": name, "size": size, "seed": seed, "method": method}
                row |= posed.judge(np.asarray(ratio, dtype=float), test) | {
                    "check": check,
                    "seconds": seconds,
                }
                append_row("trusted", row)
                print(
                    f"{name:23s} {size:8d} seed {seed} {method:13s} error {row['error']:.3f} effective "
                    f"{row['effective']:.2f} reach {row['lowest']:.2f} to {row['highest']:.2f} {check} {seconds:.0f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
