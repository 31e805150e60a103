"""Mined weights against exact coefficient functions, and against what other tools do.

`python -m benchmarks.mined [NAME ...] [--seeds 0 1 2]`, all that need no files when no name is given:

- `parton`: gg -> hh, 100,000 training events, both methods (`--mass`: with ln m_hh instead of the velocity);
  `rounding`: the same with weights of 14 bits;
- `tails`: a squared amplitude whose coefficients reach thousands; `signed`: a reference with negative weights;
- `sizes`: mined against two samples, a toy with smeared features; `flipped`: the label of events with negative weight flipped;
- `particle --on FILE --off FILE`: share of the information of the hard process that is reached, with photon radiation and without;
- `particle_sizes --off FILE --target FILE`: mined against two samples at particle level, without photons.

The files are those of `quasiratio generate gg-hh --sample sm --points benchmarks/points.yaml` (with `--no-photons` for `--off`) and
`--sample linear --no-photons` (several of them by a pattern); 300,000 events need `--events 520000` of the first and 410,000 of the
last. Every row has a key; rows that are there are skipped, so that a run can be repeated until it is complete.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import quasiratio as qr
from benchmarks.problems import TailCase
from benchmarks.results import append_row, read_rows
from quasiratio.distributions import LatentAmplitudeCase, LatentExponentialCase, signed_gaussian_case
from quasiratio.generators.gg_hh import generate, weight_points
from quasiratio.generators.gg_hh.selection import OBJECTS
from quasiratio.workflows import read_eft_sample

UNIT = 3.0
POINTS = [
    {},
    *({name: sign * UNIT} for name in ("C_H", "C_uH") for sign in (1, -1)),
    {"C_H": UNIT, "C_uH": UNIT},
]
METHODS = ("regression", "sign-resolved")
HIGGS_PAIR = 250.0
Row = dict[str, Any]
Rows = Iterator[tuple[str, Callable[[], Row]]]


def rounded(weights: np.ndarray, bits: int = 14) -> np.ndarray:
    """Keep the leading bits of the mantissa, as nanoAOD does."""
    mantissa, exponent = np.frexp(weights)
    return np.ldexp(np.round(mantissa * 2 ** (bits + 1)) / 2 ** (bits + 1), exponent)


def information(exact: np.ndarray, learned: np.ndarray, weights: np.ndarray | None = None) -> list[float]:
    r"""Return which share of the Fisher information at the reference the learned functions keep, in its two principal directions.

    That of the best linear statistic in the learned functions, $E[c f^T]\,E[f f^T]^{-1}\,E[f c^T]$, over $E[c c^T]$: noise of the
    functions is no information, and cannot bring it above one.
    """
    w = np.ones(len(exact)) if weights is None else weights
    cc, cf, ff = (
        (one * w[:, None]).T @ other / w.sum()
        for one, other in ((exact, exact), (exact, learned), (learned, learned))
    )
    kept = cf @ np.linalg.solve(ff, cf.T)
    return sorted(np.linalg.eigvals(np.linalg.solve(cc, kept)).real.round(4).tolist())


def rms(learned: np.ndarray, exact: np.ndarray) -> float:
    """Return the rms error."""
    return float(np.sqrt(np.mean((learned - exact) ** 2)))


def bulk_rms(learned: np.ndarray, exact: np.ndarray) -> float:
    """Return the rms error without the thousandth of the events where it is largest: a few decide about the whole."""
    errors = np.sort(np.abs(learned - exact))
    return float(np.sqrt(np.mean(errors[: len(errors) - len(errors) // 1000] ** 2)))


def rms_percent(learned: np.ndarray, exact: np.ndarray) -> list[float]:
    """Return the rms error of each function but the first, in per cent of its rms."""
    relative = np.sqrt(np.mean((learned - exact) ** 2, axis=0) / np.mean(exact**2, axis=0))
    return (100 * relative[1:]).round(2).tolist()


def parton_events(
    n_events: int, seed: int, *, bits: int | None = None, mass: bool = False
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return features and coefficients of Standard-Model events, in units of three for both Wilson coefficients.

    Near the threshold the amplitude of the Standard Model almost vanishes, and the coefficients rise to hundreds within one per cent
    of the mass. The velocity of the Higgs bosons, sqrt(1 - (2 m_h / m_hh)^2), resolves that; the logarithm of the mass does not, and
    the few events there are learned by heart instead, by features that have nothing to do with it.
    """
    events = generate("sm", n_events, seed, parton_level=True, points=weight_points(POINTS))
    weights = np.column_stack([events.columns[name] for name in events.metadata["weight_columns"]])
    basis = qr.PolynomialBasis(["C_H", "C_uH"])
    solved = basis.solve(POINTS, weights if bits is None else rounded(weights, bits))
    columns = events.columns
    m_hh = columns["m_hh"]
    features = {
        **({"ln_m_hh": np.log(m_hh)} if mass else {"velocity": np.sqrt(1 - (HIGGS_PAIR / m_hh) ** 2)}),
        "cos_theta": columns["cos_theta"],
        "rapidity": columns["rapidity"],
        "phi": columns["phi"],
    }
    return features, solved.coefficients * basis([UNIT, UNIT])


def parton(options: argparse.Namespace, *, bits: int | None = None) -> Rows:
    """Errors of the coefficient functions and the Fisher information at the Standard Model."""
    what = "parton" if bits is None else f"parton, {bits} bits"
    what += ", logarithm of the mass" if options.mass else ""
    n_events = options.events or 100_000

    def row(method: str, seed: int) -> Row:
        features, coefficients = parton_events(n_events, 2 * seed + 1, bits=bits, mass=options.mass)
        test, exact = parton_events(2 * n_events, 2 * seed + 2, mass=options.mass)
        start = time.perf_counter()
        model = qr.PolynomialRatio(
            qr.PolynomialBasis(["a", "b"]), method=method, random_state=seed, verbose=False
        )
        model.fit(features, coefficients)
        learned = model.predict_coefficients(test)
        return {
            "problem": what,
            "method": method,
            "seed": seed,
            "n_events": n_events,
            "rms_percent": rms_percent(learned, exact),
            "information": information(exact[:, 1:3], learned[:, 1:3]),
            "largest_coefficient": float(np.abs(coefficients).max()),
            "training": str(model.trials_),
            "seconds": round(time.perf_counter() - start),
        }

    for seed in options.seeds:
        for method in METHODS:
            yield f"{what} {method} {n_events} {seed}", lambda m=method, s=seed: row(m, s)


def tails(options: argparse.Namespace) -> Rows:
    """Coefficients that reach thousands: absolute errors, and errors in units of sqrt(1 + rho^2)."""
    case, n_events = TailCase(), options.events or 100_000

    def row(method: str, seed: int) -> Row:
        X = case.sample(100_000, np.random.default_rng(1000 + seed))[0]
        exact = case.exact(X)
        features, coefficients = case.sample(n_events, np.random.default_rng(seed))
        model = qr.PolynomialRatio(case.basis, method=method, random_state=seed, verbose=False)
        learned = model.fit(features, coefficients).predict_coefficients(X)
        error = (learned - exact)[:, 1:]
        return {
            "problem": "tails",
            "method": method,
            "seed": seed,
            "n_events": n_events,
            "largest": float(np.abs(coefficients).max()),
            "rms_percent": rms_percent(learned, exact),
            "rms_relative_percent": (100 * np.sqrt(np.mean(error**2 / (1 + exact[:, 1:] ** 2), axis=0)))
            .round(2)
            .tolist(),
        }

    for seed in options.seeds:
        for method in METHODS:
            yield f"tails {method} {n_events} {seed}", lambda m=method, s=seed: row(m, s)


def signed(options: argparse.Namespace) -> Rows:
    """A reference with a fifth of negative weights: closed form recovered, and what ignoring the signs gives."""
    case, n_events = LatentAmplitudeCase(negative=0.6), options.events or 50_000

    def row(method: str, seed: int, *, ignored: bool) -> Row:
        X = case.sample(50_000, np.random.default_rng(1000 + seed)).features
        exact = case.exact_coefficients(X)
        events = case.sample(n_events, np.random.default_rng(seed))
        model = qr.PolynomialRatio(case.basis, method=method, random_state=seed, verbose=False)
        model.fit(events.features, events.mined, None if ignored else events.weights)
        error = np.sqrt(np.mean((model.predict_coefficients(X) - exact) ** 2, axis=0))[1:]
        return {
            "problem": "signs ignored" if ignored else "signed reference",
            "method": method,
            "seed": seed,
            "n_events": n_events,
            "negative_fraction": float(np.mean(events.weights < 0)),
            "rms_percent": (100 * error / exact.std(axis=0)[1:]).round(1).tolist(),
        }

    for seed in options.seeds:
        for method in METHODS:
            for ignored in (False, True):
                key = f"signed {method} {n_events} {seed}{' ignored' * ignored}"
                yield key, lambda m=method, s=seed, i=ignored: row(m, s, ignored=i)


def sizes(options: argparse.Namespace) -> Rows:
    """Mined against two samples, on a toy with smeared features and light tails."""
    case = LatentExponentialCase(slopes=(0.8, -0.5))

    def row(n_events: int, seed: int) -> Row:
        X = case.sample(100_000, np.random.default_rng(1000 + seed)).features
        exact = case.exact_ratio(X)
        rng = np.random.default_rng(seed)
        events = case.sample(n_events, rng)
        mined = [
            qr.JointRatio(method=method, random_state=seed, verbose=False).fit(events.features, events.mined)
            for method in METHODS
        ]
        two = qr.SignResolvedRatio(random_state=seed, verbose=False)
        two.fit_samples(qr.WeightedSample(events.features), case.target_sample(n_events, rng))
        regression, classifier, compared = (model.predict_ratio(X) for model in (*mined, two))
        as_given = classifier * mined[-1].learned_means_[0]  # what normalize=False gives
        return {
            "problem": "sizes",
            "n_events": n_events,
            "seed": seed,
            "rms_regression": rms(regression, exact),
            "rms_mined": rms(classifier, exact),
            "rms_two_samples": rms(compared, exact),
            "rms_mined_as_given": rms(as_given, exact),
        }

    for n_events in options.sizes or (10_000, 30_000, 100_000):
        for seed in options.seeds:
            yield f"sizes {n_events} {seed}", lambda n=n_events, s=seed: row(n, s)


def flipped(options: argparse.Namespace) -> Rows:
    """The label of events with negative weight flipped: what is learned, in closed form and by a network."""
    n_events = options.events or 100_000

    def row(name: str, seed: int) -> Row:
        case = signed_gaussian_case(name)
        rng = np.random.default_rng(seed)
        reference, target = case.samples(n_events, rng)
        X = case.samples(50_000, rng)[0].features
        exact = case.exact_ratio(X)
        y = np.repeat([0, 1], n_events)
        weights = np.concatenate(
            [reference.weights / reference.sum_of_weights, target.weights / target.sum_of_weights]
        )
        events = np.concatenate([reference.features, target.features])
        labels = np.where(weights < 0, 1 - y, y)
        wrong = qr.DirectRatio(loss="bce", random_state=seed, normalize=False, verbose=False).fit(
            events, labels, np.abs(weights)
        )
        scale = np.abs(weights[labels == 1]).sum() / np.abs(weights[labels == 0]).sum()
        right = qr.SignResolvedRatio(random_state=seed, verbose=False).fit_samples(reference, target)
        return {
            "problem": "flipped labels",
            "case": name,
            "seed": seed,
            "n_events": n_events,
            "rms_flipped": rms(scale * wrong.predict_ratio(X), exact),
            "rms_sign_resolved": rms(right.predict_ratio(X), exact),
            "spread_of_ratio": float(exact.std()),
        }

    for name in ("nonnegative", "signed"):
        for seed in options.seeds:
            yield f"flipped {name} {n_events} {seed}", lambda c=name, s=seed: row(c, s)


PARTICLE: dict[str, Any] = {
    "objects": OBJECTS,
    "symmetry": "azimuth:mu1",
    "invariants": True,
    "verbose": False,
}


def particle_features(table: qr.io.Table) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the features of the paper with the velocity of the Higgs bosons in their frame, from the muons, and all other columns."""
    names = table.files[0].metadata()["features"]
    chunks = list(table.chunks())
    columns = {name: np.concatenate([chunk[name] for chunk in chunks]) for name in table.numeric_columns()}
    features = {name: columns[name] for name in names}
    features["velocity"] = np.sqrt(np.maximum(0.0, 1 - (HIGGS_PAIR / columns["m_hh"]) ** 2))
    return features, columns


def taken(features: dict[str, np.ndarray], index: Any) -> dict[str, np.ndarray]:
    """Return these events."""
    return {name: values[index] for name, values in features.items()}


def particle(options: argparse.Namespace) -> Rows:
    """Share of the information of the hard process that is reached at particle level, which bounds it from above."""

    def row(file: Path, method: str, seed: int, *, photons: bool) -> Row:
        sample = read_eft_sample(file, pattern="rwgt*")
        X, _ = particle_features(sample.table)
        c, w = sample.coefficients * sample.basis([UNIT, UNIT]), sample.reference_weights
        n_test = min(len(c) // 5, 100_000)
        n_train = min(options.events or len(c), len(c) - n_test)
        start = time.perf_counter()
        model = qr.PolynomialRatio(
            qr.PolynomialBasis(["a", "b"]), method=method, random_state=seed, **PARTICLE
        )
        model.fit(taken(X, slice(n_train)), c[:n_train], w[:n_train])
        learned = model.predict_coefficients(taken(X, slice(-n_test, None)))
        return {
            "problem": "particle, photons" if photons else "particle, no photons",
            "method": method,
            "seed": seed,
            "n_events": n_train,
            "rms_percent": rms_percent(learned, c[-n_test:]),
            "information": information(c[-n_test:, 1:3], learned[:, 1:3], w[-n_test:]),
            "training": str(model.trials_),
            "seconds": round(time.perf_counter() - start),
        }

    for file, photons in ((options.on, True), (options.off, False)):
        for seed in options.seeds if file is not None else ():
            for method in METHODS:
                key = f"particle {'on' if photons else 'off'} {method} {options.events or 'all'} {seed}"
                yield key, lambda f=file, m=method, s=seed, p=photons: row(f, m, s, photons=p)


def particle_sizes(options: argparse.Namespace) -> Rows:
    """Mined against two samples at particle level; without photons the features determine the hard process, and so the ratio."""
    if options.off is None or options.target is None:
        return

    def row(n_events: int, seed: int) -> Row:
        (X, reference), (Y, target) = (
            particle_features(qr.io.open_table(file)) for file in (options.off, options.target)
        )
        exact, total = reference["truth_ratio_linear"], len(reference["weight"])
        n_test, rng = min(total // 5, 100_000), np.random.default_rng(seed)
        left, right = (rng.permutation(n)[:n_events] for n in (total - n_test, len(target["weight"])))
        if len(left) < n_events or len(right) < n_events:
            msg = f"Got files of {total} and {len(target['weight'])} events; expected {n_events} of each, and a fifth more of the first."
            raise SystemExit(msg)
        test, r = taken(X, slice(-n_test, None)), exact[-n_test:] / exact.mean()
        mined = qr.JointRatio(random_state=seed, **PARTICLE).fit(taken(X, left), exact[left])
        two = qr.SignResolvedRatio(random_state=seed, **PARTICLE).fit_samples(
            qr.WeightedSample(taken(X, left), reference["weight"][left]),
            qr.WeightedSample(taken(Y, right), target["weight"][right]),
        )
        return {
            "problem": "particle sizes",
            "n_events": n_events,
            "seed": seed,
            "rms_mined": rms(mined.predict_ratio(test), r),
            "rms_two_samples": rms(two.predict_ratio(test), r),
            "bulk_mined": bulk_rms(mined.predict_ratio(test), r),
            "bulk_two_samples": bulk_rms(two.predict_ratio(test), r),
            "spread_of_ratio": float(r.std()),
        }

    for n_events in options.sizes or (10_000, 100_000, 300_000):
        for seed in options.seeds:
            yield f"particle_sizes {n_events} {seed}", lambda n=n_events, s=seed: row(n, s)


BENCHMARKS: dict[str, Callable[[argparse.Namespace], Rows]] = {
    "parton": parton,
    "rounding": lambda options: parton(options, bits=14),
    "tails": tails,
    "signed": signed,
    "sizes": sizes,
    "flipped": flipped,
    "particle": particle,
    "particle_sizes": particle_sizes,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing, and keep every row as soon as it is there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], default=[])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--sizes", type=int, nargs="+")
    parser.add_argument("--events", type=int, help="training events, instead of the default of a benchmark")
    parser.add_argument(
        "--mass", action="store_true", help="parton: ln m_hh as a feature, and not the velocity"
    )
    parser.add_argument("--on", type=Path, help="Standard-Model sample with points and photon radiation")
    parser.add_argument("--off", type=Path, help="the same without photons")
    parser.add_argument("--target", type=Path, help="linear sample without photons")
    parser.add_argument("--dry", action="store_true", help="print the rows and keep nothing")
    options = parser.parse_args(arguments)
    for name in options.names or BENCHMARKS:
        known = {row.get("key") for row in read_rows("mined")}
        for key, measure in BENCHMARKS[name](options):
            if key in known and not options.dry:
                print(f"{key}: there already", flush=True)
                continue
            row = {"key": key, **measure()}
            if not options.dry:
                append_row("mined", row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
