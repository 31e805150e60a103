"""What the commands do, called from Python: the same files, frozen results, and messages that speak Python."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import quasiratio as qr
from quasiratio.errors import InvalidInputError
from quasiratio.io import open_table, read_metadata

N_EVENTS = 1500


def columns(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "pt": rng.normal(0.3 * seed, 1.0, N_EVENTS),
        "event": np.arange(N_EVENTS),
        "w": rng.choice([1.0, -0.5], N_EVENTS, p=[0.8, 0.2]),
    }


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    directory = tmp_path_factory.mktemp("samples")
    paths = directory / "reference.npz", directory / "target.npz"
    for seed, path in enumerate(paths):
        np.savez(path, **columns(seed))
    return paths


@pytest.fixture(scope="module")
def fitted(samples: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    lines: list[str] = []
    model = tmp_path_factory.mktemp("models") / "model"
    done = qr.workflows.fit_files(
        *samples,
        model,
        weight="w",
        selection="pt < 4",
        max_steps=40,
        n_members=2,
        random_state=0,
        say=lines.append,
    )
    assert lines[0] == "Features (1): pt"
    assert [line.split(":")[0] for line in lines[1:]] == ["Reference", "Target"]
    return done


def test_the_model_of_a_fit_is_the_one_that_was_saved(fitted: Any) -> None:
    X = np.linspace(-1, 1, 7, dtype=np.float32)[:, None]
    loaded = qr.load(fitted.path)
    assert np.array_equal(loaded.predict_ratio(X), fitted.estimator.predict_ratio(X))
    assert fitted.notes.selection == "pt < 4"
    assert fitted.as_dict()["features"] == ["pt"]


def test_a_directory_and_the_estimator_write_the_same_ratios(
    fitted: Any, samples: tuple[Path, Path], tmp_path: Path
) -> None:
    by_path = qr.workflows.apply_files(fitted.path, samples[0], tmp_path / "a.npz", selection="pt < 4")
    by_estimator = qr.workflows.apply_files(
        fitted.estimator, samples[0], tmp_path / "b.npz", weight="w", selection="pt < 4"
    )
    first, second = (next(open_table(tmp_path / name).chunks()) for name in ("a.npz", "b.npz"))
    assert np.array_equal(first["ratio"], second["ratio"])
    assert by_path.weight == by_estimator.weight == "w"
    assert by_path.as_dict()["after"] == by_estimator.as_dict()["after"]
    assert by_path.share_seen > 0.5
    assert read_metadata(tmp_path / "a.npz")["quasiratio"]["model"] == str(fitted.path)
    assert "model" not in read_metadata(tmp_path / "b.npz")["quasiratio"]


def test_an_evaluation_is_a_directory_and_a_verdict(
    fitted: Any, samples: tuple[Path, Path], tmp_path: Path
) -> None:
    done = qr.workflows.evaluate_files(
        fitted.path, *samples, tmp_path / "report", observables=["2 * pt"], n_bins=10
    )
    assert {"report.html", "results.json", "closure-pt.png", "closure-2_pt.pdf"} <= {
        path.name for path in done.path.iterdir()
    }
    assert done.values["verdict"]["status"] == done.verdict.status
    assert [entry.name for entry in done.evaluation.closure.observables] == ["pt", "2 * pt"]
    qr.workflows.evaluate_files(fitted.path, *samples, done.path, n_bins=10)  # its own may be written again
    assert not (done.path / "closure-2_pt.pdf").exists()


def test_inspection_recommends_in_words_of_python(samples: tuple[Path, Path]) -> None:
    found = qr.workflows.inspect_files(*samples, weight="w")
    assert found.features == ("pt",)
    assert found.inspection.recommendation is not None
    assert found.inspection.recommendation.method == "sign-resolved"
    assert any("`n_members=8`" in caution for caution in found.inspection.recommendation.cautions)


def test_results_are_frozen(fitted: Any, samples: tuple[Path, Path]) -> None:
    for result, name in (
        (fitted, "seconds"),
        (qr.workflows.inspect_files(samples[0], weight="w"), "features"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(result, name, None)


def test_messages_name_arguments(fitted: Any, samples: tuple[Path, Path], tmp_path: Path) -> None:
    output = tmp_path / "out.npz"
    output.write_text("mine")
    calls = {
        r"`weight='w'`, or `weight='1'`": lambda: qr.workflows.inspect_files(samples[0]),
        r"`output`, or replace it with `overwrite=True`": lambda: qr.workflows.fit_files(
            *samples, fitted.path, weight="w"
        ),
        r"`output`, or add `overwrite=True`": lambda: qr.workflows.apply_files(
            fitted.path, samples[0], output
        ),
        r"with `ratio_name` and `weight_name`": lambda: qr.workflows.apply_files(
            fitted.path, samples[0], tmp_path / "new.npz", ratio_name="pt"
        ),
        r"with `weight_name`": lambda: qr.workflows.positive_files(
            samples[0], tmp_path / "new.npz", weight="w", weight_name="pt"
        ),
        r"which is a model.*`output`": lambda: qr.workflows.evaluate_files(
            fitted.path, *samples, fitted.path
        ),
    }
    for sentence, call in calls.items():
        with pytest.raises(InvalidInputError, match=sentence):
            call()
    assert output.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out.npz"]
