"""How close each method comes to the exact ratio, on both toys, over several seeds.

`python -m benchmarks.accuracy --seeds 5` appends one row per (case, seed, method) to
`benchmarks/results/accuracy.json` as soon as it is known; rows that are there already are not computed again.
`--from-study toys` takes over what is missing from `quasiratio study signed-gaussians --preset full -o toys`, whose
events and seeds are the same; its single methods are the candidates of `AutoRatio`.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

import quasiratio as qr
from benchmarks.coverage import pull_summary
from benchmarks.results import append_row, read_rows
from benchmarks.toy import PUBLISHED_SIZES, ToyData, toy_data
from quasiratio.errors import QuasiratioWarning
from quasiratio.losses import Pare
from quasiratio.studies.engine.conduct import STORE_NAME
from quasiratio.studies.output.study_files import RESULTS_NAME
from quasiratio.tasks.store import ResultStore

Rows = Iterator[tuple[str, np.ndarray, dict[str, object]]]


def auto_and_candidates(data: ToyData, seed: int) -> Rows:
    """`AutoRatio`, and its candidates: its error is to be compared with theirs, not with those of other fits."""
    auto, seconds = _timed_fit(qr.AutoRatio(random_state=seed, verbose=False), data)
    for name, candidate in auto.candidates_.items():
        shown = name if name in ("revert", "lsif") else f"{name} in auto"
        yield (
            shown,
            candidate.predict_ratio(data.reference.features),
            {"seconds": candidate.history_.wall_clock},
        )
    yield "auto", auto.predict_ratio(data.reference.features), {"seconds": seconds}


def single(name: str, make: Callable[[int], qr.SignResolvedRatio]) -> Callable[[ToyData, int], Rows]:
    """One estimator, one row."""

    def run(data: ToyData, seed: int) -> Rows:
        estimator, seconds = _timed_fit(make(seed), data)
        facts: dict[str, object] = {"seconds": seconds}
        if estimator.n_members > 1:
            radius = np.hypot(*data.reference.features.T)
            points = data.reference.features[radius < np.quantile(radius, 0.95)][:20_000]
            facts |= pull_summary(
                *estimator.predict_ratio(points, return_std=True), data.case.exact_ratio(points)
            )
        yield name, estimator.predict_ratio(data.reference.features), facts

    return run


def exact(data: ToyData, seed: int) -> Rows:  # noqa: ARG001
    """The exact ratio on the same events."""
    yield "exact", data.case.exact_ratio(data.reference.features), {"seconds": 0.0}


def _mlp(seed: int) -> qr.DirectRatio:
    return qr.DirectRatio(loss="bce", random_state=seed, verbose=False)


METHODS: dict[str, Callable[[ToyData, int], Rows]] = {
    "exact": exact,
    "sign-resolved": single("sign-resolved", lambda s: qr.SignResolvedRatio(random_state=s, verbose=False)),
    "rosmm": single("rosmm", lambda s: qr.SignedMixtureRatio(random_state=s, verbose=False)),
    "auto": auto_and_candidates,
    "sign-resolved x8": single(
        "sign-resolved x8", lambda s: qr.SignResolvedRatio(n_members=8, random_state=s, verbose=False)
    ),
    "mlp-bce": single("mlp-bce", _mlp),
    "pare": single("pare", lambda s: qr.DirectRatio(loss=Pare(), random_state=s, verbose=False)),
    "rosmm_c": single(
        "rosmm_c", lambda s: qr.SignedMixtureRatio(tune="coefficients", random_state=s, verbose=False)
    ),
    "rosmm_r": single("rosmm_r", lambda s: qr.SignedMixtureRatio(tune="all", random_state=s, verbose=False)),
}


_OF_STUDY = {
    "exact": "exact",
    "mlp": "mlp-bce",
    "sign-resolved-x8": "sign-resolved x8",
    "auto": "auto",
    "sign-resolved": "sign-resolved in auto",
    "rosmm": "rosmm in auto",
    "revert": "revert",
    "lsif": "lsif",
}
"""What this table calls the same fit."""
_NUMBERS = ("case", "seed", "chi2", "exact_chi2", "chi2_to_exact", "entropy", "rms", "seconds")


def rows_of_study(directory: Path) -> Iterator[dict]:
    """Yield what a study at the published sizes has found."""
    settings = json.loads((directory / RESULTS_NAME).read_text())["settings"]
    if tuple(settings["sizes"]) != PUBLISHED_SIZES:
        raise SystemExit(f"{directory} has other sizes; expected a study with --preset full.")
    with ResultStore.joined(directory / STORE_NAME, run=0) as store:
        results = [row.values for row in store.rows()]
    exact = {(row["case"], row["seed"]): row["entropy"] for row in results if row["method"] == "exact"}
    for row in results:
        if row["method"] in _OF_STUDY:
            numbers = {name: row[name] for name in _NUMBERS}
            numbers["exact_entropy"] = exact[row["case"], row["seed"]]
            yield {"method": _OF_STUDY[row["method"]], "sizes": PUBLISHED_SIZES, **numbers}


def _timed_fit(estimator, data: ToyData):
    start = time.perf_counter()
    estimator.fit(*data.training, validation=data.validation)
    return estimator, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--cases", default="nonnegative,signed")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--from-study", type=Path, help="directory of a study")
    arguments = parser.parse_args()
    if arguments.from_study is not None:
        done = {(row["case"], row["seed"], row["method"]) for row in read_rows("accuracy")}
        for row in rows_of_study(arguments.from_study):
            if (row["case"], row["seed"], row["method"]) not in done:
                append_row("accuracy", row)
        return
    torch.set_num_threads(arguments.threads)
    for method in arguments.methods.split(","):
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            for case in arguments.cases.split(","):
                done = {(row["case"], row["seed"], row["method"]) for row in read_rows("accuracy")}
                if (case, seed, method) in done:
                    continue
                data = toy_data(case, seed)
                warnings.simplefilter("ignore", QuasiratioWarning)  # judged by the numbers below
                for name, ratio, facts in METHODS[method](data, seed):
                    if (case, seed, name) in done:
                        continue
                    row = {"case": case, "seed": seed, "method": name, "sizes": PUBLISHED_SIZES}
                    row |= data.judge(ratio) | facts
                    append_row("accuracy", row)
                    print(
                        f"{case:12s} seed {seed} {name:18s} chi2 {row['chi2']:9.3f} "
                        f"(exact {row['exact_chi2']:.3f}, ratio {row['chi2_to_exact']:.3f}) "
                        f"rms {row['rms']:.4f} {row['seconds']:.1f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
