"""The same seed gives the same files, models are not replaced unasked, and are read once."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.quick_ratios import quick_ratios

import quasiratio as qr
from quasiratio.errors import InvalidInputError
from quasiratio.registry import ESTIMATORS
from quasiratio.workflows.fitted_model import load_ratio_model

QUICK: dict[str, Any] = {
    "max_steps": 20, "batch_size": 256, "hidden_layers": (4,), "verbose": False, "device": "cpu",
}  # fmt: skip


def fitted(kind: str, seed: int = 0) -> Any:
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    X, w = rng.normal(size=(600, 1)) + 0.2 * y[:, None], rng.choice([1.0, -0.2], 600, p=[0.9, 0.1])
    options = {**QUICK, "random_state": seed}
    if kind in ESTIMATORS.methods():
        return quick_ratios(options)[kind]().fit(X, y, w)
    coefficients = np.column_stack([np.ones(600), X[:, 0], X[:, 0] ** 2])
    ratio = qr.SignedMixtureRatio(tune="all", **options)
    others: dict[str, Callable[[], Any]] = {
        "positive": lambda: qr.PositiveReweighter(**options).fit(X, w),
        "reweighter": lambda: qr.Reweighter(ratio, n_folds=2).fit(X[y == 0], X[y == 1], w[y == 0], w[y == 1]),
        "variations": lambda: qr.VariationReweighter(qr.SignResolvedRatio(**options)).fit(
            X[y == 0],
            X[y == 1],
            target_weight={"nominal": w[y == 1], "up": w[y == 1] * (1.0 + 0.1 * (X[y == 1, 0] > 0))},
        ),
        "joint": lambda: qr.JointRatio(**options).fit(X, np.exp(X[:, 0])),
        "polynomial": lambda: qr.PolynomialRatio(qr.PolynomialBasis(["a"], 2), **options).fit(
            X, coefficients
        ),
    }
    return others[kind]()


pytestmark = pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
KINDS = list(ESTIMATORS.built_in)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_files(kind: str, tmp_path: Path) -> None:
    for name in ("one", "two"):
        model = fitted(kind)
        model.save(tmp_path / name)
        model.export_onnx(tmp_path / f"{name}.onnx")
    for file in ("model.json", "weights.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert (tmp_path / "one.onnx").read_bytes() == (tmp_path / "two.onnx").read_bytes()


def test_wall_clock_times_come_back_from_beside_the_model(tmp_path: Path) -> None:
    model = fitted("reweighter")
    model.save(tmp_path / "model")
    for saved, again in zip(model.ratios_, qr.load(tmp_path / "model").ratios_, strict=True):
        assert again.history_.seconds == saved.history_.seconds
        assert again.tuning_history_.seconds == saved.tuning_history_.seconds


@pytest.mark.parametrize(
    "content", [None, "", "{}", '{"model": "x", "seconds": {}}', "[" * 100_000, "\udcff"]
)
def test_a_model_without_its_times_is_the_same_model(tmp_path: Path, content: str | None) -> None:
    model = fitted("sign-resolved")
    model.save(tmp_path / "model")
    times = tmp_path / "model" / "times.json"
    if content is None:
        times.unlink()
    else:
        times.write_bytes(content.encode("utf-8", "surrogateescape"))
    again = qr.load(tmp_path / "model")
    assert np.all(np.isnan(again.history_.seconds))
    assert np.array_equal(again.predict_ratio([[0.1]]), model.predict_ratio([[0.1]]))


def test_times_of_another_model_are_not_taken(tmp_path: Path) -> None:
    for seed in (0, 1):
        fitted("sign-resolved", seed).save(tmp_path / str(seed))
    (tmp_path / "0" / "times.json").write_bytes((tmp_path / "1" / "times.json").read_bytes())
    assert np.all(np.isnan(qr.load(tmp_path / "0").history_.seconds))


def test_a_model_is_replaced_if_that_is_asked_for_and_other_files_never(tmp_path: Path) -> None:
    first, second = fitted("sign-resolved", 0), fitted("sign-resolved", 1)
    first.save(tmp_path / "model")
    before = (tmp_path / "model" / "model.json").read_bytes()
    with pytest.raises(InvalidInputError, match="overwrite=True"):
        second.save(tmp_path / "model")
    assert (tmp_path / "model" / "model.json").read_bytes() == before
    second.save(tmp_path / "model", overwrite=True)
    assert qr.load(tmp_path / "model").seed_ == second.seed_
    (tmp_path / "model" / "thesis.tex").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(InvalidInputError, match=r"other files.*thesis\.tex"):
            second.save(tmp_path / "model", overwrite=overwrite)
    (tmp_path / "empty").mkdir()
    second.save(tmp_path / "empty")


def test_a_model_that_is_replaced_meanwhile_keeps_its_own_notes(tmp_path: Path) -> None:
    models = [fitted("sign-resolved", seed) for seed in (0, 1)]
    seeds = {str(model.seed_) for model in models}
    path, done = tmp_path / "model", threading.Event()

    def replace() -> None:
        while not done.is_set():
            for model in models:
                model.save(path, notes={"fit": {"selection": str(model.seed_)}}, overwrite=True)

    models[0].save(path, notes={"fit": {"selection": str(models[0].seed_)}})
    writer = threading.Thread(target=replace)
    writer.start()
    seen = set()
    try:
        for n_loaded in range(1000):  # until both were met: which of two threads runs when is not ours to say
            loaded = load_ratio_model(path)
            assert loaded.notes.selection == str(loaded.estimator.seed_)
            seen.add(loaded.notes.selection)
            if n_loaded >= 60 and seen == seeds:
                break
    finally:
        done.set()
        writer.join()
    assert seen == seeds
    assert json.loads((path / "model.json").read_text())["notes"]["fit"]["selection"] in seeds
