"""A model of format 2, which every later version must load: a reweighter of two folds with two members each.

One feature is an angle; densities, checks and trials are noted. Neither the model nor the expected numbers may ever be
written anew. On the kind of machine that wrote them, with the same libraries, the numbers are the same to the bit.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import quasiratio as qr
from quasiratio.estimators import describe

HERE = Path(__file__).parent / "format_2"


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return dict(json.loads((HERE / "expected.json").read_text(encoding="utf-8")))


def test_it_predicts_what_it_predicted_then(expected: dict[str, Any]) -> None:
    model = qr.load(HERE / "model", expected=qr.Reweighter)
    at = qr.WeightedSample({name: np.array(values) for name, values in expected["columns"].items()})
    here = [
        platform.machine(),
        torch.backends.cpu.get_cpu_capability(),
        torch.__version__,
        np.__version__,
    ]
    is_same = here == expected["made_with"]
    for values, name in ((model.predict_weights(at), "weights"), (model.predict_members(at), "members")):
        if is_same:
            np.testing.assert_array_equal(values, np.array(expected[name]))
        np.testing.assert_allclose(values, np.array(expected[name]), rtol=2e-5)


def test_it_is_what_it_was(tmp_path: Path) -> None:
    content = describe(HERE / "model")
    assert content.notes == {"made with": "format 2"}
    model = qr.load(HERE / "model", expected=qr.Reweighter)
    assert (model.n_folds, model.n_members, model.feature_list()) == (2, 2, ["mass", "phi"])
    assert model.ratios_[0].periodic_features_ == ["phi"]
    assert model.fit_check_.status in ("good", "unknown", "failed")
    model.save(tmp_path / "model", notes=content.notes)
    assert qr.load(tmp_path / "model", expected=qr.Reweighter).scale_ == model.scale_
