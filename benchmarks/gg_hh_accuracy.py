"""How well each method reweights the Standard Model to linear SMEFT in gg -> hh.

    quasiratio generate gg-hh --sample sm --events 400000 --seed 1 --jobs 2 -o sm.npz
    quasiratio generate gg-hh --sample linear --events 400000 --seed 1 --jobs 2 -o linear.npz
    python -m benchmarks.gg_hh_accuracy sm.npz linear.npz --level particle --seeds 3

300 000 events per class, split 65/15/20, the 16 features of the selection, default settings. chi2 with 99 bins of
the paper's eight observables on the test events. The row `exact` is the ratio of the hard process behind each
event, which no detector sees, and so shows what the fluctuations of the test events alone do. With `--level
parton` (files made with `--parton-level`) it is the ratio to be learned, and the rms error relative to its rms
is printed beside.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import append_row, read_rows
from quasiratio.errors import QuasiratioWarning
from quasiratio.generators.gg_hh import FEATURES, PARTON_FEATURES
from quasiratio.io import open_table

OBSERVABLES = {
    "particle": ("mu1_pt", "mu2_pt", "mu3_pt", "mu4_pt", "jet_pt", "jet_m", "hh_pt", "m_hh"),
    "parton": PARTON_FEATURES,
}
_FRACTIONS = (0.65, 0.15, 0.20)
_INFINITE = 1e6
Columns = dict[str, np.ndarray]


def read(path: str, n_events: int) -> Columns:
    """Return the first events of a generated file."""
    chunks = list(open_table(path).chunks())
    columns = {name: np.concatenate([chunk[name] for chunk in chunks])[:n_events] for name in chunks[0]}
    if len(columns["weight"]) < n_events:
        raise SystemExit(f"{path} has {len(columns['weight'])} events; generate more for {n_events}.")
    return columns


def split(columns: Columns, rng: np.random.Generator) -> list[Columns]:
    """Split at random into training, validation and test events."""
    n_events = len(columns["weight"])
    bounds = np.round(np.cumsum(_FRACTIONS)[:-1] * n_events).astype(int)
    parts = np.split(rng.permutation(n_events), bounds)
    return [{name: values[part] for name, values in columns.items()} for part in parts]


def labelled(reference: Columns, target: Columns, features: tuple[str, ...]) -> tuple:
    """Put both classes into arrays for `fit`."""
    matrices = [np.column_stack([part[name] for name in features]) for part in (reference, target)]
    return (
        np.concatenate(matrices).astype(np.float32),
        np.repeat([0, 1], [len(matrix) for matrix in matrices]),
        np.concatenate([reference["weight"], target["weight"]]),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reference")
    parser.add_argument("target")
    parser.add_argument("--level", choices=OBSERVABLES, default="particle")
    parser.add_argument("--events", type=int, default=300_000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore", QuasiratioWarning)  # judged by the numbers below
    features = FEATURES if arguments.level == "particle" else PARTON_FEATURES
    samples = [read(path, arguments.events) for path in (arguments.reference, arguments.target)]
    for seed in (int(text) for text in arguments.seeds.split(",")):
        if any((row["level"], row["seed"]) == (arguments.level, seed) for row in read_rows("gg_hh_accuracy")):
            continue
        rng = np.random.default_rng(seed)
        (reference, target), held_out, test = zip(*(split(sample, rng) for sample in samples), strict=True)
        training = labelled(reference, target, features)
        validation = labelled(*held_out, features)
        start = time.perf_counter()
        auto = qr.AutoRatio(random_state=seed, verbose=False).fit(*training, validation=validation)
        print(auto.report_, f"{time.perf_counter() - start:.0f} s", flush=True)
        matrix = np.column_stack([test[0][name] for name in features]).astype(np.float32)
        ratios = {name: model.predict_ratio(matrix) for name, model in auto.candidates_.items()}
        record(arguments.level, seed, ratios | {"auto": auto.predict_ratio(matrix)}, *test)
        bce = qr.DirectRatio(loss="bce", random_state=seed, verbose=False)
        bce.fit(*training, validation=validation)
        record(arguments.level, seed, {"bce": bce.predict_ratio(matrix)}, *test)


def record(level: str, seed: int, ratios: dict[str, np.ndarray], reference: Columns, target: Columns) -> None:
    """Judge the ratios on the test events; print and store one row per method."""
    names = OBSERVABLES[level]
    exact = reference["truth_ratio_linear"]
    if "auto" in ratios:
        ratios = ratios | {"exact": exact}
    finite = {method: np.where(np.abs(ratio) < _INFINITE, ratio, 0.0) for method, ratio in ratios.items()}
    result = qr.metrics.closure(
        qr.WeightedSample({name: reference[name] for name in names}, reference["weight"]),
        finite,
        qr.WeightedSample({name: target[name] for name in names}, target["weight"]),
    )
    for method, ratio in ratios.items():
        row = {"level": level, "seed": seed, "method": method, "n_test": len(ratio)}
        row["infinite"] = float(np.mean(~(np.abs(ratio) < _INFINITE)))  # such events are left out below
        row["chi2"] = {name: result[name][method].chi_squared.value for name in names}
        row["entropy"] = {name: result[name][method].relative_entropy.value for name in names}
        if level == "parton":
            row["relative_rms"] = float(np.sqrt(np.mean((finite[method] - exact) ** 2) / np.mean(exact**2)))
        append_row("gg_hh_accuracy", row)
        shown = " ".join(f"{name} {value:.2f}" for name, value in row["chi2"].items())
        print(
            f"{level} seed {seed} {method:14s} {shown} infinite {row['infinite']:.1%} {row.get('relative_rms', '')}",
            flush=True,
        )


if __name__ == "__main__":
    main()
