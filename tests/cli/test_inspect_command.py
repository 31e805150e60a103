"""`quasiratio inspect` on files of every format."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from quasiratio.cli.main import app


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("inspect")
    rng = np.random.default_rng(0)
    for name, mean, n_events in (("reference", 0.0, 4000), ("target", 0.4, 3000)):
        np.savez(
            directory / f"{name}.npz",
            pt=rng.normal(mean, 1.0, n_events),
            n_jets=rng.poisson(2.0, n_events),
            event=np.arange(n_events),
            w_gen=rng.choice([1.0, -1.0], n_events, p=[0.8, 0.2]),
            w_pu=rng.uniform(0.9, 1.1, n_events),
        )
    return directory


def run(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["inspect", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr


def test_two_samples(files: Path) -> None:
    out, err = run(files / "reference.npz", files / "target.npz", "--weight", "w_gen * w_pu")
    assert err == ""
    assert "Features (2): pt, n_jets\n" in out
    for row in (
        "events                              4000",
        "negative weights",
        "E[W^2 - W]",
        "repeated events",
    ):
        assert row in out
    assert "feature    reference range" in out
    assert "Recommended: --method sign-resolved, because " in out
    assert "\x1b" not in out


def test_one_sample_names_the_command_for_positive_weights(files: Path) -> None:
    out, _ = run(files / "reference.npz", "--weight", "w_gen", "--features", "p*", "--features", "n_jets")
    assert "Features (2): pt, n_jets\n" in out
    assert "quasiratio positive IN" in out
    assert "Recommended" not in out


def test_json_is_all_there_is(files: Path) -> None:
    out, _ = run(files / "reference.npz", files / "target.npz", "--weight", "w_gen", "--json")
    values = json.loads(out)
    assert values["features"] == ["pt", "n_jets"]
    assert values["reference"]["weights"]["n_events"] == 4000
    assert values["recommendation"]["method"] == "sign-resolved"
    assert [entry["name"] for entry in values["overlaps"]] == values["features"]


def test_a_forgotten_weight_is_pointed_out(files: Path) -> None:
    out, err = run(files / "reference.npz", files / "target.npz", "--weight", "1")
    assert "so no features unless asked for by name: 'w_gen', 'w_pu'\nFeatures (2): pt, n_jets\n" in out
    assert err == ""
    assert run(files / "reference.npz", "--features", "pt,w_gen", "--weight", "1")[1] == ""


def test_samples_with_weights_of_different_names(files: Path) -> None:
    out, _ = run(
        files / "reference.npz",
        files / "target.npz",
        "--reference-weight",
        "w_gen",
        "--target-weight",
        "w_pu",
    )
    assert "Features (2): pt, n_jets\n" in out
    assert "because " in out
    assert "of the reference's weights" in out


def test_several_files_and_a_selection(files: Path) -> None:
    both = f"{files / 'reference.npz'},{files / 'target.npz'}"
    out, _ = run(both, "--weight", "w_gen", "--selection", "event < 1000", "--json")
    assert json.loads(out)["reference"]["weights"]["n_events"] == 2000
    out, _ = run(files / "*.npz", "--weight", "w_gen", "--json")
    assert json.loads(out)["reference"]["weights"]["n_events"] == 7000


def test_weights_that_are_not_the_weight_are_no_features_and_a_line_says_so(files: Path) -> None:
    out, err = run(files / "reference.npz", files / "target.npz", "--weight", "w_gen")
    assert err == ""
    assert (
        "Named like weights, so no features unless asked for by name: 'w_pu'\nFeatures (2): pt, n_jets\n"
        in out
    )
    out, _ = run(files / "reference.npz", "--weight", "w_gen", "--features", "pt,w_pu")
    assert "Named like weights" not in out
    assert "Features (2): pt, w_pu\n" in out
