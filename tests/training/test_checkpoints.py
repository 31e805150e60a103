"""An interrupted fit that is resumed ends in the same bits as one that was not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch
from tests.quick_ratios import quick_ratios

import quasiratio as qr
from quasiratio.distributions import signed_gaussian_case
from quasiratio.errors import InvalidInputError
from quasiratio.training import resumable
from quasiratio.training.checkpoints import StageCheckpoint

SMALL: dict[str, Any] = {
    "hidden_layers": (8,),
    "batch_size": 200,
    "max_steps": 100,
    "random_state": 3,
    "device": "cpu",
    "verbose": False,
}
ESTIMATORS: dict[str, Callable[[], Any]] = {
    **quick_ratios(
        SMALL, direct={"loss": "revert"}, rosmm={"tune": "all"}, sign_resolved={"n_members": 3}, auto={}
    ),
    "published schedule": lambda: qr.SignResolvedRatio(
        **SMALL | {"schedule": "constant", "epoch_size": 400, "patience": 2, "max_steps": 400}
    ),
}


class _Killed(Exception):
    pass


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, Any]:
    reference, target = signed_gaussian_case("signed").samples(1500, np.random.default_rng(1))
    return (
        np.concatenate([reference.features, target.features]),
        np.repeat([0, 1], [len(reference), len(target)]),
        np.concatenate([reference.weights, target.weights]),
    )


pytestmark = pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")  # tiny fits


def _fitted(make: Callable[[], Any], data: Any) -> Any:
    return make().fit(*data)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_saves", [1, 7, 25])
def test_a_killed_fit_ends_as_if_it_had_not_been(
    name: str, n_saves: int, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, n_left = StageCheckpoint.save, n_saves

    def killed_after_saving(self: StageCheckpoint, state: dict[str, Any]) -> None:
        nonlocal n_left
        save(self, state)
        n_left -= 1
        if n_left == 0:
            raise _Killed

    with monkeypatch.context() as patch:
        patch.setattr(StageCheckpoint, "save", killed_after_saving)
        with resumable(tmp_path, "key"):
            try:
                _fitted(ESTIMATORS[name], data)
                was_killed = False
            except _Killed:
                was_killed = True
    assert was_killed or n_saves == 25
    with resumable(tmp_path, "key"):
        resumed = _fitted(ESTIMATORS[name], data)
    uninterrupted = _fitted(ESTIMATORS[name], data)
    assert np.array_equal(resumed.predict_ratio(data[0]), uninterrupted.predict_ratio(data[0]))
    if name != "auto":
        assert resumed.history_.steps == uninterrupted.history_.steps
        assert np.array_equal(
            resumed.history_.validation_curves(), uninterrupted.history_.validation_curves()
        )
        assert resumed.history_.best_epoch.tolist() == uninterrupted.history_.best_epoch.tolist()


def test_a_finished_training_is_not_repeated(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = ESTIMATORS["direct"]
    with resumable(tmp_path, "key"):
        first = _fitted(make, data)
    monkeypatch.setattr(torch.optim.AdamW, "step", None)  # a single step would fail
    with resumable(tmp_path, "key"):
        second = _fitted(make, data)
    assert np.array_equal(first.predict_ratio(data[0]), second.predict_ratio(data[0]))


def test_the_state_of_another_fit_is_refused(data: Any, tmp_path: Path) -> None:
    with resumable(tmp_path, "one"):
        _fitted(ESTIMATORS["direct"], data)
    with (
        resumable(tmp_path, "other"),
        pytest.raises(InvalidInputError, match="other data, features or options"),
    ):
        _fitted(ESTIMATORS["direct"], data)


def test_a_damaged_state_is_refused_with_a_sentence(data: Any, tmp_path: Path) -> None:
    with resumable(tmp_path, "key"):
        _fitted(ESTIMATORS["direct"], data)
    path = max(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:100])
    with resumable(tmp_path, "key"), pytest.raises(InvalidInputError, match="fit from the start"):
        _fitted(ESTIMATORS["direct"], data)


def test_a_state_that_was_edited_by_hand_fails_its_checksum(data: Any, tmp_path: Path) -> None:
    with resumable(tmp_path, "key"):
        _fitted(ESTIMATORS["direct"], data)
    path = max(tmp_path.iterdir())
    with safetensors.safe_open(path, framework="pt") as file:
        facts = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    name = next(name for name, tensor in tensors.items() if tensor.is_floating_point() and tensor.numel())
    edited = tensors | {name: tensors[name] + 1.0}
    for changed, metadata in (
        (edited, facts),
        (tensors, facts | {"tree": facts["tree"].replace("pairs", "pears", 1)}),
        (tensors, facts | {"sha256": "0" * 64}),
        (tensors, {fact: text for fact, text in facts.items() if fact != "sha256"}),
    ):
        safetensors.torch.save_file(changed, path, metadata=metadata)
        with (
            resumable(tmp_path, "key"),
            pytest.raises(InvalidInputError, match="delete it and fit from the start"),
        ):
            _fitted(ESTIMATORS["direct"], data)
    safetensors.torch.save_file(tensors, path, metadata=facts)
    with resumable(tmp_path, "key"):
        _fitted(ESTIMATORS["direct"], data)


def test_outside_nothing_is_written(data: Any, tmp_path: Path) -> None:
    with resumable(tmp_path, "key"):
        pass
    _fitted(ESTIMATORS["direct"], data)
    assert list(tmp_path.iterdir()) == []
