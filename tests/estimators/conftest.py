"""Small fitted estimators of every kind, each fitted when a test first asks for it."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
import torch
from torch import Tensor

import quasiratio as qr
from quasiratio.errors import QuasiratioWarning
from quasiratio.losses import Pare, RatioLoss, Revert
from quasiratio.registry import ESTIMATORS

QUICK: dict[str, Any] = {
    "max_steps": 40, "batch_size": 256, "hidden_layers": (6, 5), "random_state": 0, "verbose": False, "device": "cpu",
}  # fmt: skip
ENSEMBLE = {**QUICK, "n_members": 3}
Events = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float64]]


class TangentLink:
    """A link that quasiratio does not have."""

    ratio_range = (-math.inf, math.inf)

    def ratio(self, raw: Tensor) -> Tensor:
        return torch.tan(raw)

    def raw(self, ratio: Tensor) -> Tensor:
        return torch.atan(ratio)


@dataclass(frozen=True)
class Angle(RatioLoss):
    """A loss that quasiratio does not have, with a parameter."""

    sharpness: float = 1.0

    name = "angle"
    link = TangentLink()
    requires_positive = ()

    def reference(self, raw: Tensor) -> Tensor:
        return -self.sharpness * torch.cos(raw)

    def target(self, raw: Tensor) -> Tensor:
        return -self.sharpness * torch.sin(raw)


def signed_events(n: int = 1200, *, reference: bool = True, target: bool = True, seed: int = 0) -> Events:
    """Two overlapping samples, one feature heavy-tailed, with negative weights where asked for."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = np.column_stack([rng.normal(size=n) + 0.3 * y, rng.lognormal(1.0 + 0.1 * y, 1.0, n)]).astype(
        np.float32
    )
    may_be_negative = np.where(y == 1, target, reference)
    return X, y, np.where(may_be_negative & (rng.random(n) < 0.15), -0.4, rng.uniform(0.5, 1.5, n))


def frame(X: npt.NDArray[np.float32]) -> pd.DataFrame:
    return pd.DataFrame(X, columns=["mass", "p_T <b>µ</b>"])


def fit_ratio(estimator: Any, *, named: bool = False, **signs: bool) -> Any:
    X, y, w = signed_events(**signs)
    return estimator.fit(frame(X) if named else X, y, sample_weight=w)


def fit_direct(loss: str) -> Any:
    is_signed = loss in ("lsif", "revert", "pare")
    return fit_ratio(qr.DirectRatio(loss=loss, **QUICK), reference=False, target=is_signed)


def fit_reweighter(estimator: Any) -> Any:
    X, y, w = signed_events()
    return estimator.fit(X[y == 0], X[y == 1], w[y == 0], w[y == 1])


CANDIDATES = {
    "one": qr.DirectRatio(loss=Pare(eps=0.1), **QUICK),
    "two: µ": qr.SignedMixtureRatio(tune="coefficients", tune_loss="lsif", **QUICK),
    "three": qr.SignResolvedRatio(**{**QUICK, "hidden_layers": [4]}),
}


def fit_registered(method: str) -> Any:
    return fit_ratio(ESTIMATORS[method](**{**QUICK, "n_members": 2}), reference=False, target=False)


RATIOS: dict[str, Callable[[], Any]] = {
    **{f"registered {method}": functools.partial(fit_registered, method) for method in ESTIMATORS.methods()},
    **{f"direct {loss}": functools.partial(fit_direct, loss) for loss in qr.losses.LOSSES},
    "direct pare auto": lambda: fit_ratio(qr.DirectRatio(loss=Pare(eps="auto"), **ENSEMBLE), reference=False),
    "direct pare pair": lambda: fit_ratio(qr.DirectRatio(loss=Pare(100, 1), **QUICK), named=True),
    "direct revert object": lambda: fit_ratio(qr.DirectRatio(loss=Revert(), **ENSEMBLE), reference=False),
    "direct bce ensemble": lambda: fit_ratio(
        qr.DirectRatio(**ENSEMBLE, activation="gelu"), reference=False, target=False
    ),
    "mixture": lambda: fit_ratio(qr.SignedMixtureRatio(**QUICK, activation="tanh")),
    "mixture ensemble": lambda: fit_ratio(qr.SignedMixtureRatio(**ENSEMBLE), named=True),
    "mixture signed target": lambda: fit_ratio(qr.SignedMixtureRatio(**ENSEMBLE), reference=False),
    "mixture signed reference": lambda: fit_ratio(qr.SignedMixtureRatio(**QUICK), target=False),
    "mixture unsigned": lambda: fit_ratio(qr.SignedMixtureRatio(**QUICK), reference=False, target=False),
    "mixture coefficients": lambda: fit_ratio(qr.SignedMixtureRatio(tune="coefficients", **ENSEMBLE)),
    "mixture all": lambda: fit_ratio(
        qr.SignedMixtureRatio(tune="all", tune_loss="lsif", balanced_draw=True, **ENSEMBLE)
    ),
    "resolved": lambda: fit_ratio(qr.SignResolvedRatio(**QUICK, activation="relu"), named=True),
    "resolved ensemble": lambda: fit_ratio(qr.SignResolvedRatio(**ENSEMBLE, normalize=False)),
    "resolved signed target": lambda: fit_ratio(qr.SignResolvedRatio(**QUICK), reference=False),
    "resolved signed reference": lambda: fit_ratio(qr.SignResolvedRatio(**QUICK), target=False),
    "resolved unsigned": lambda: fit_ratio(qr.SignResolvedRatio(**QUICK), reference=False, target=False),
    "resolved tuned": lambda: fit_ratio(qr.SignResolvedRatio(tune="all", **QUICK)),
    "resolved tuned pare": lambda: fit_ratio(
        qr.SignResolvedRatio(tune="all", tune_loss=Pare(eps="auto"), **ENSEMBLE)
    ),
    "resolved tuned revert": lambda: fit_ratio(
        qr.SignResolvedRatio(tune="all", tune_loss="revert", **ENSEMBLE)
    ),
    "resolved linear": lambda: fit_ratio(qr.SignResolvedRatio(**{**QUICK, "hidden_layers": ()})),
    "auto": lambda: fit_ratio(qr.AutoRatio(**ENSEMBLE), named=True),
    "auto candidates": lambda: fit_ratio(qr.AutoRatio(candidates=CANDIDATES, **QUICK)),
    "auto one candidate": lambda: fit_ratio(qr.AutoRatio(candidates={"only": CANDIDATES["three"]}, **QUICK)),
}
REWEIGHTERS: dict[str, Callable[[], Any]] = {
    "reweighter": lambda: fit_reweighter(qr.Reweighter(qr.SignResolvedRatio(**ENSEMBLE))),
    "reweighter folds": lambda: fit_reweighter(
        qr.Reweighter(qr.SignedMixtureRatio(**QUICK), total="original", n_folds=3)
    ),
    "reweighter auto folds": lambda: fit_reweighter(
        qr.Reweighter(qr.AutoRatio(candidates=CANDIDATES, **QUICK), n_folds=2)
    ),
}


def _fit_positive(*, reference: bool, **options: Any) -> Any:
    X, _, w = signed_events(reference=reference, target=reference)
    return qr.PositiveReweighter(**{**QUICK, **options}).fit(frame(X), w)


POSITIVE: dict[str, Callable[[], Any]] = {
    "positive": lambda: _fit_positive(reference=True),
    "positive ensemble": lambda: _fit_positive(reference=True, n_members=3),
    "positive without negative weights": lambda: _fit_positive(reference=False),
}
FITS = {**RATIOS, **REWEIGHTERS, **POSITIVE}
_CACHE: dict[str, Any] = {}


def _fitted(kind: str) -> Any:
    if kind not in _CACHE:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", QuasiratioWarning)  # so few steps may fit badly
            _CACHE[kind] = FITS[kind]()
    return _CACHE[kind]


@pytest.fixture(scope="session")
def fitted_estimator() -> Callable[[str], Any]:
    """Return a function from the name of a fit to the fitted estimator; no test may change it."""
    return _fitted


@pytest.fixture(scope="session")
def user_loss() -> type[Angle]:
    """Return the class of a loss that quasiratio does not have."""
    return Angle


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that takes `ratio_kind`, `weights_kind` or `any_kind` every fit of that sort."""
    for name, kinds in (("ratio_kind", RATIOS), ("weights_kind", REWEIGHTERS | POSITIVE), ("any_kind", FITS)):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, list(kinds))
