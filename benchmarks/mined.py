"""Mined weights against exact coefficient functions, and against what other tools do.

`python -m benchmarks.mined [NAME ...]`: `parton` (gg -> hh, 100,000 training events, both methods), `rounding` (the same with weights of
14 bits), `tails` (joint ratios that reach thousands), `signed` (a reference with negative weights), `sizes` (mined against two samples),
`flipped` (the label of events with negative weight flipped). All when left out; each row is kept as soon as it is there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import quasiratio as qr
from benchmarks.results import append_row
from quasiratio.distributions import LatentAmplitudeCase, LatentExponentialCase, signed_gaussian_case
from quasiratio.generators.gg_hh import generate, weight_points

UNIT = 3.0
POINTS = [
    {},
    *({name: sign * UNIT} for name in ("C_H", "C_uH") for sign in (1, -1)),
    {"C_H": UNIT, "C_uH": UNIT},
]
METHODS = ("regression", "sign-resolved")


def rounded(weights: np.ndarray, bits: int = 14) -> np.ndarray:
    """Keep the leading bits of the mantissa, as nanoAOD does."""
    mantissa, exponent = np.frexp(weights)
    return np.ldexp(np.round(mantissa * 2 ** (bits + 1)) / 2 ** (bits + 1), exponent)


def parton_events(
    n_events: int, seed: int, *, bits: int | None = None
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return features and coefficients of Standard-Model events, in units of three for both Wilson coefficients."""
    events = generate("sm", n_events, seed, parton_level=True, points=weight_points(POINTS))
    weights = np.column_stack([events.columns[name] for name in events.metadata["weight_columns"]])
    basis = qr.PolynomialBasis(["C_H", "C_uH"])
    solved = basis.solve(POINTS, weights if bits is None else rounded(weights, bits))
    columns = events.columns
    features = {
        "ln_m_hh": np.log(columns["m_hh"]),
        "cos_theta": columns["cos_theta"],
        "rapidity": columns["rapidity"],
        "phi": columns["phi"],
    }
    return features, solved.coefficients * basis([UNIT, UNIT])


def parton(*, bits: int | None = None, methods: tuple[str, ...] = METHODS) -> Iterator[dict[str, Any]]:
    """Errors of the coefficient functions and the Fisher information at the Standard Model."""
    features, coefficients = parton_events(100_000, 1, bits=bits)
    test, exact = parton_events(200_000, 2)
    for method in methods:
        start = time.perf_counter()
        model = qr.PolynomialRatio(
            qr.PolynomialBasis(["a", "b"]), method=method, random_state=0, verbose=False
        )
        model.fit(features, coefficients)
        learned = model.predict_coefficients(test)
        rms = np.sqrt(np.mean((learned - exact) ** 2, axis=0) / np.mean(exact**2, axis=0))
        known, found = (c[:, 1:3].T @ c[:, 1:3] / len(c) for c in (exact, learned))
        yield {
            "problem": "parton" if bits is None else f"parton, {bits} bits",
            "method": method,
            "rms_percent": (100 * rms[1:]).round(2).tolist(),
            "information": np.linalg.eigvals(np.linalg.solve(known, found)).real.round(4).tolist(),
            "largest_coefficient": float(np.abs(coefficients).max()),
            "training": str(model.trials_),
            "seconds": round(time.perf_counter() - start),
        }


def tails() -> Iterator[dict[str, Any]]:
    """Joint ratios that reach thousands, in units in which a relative and an absolute error meet."""
    case = LatentExponentialCase()
    X = case.sample(100_000, np.random.default_rng(99)).features
    exact = case.exact_ratio(X)
    for seed in range(3):
        events = case.sample(50_000, np.random.default_rng(seed))
        for method in METHODS:
            model = qr.JointRatio(method=method, random_state=seed, verbose=False).fit(
                events.features, events.mined
            )
            error = model.predict_ratio(X) - exact
            yield {
                "problem": "tails",
                "method": method,
                "seed": seed,
                "largest": float(events.mined.max()),
                "rms": float(np.sqrt(np.mean(error**2))),
                "rms_relative": float(np.sqrt(np.mean(error**2 / (1 + exact**2)))),
            }


def signed() -> Iterator[dict[str, Any]]:
    """A reference with a fifth of negative weights: closed form recovered, and what ignoring the signs gives."""
    case = LatentAmplitudeCase(negative=0.6)
    X = case.sample(50_000, np.random.default_rng(99)).features
    exact = case.exact_coefficients(X)
    events = case.sample(50_000, np.random.default_rng(0))
    for method in METHODS:
        for weights in (events.weights, None):
            model = qr.PolynomialRatio(case.basis, method=method, random_state=0, verbose=False)
            model.fit(events.features, events.mined, weights)
            rms = (
                np.sqrt(np.mean((model.predict_coefficients(X) - exact) ** 2, axis=0))[1:]
                / exact.std(axis=0)[1:]
            )
            yield {
                "problem": "signed reference" if weights is not None else "signs ignored",
                "method": method,
                "negative_fraction": float(np.mean(events.weights < 0)),
                "rms_percent": (100 * rms).round(1).tolist(),
            }


def sizes() -> Iterator[dict[str, Any]]:
    """Mined against two samples, on a toy with smeared features and light tails."""
    case = LatentExponentialCase(slopes=(0.8, -0.5))
    X = case.sample(100_000, np.random.default_rng(99)).features
    exact = case.exact_ratio(X)
    for n_events in (10_000, 30_000, 100_000):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            events = case.sample(n_events, rng)
            mined = qr.JointRatio(random_state=seed, verbose=False).fit(events.features, events.mined)
            two = qr.SignResolvedRatio(random_state=seed, verbose=False)
            two.fit_samples(qr.WeightedSample(events.features), case.target_sample(n_events, rng))
            rms = [float(np.sqrt(np.mean((model.predict_ratio(X) - exact) ** 2))) for model in (mined, two)]
            yield {
                "problem": "sizes",
                "n_events": n_events,
                "seed": seed,
                "rms_mined": rms[0],
                "rms_two_samples": rms[1],
            }


def flipped() -> Iterator[dict[str, Any]]:
    """The label of events with negative weight flipped: what is learned, in closed form and by a network."""
    for name in ("nonnegative", "signed"):
        case = signed_gaussian_case(name)
        rng = np.random.default_rng(0)
        reference, target = case.samples(100_000, rng)
        X = case.samples(50_000, rng)[0].features
        exact = case.exact_ratio(X)
        y = np.repeat([0, 1], 100_000)
        weights = np.concatenate(
            [reference.weights / reference.sum_of_weights, target.weights / target.sum_of_weights]
        )
        events = np.concatenate([reference.features, target.features])
        labels = np.where(weights < 0, 1 - y, y)
        wrong = qr.DirectRatio(loss="bce", random_state=0, normalize=False, verbose=False).fit(
            events, labels, np.abs(weights)
        )
        scale = np.abs(weights[labels == 1]).sum() / np.abs(weights[labels == 0]).sum()
        right = qr.SignResolvedRatio(random_state=0, verbose=False).fit_samples(reference, target)
        yield {
            "problem": "flipped labels",
            "case": name,
            "rms_flipped": float(np.sqrt(np.mean((scale * wrong.predict_ratio(X) - exact) ** 2))),
            "rms_sign_resolved": float(np.sqrt(np.mean((right.predict_ratio(X) - exact) ** 2))),
            "spread_of_ratio": float(exact.std()),
        }


BENCHMARKS = {
    "parton": parton,
    "rounding": lambda: parton(bits=14, methods=("sign-resolved",)),
    "tails": tails,
    "signed": signed,
    "sizes": sizes,
    "flipped": flipped,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or BENCHMARKS:
        for row in BENCHMARKS[name]():
            append_row("mined", row)
            print(row, flush=True)
