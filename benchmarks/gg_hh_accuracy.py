"""How well each method reweights the Standard Model to linear SMEFT in gg -> hh.

    quasiratio generate gg-hh --sample sm --events 400000 --seed 1 --jobs 2 -o sm.npz
    quasiratio generate gg-hh --sample linear --events 400000 --seed 1 --jobs 2 -o linear.npz
    python -m benchmarks.gg_hh_accuracy sm.npz linear.npz --seeds 0,1,2
    python -m benchmarks.gg_hh_accuracy sm.npz linear.npz --events full --objects azimuth --methods sign-resolved,exact

Selected events per class, split 65/15/20, the 16 features of the selection with their names, default settings. chi2
with 99 bins of the paper's eight observables on the test events. `--events full` is the size of the paper: 1,194,414
per class, of which 776,369 train, 179,162 validate and 238,883 test (about 1,620,000 generated).

The row `exact` is the ratio of the hard process behind each event, which no detector sees, and so shows what the
fluctuations of the test events alone do; the others are printed with their distance to it. With `--level parton`
(files made with `--parton-level`) it is the ratio to be learned, and the rms error relative to its rms is printed
beside.

`--objects` says which coordinates the networks get: `none` those of the file, with the azimuths as angles; `azimuth`
the four muons and the jet as objects, azimuths measured from the hardest muon, as nothing in a collision of unpolarised
protons prefers a direction about the beam; `mirror` besides takes mirror images in phi and eta for the same, as both
protons are alike and the couplings conserve CP. `--invariants` adds masses and distances of all pairs of objects. None
of these has m_hh or the pair's pT among its coordinates. But the square of m_hh is nearly the sum of the six squared
masses of the muons' pairs, which makes its way to the network short: so `azimuth` without invariants is the fair row
for what a symmetry alone does, and `invariants` is a row of its own.

`--learning-rate` and `--weight-decay` take the place of the default; with both nothing is tried, which is how the settings of
`docs/decisions.md` were compared, on split 100.
"""

from __future__ import annotations

import argparse
import time
import warnings
from statistics import median

import numpy as np
import torch

import quasiratio as qr
from benchmarks.results import append_row, read_rows
from quasiratio.errors import QuasiratioWarning
from quasiratio.generators.gg_hh import FEATURES, OBJECTS, PARTON_FEATURES
from quasiratio.io import open_table

NAME = "gg_hh_accuracy"
OBSERVABLES = {
    "particle": ("mu1_pt", "mu2_pt", "mu3_pt", "mu4_pt", "jet_pt", "jet_m", "hh_pt", "m_hh"),
    "parton": PARTON_FEATURES,
}
METHODS = ("sign-resolved", "rosmm", "revert", "auto", "bce", "exact")
SYMMETRIES = {"none": None, "azimuth": ["azimuth"], "mirror": ["azimuth", "reflection", "eta"]}
FULL_SIZE = 1_194_414
_FRACTIONS = (0.65, 0.15, 0.20)
_EXACT = "truth_ratio_linear"
_INFINITE = 1e6
Columns = dict[str, np.ndarray]


def read(path: str, n_events: int, names: tuple[str, ...]) -> Columns:
    """Return some columns of the first events of a generated file."""
    chunks = list(open_table(path).chunks(names))
    columns = {name: np.concatenate([chunk[name] for chunk in chunks])[:n_events] for name in names}
    if len(columns["weight"]) < n_events:
        raise SystemExit(f"{path} has {len(columns['weight'])} events; generate more for {n_events}.")
    return columns


def split(columns: Columns, rng: np.random.Generator) -> list[Columns]:
    """Split at random into training, validation and test events."""
    n_events = len(columns["weight"])
    bounds = np.round(np.cumsum(_FRACTIONS)[:-1] * n_events).astype(int)
    parts = np.split(rng.permutation(n_events), bounds)
    return [{name: values[part] for name, values in columns.items()} for part in parts]


def sample(columns: Columns, names: tuple[str, ...]) -> qr.WeightedSample:
    """Return columns as features with their names."""
    matrix = np.column_stack([columns[name] for name in names]).astype(np.float32)
    return qr.WeightedSample(matrix, columns["weight"], names)


def coordinates(arguments: argparse.Namespace) -> tuple[str, dict]:
    """Return what the choice of coordinates is called in a row, and its hyperparameters."""
    symmetry = SYMMETRIES[arguments.objects]
    if symmetry is None:
        if arguments.invariants:
            raise SystemExit("--invariants need --objects azimuth or mirror.")
        return "none", {}
    if arguments.level != "particle":
        raise SystemExit("--objects are those of the particle level.")
    name = arguments.objects + ("+invariants" if arguments.invariants else "")
    return name, {"objects": OBJECTS, "symmetry": symmetry, "invariants": arguments.invariants}


def fitted_ratios(methods: list[str], training: tuple, validation: tuple, test: np.ndarray, options: dict):
    """Fit the methods one after the other and yield their ratios; what `AutoRatio` has fitted is not fitted again."""
    candidates: dict = {}
    for method in sorted(methods, key=lambda name: name != "auto"):
        start = time.perf_counter()
        if method in candidates:
            model = candidates[method]
            start -= model.history_.wall_clock
        else:
            made = {
                "auto": qr.AutoRatio,
                "sign-resolved": qr.SignResolvedRatio,
                "rosmm": qr.SignedMixtureRatio,
                "revert": qr.DirectRatio,
                "bce": qr.DirectRatio,
            }[method]
            loss = {"loss": method} if made is qr.DirectRatio else {}
            model = made(verbose=False, **loss, **options).fit_samples(*training, validation=validation)
        if method == "auto":
            candidates = model.candidates_
            print(model.report_, flush=True)
        yield method, model.predict_ratio(test), time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reference")
    parser.add_argument("target")
    parser.add_argument("--level", choices=OBSERVABLES, default="particle")
    parser.add_argument("--events", default="300000", help="selected events per class, or 'full'")
    parser.add_argument("--seeds", default="0,1,2", help="seeds of splits and fits, such as 0,1,2")
    parser.add_argument("--methods", default="sign-resolved,auto,exact", help=f"some of {','.join(METHODS)}")
    parser.add_argument("--objects", choices=SYMMETRIES, default="none")
    parser.add_argument("--invariants", action="store_true")
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--weight-decay", type=float)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    warnings.simplefilter("ignore", QuasiratioWarning)  # judged by the numbers below
    methods = arguments.methods.split(",")
    if unknown := [method for method in methods if method not in METHODS]:
        raise SystemExit(f"Got the method {unknown[0]!r}; expected some of {', '.join(METHODS)}.")
    n_events = FULL_SIZE if arguments.events == "full" else int(arguments.events)
    objects, options = coordinates(arguments)
    given = {name: getattr(arguments, name) for name in ("learning_rate", "weight_decay")}
    given = {name: value for name, value in given.items() if value is not None}
    objects += "".join(f", {name} {value:g}" for name, value in given.items())
    key = {"level": arguments.level, "events": n_events, "objects": objects}
    features = FEATURES if arguments.level == "particle" else PARTON_FEATURES
    names = tuple(dict.fromkeys([*features, *OBSERVABLES[arguments.level], "weight", _EXACT]))
    seeds = [int(text) for text in arguments.seeds.split(",")]
    samples: list[Columns] = []
    for seed in seeds:
        left = [method for method in methods if not rows_of(key, method, seed)]
        if not left:
            continue
        samples = samples or [read(path, n_events, names) for path in (arguments.reference, arguments.target)]
        rng = np.random.default_rng(seed)
        training, held_out, test = zip(*(split(one, rng) for one in samples), strict=True)
        if "exact" in left:
            record(key, seed, "exact", test[0][_EXACT], 0.0, *test)
            left.remove("exact")
        fits = fitted_ratios(
            left,
            tuple(sample(one, features) for one in training),
            tuple(sample(one, features) for one in held_out),
            sample(test[0], features).features,
            options | given | {"random_state": seed},
        )
        for method, ratios, seconds in fits:
            record(key, seed, method, ratios, seconds, *test)
    for method in methods:
        summarise(key, method, seeds)


def rows_of(key: dict, method: str, seed: int) -> list[dict]:
    """Return the stored row of one fit, if it is there; the hard process has no coordinates."""
    wanted = key | {"method": method, "seed": seed}
    if method == "exact":
        del wanted["objects"]
    return [row for row in read_rows(NAME) if all(row.get(name) == value for name, value in wanted.items())]


def record(
    key: dict,
    seed: int,
    method: str,
    ratios: np.ndarray,
    seconds: float,
    reference: Columns,
    target: Columns,
) -> None:
    """Judge the ratios on the test events; print and store a row."""
    names = OBSERVABLES[key["level"]]
    is_finite = np.abs(ratios) < _INFINITE
    finite = np.where(is_finite, ratios, 0.0)
    result = qr.metrics.closure(
        qr.WeightedSample({name: reference[name] for name in names}, reference["weight"]),
        finite,
        qr.WeightedSample({name: target[name] for name in names}, target["weight"]),
    )
    row = key | {"seed": seed, "method": method, "n_test": len(ratios), "seconds": round(seconds, 1)}
    row["infinite"] = float(np.mean(~is_finite))  # such events are left out below
    row["chi2"] = {name: result[name]["ratio"].chi_squared.value for name in names}
    row["entropy"] = {name: result[name]["ratio"].relative_entropy.value for name in names}
    if key["level"] == "parton":
        exact = reference[_EXACT]
        row["relative_rms"] = float(np.sqrt(np.mean((finite - exact) ** 2) / np.mean(exact**2)))
    append_row(NAME, row)
    print(
        f"seed {seed} {method:14s} {shown(row['chi2'], above(row))} infinite {row['infinite']:.1%} "
        f"{row.get('relative_rms', '')} {seconds:.0f} s",
        flush=True,
    )


def above(row: dict) -> dict[str, float] | None:
    """Return, per observable, by how much a chi2/ndof is above that of the hard process on the same events."""
    if row["method"] == "exact" or "objects" not in row:
        return None
    key = {name: row[name] for name in ("level", "events", "objects")}
    exact = rows_of(key, "exact", row["seed"])
    return {name: value - exact[0]["chi2"][name] for name, value in row["chi2"].items()} if exact else None


def shown(chi2: dict[str, float], differences: dict[str, float] | None) -> str:
    """Return a line of chi2/ndof, with the differences to the hard process in brackets."""
    return " ".join(
        f"{name} {value:.2f}" + ("" if differences is None else f" ({differences[name]:+.2f})")
        for name, value in chi2.items()
    )


def summarise(key: dict, method: str, seeds: list[int]) -> None:
    """Print medians over seeds."""
    rows = [row for seed in seeds for row in rows_of(key, method, seed)]
    names = OBSERVABLES[key["level"]]
    chi2 = {name: median(row["chi2"][name] for row in rows) for name in names}
    differences = [above(row) for row in rows]
    known = [one for one in differences if one is not None]
    middle = {name: median(one[name] for one in known) for name in names} if known else None
    print(f"median of {len(rows)} {key['objects']} {method:14s} {shown(chi2, middle)}", flush=True)


if __name__ == "__main__":
    main()
