"""Save and load: the same bits, parameters and reports for every estimator; refusals in one sentence."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from torch import Tensor

import quasiratio as qr
from quasiratio.errors import InvalidInputError
from quasiratio.estimators.loading import describe
from quasiratio.estimators.persistent import TemplateDocument
from quasiratio.losses import Bce, RatioLoss
from quasiratio.ratios import RatioModel
from quasiratio.registry import ESTIMATORS
from quasiratio.training import TrainingHistory

Fitted = Callable[[str], Any]


def sample(n: int = 500) -> np.typing.NDArray[np.float32]:
    rng = np.random.default_rng(7)
    return np.column_stack([rng.normal(size=n), rng.lognormal(1.0, 1.0, n)]).astype(np.float32)


def require_same(one: Any, two: Any, where: str = "estimator") -> None:
    """Compare everything inside, bit by bit, and every type."""
    assert type(one) is type(two), where
    if isinstance(one, BaseEstimator | TrainingHistory | RatioLoss) or dataclasses.is_dataclass(one):
        require_same(vars(one), vars(two), where)
    elif isinstance(one, RatioModel):
        require_same(dict(one.state_dict()), dict(two.state_dict()), where)
        for name in ("loss", "pairs", "classes", "tuned_with", "output_noise", "n_members"):
            require_same(getattr(one, name, None), getattr(two, name, None), f"{where}.{name}")
        assert one.network.activation == two.network.activation
        devices = [{p.device for p in model.parameters()} for model in (one, two)]
        assert devices[0] == devices[1], where
    elif isinstance(one, dict):
        assert list(one) == list(two) or set(one) == set(two), where
        for key, value in one.items():
            require_same(value, two[key], f"{where}.{key}")
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), where
        for index, (a, b) in enumerate(zip(one, two, strict=True)):
            require_same(a, b, f"{where}[{index}]")
    elif isinstance(one, Tensor):
        assert torch.equal(one, two), where
        assert one.dtype == two.dtype, where
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, two, err_msg=where)
        assert one.dtype == two.dtype, where
    elif isinstance(one, float) and np.isnan(one):
        assert np.isnan(two), where
    else:
        assert one == two, where


def predictions(estimator: Any) -> list[Any]:
    X = sample()
    if isinstance(estimator, qr.PositiveReweighter):
        return [estimator.predict_weights(X, np.linspace(-1, 2, len(X)))]
    if isinstance(estimator, qr.Reweighter):
        return [estimator.predict_weights(X, np.linspace(-1, 2, len(X))), estimator.predict_ratio(X)]
    several = [*estimator.predict_ratio(X, return_std=True)] if estimator.n_members > 1 else []
    return [estimator.predict_ratio(X), estimator.predict_members(X), *several]


pytestmark = [
    pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning"),  # fits of a few steps
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]


def test_every_estimator_comes_back_with_the_same_bits(
    any_kind: str, fitted_estimator: Fitted, tmp_path: Path
) -> None:
    estimator = fitted_estimator(any_kind)
    estimator.save(tmp_path / "model")
    assert {path.name for path in (tmp_path / "model").iterdir()} - {"times.json"} == {
        "model.json",
        "weights.safetensors",
    }
    state = torch.get_rng_state()
    again = qr.load(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), state)
    require_same(estimator, again)
    for one, two in zip(predictions(estimator), predictions(again), strict=True):
        assert np.array_equal(one, two)


def test_a_second_trip_writes_the_same_bytes(any_kind: str, fitted_estimator: Fitted, tmp_path: Path) -> None:
    fitted_estimator(any_kind).save(tmp_path / "first")
    qr.load(tmp_path / "first").save(tmp_path / "second")
    for name in ("model.json", "weights.safetensors"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_another_process_predicts_the_same_bits(fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator = fitted_estimator("auto")
    estimator.save(tmp_path / "model")
    np.save(tmp_path / "x.npy", sample())
    script = (
        "import sys, numpy as np, torch, quasiratio as qr; torch.set_num_threads(1);"
        "X = np.load(sys.argv[1] + '/x.npy');"
        "np.save(sys.argv[1] + '/r.npy', qr.load(sys.argv[1] + '/model').predict_ratio(X, return_std=True))"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script, str(tmp_path)], check=True)
    np.testing.assert_array_equal(
        np.load(tmp_path / "r.npy"), estimator.predict_ratio(sample(), return_std=True)
    )


def test_what_a_loaded_model_can_do(fitted_estimator: Fitted, tmp_path: Path) -> None:
    """Not only predict: names are checked, the score works, it can be fitted again."""
    estimator = fitted_estimator("resolved")
    estimator.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    assert list(again.feature_names_in_) == ["mass", "p_T <b>µ</b>"]
    with pytest.raises(InvalidInputError, match="feature names should match"):
        again.predict_ratio({"mass": [1.0], "other": [2.0]})
    with pytest.raises(InvalidInputError, match="features"):
        again.predict_ratio(np.zeros((2, 3), np.float32))
    y = np.arange(500) % 2
    assert again.score(sample(), y) == estimator.score(sample(), y)
    assert again.history_.n_steps == 40
    refitted = again.fit(sample(), y)
    assert refitted.predict_ratio(sample()).shape == (500,)


def test_the_document_says_what_the_model_is(fitted_estimator: Fitted, tmp_path: Path) -> None:
    estimator = fitted_estimator("mixture ensemble")
    estimator.save(tmp_path / "model", notes={"weight": "w_gen*w_pu", "cuts": [1, 2.5, None, True]})
    document = json.loads((tmp_path / "model" / "model.json").read_text(encoding="utf-8"))
    assert (document["format"], document["format_version"]) == ("quasiratio model", 3)
    assert document["versions"]["quasiratio"] == qr.__version__
    assert set(document["versions"]) == {"quasiratio", "numpy", "scikit-learn", "torch", "python"}
    content = document["estimator"]
    assert content["kind"] == "SignedMixtureRatio"
    assert content["features"]["names"] == ["mass", "p_T <b>µ</b>"]
    assert content["model"]["scaling"]["uses_log"] == [False, True]
    scaling = content["model"]["scaling"]
    assert all(low < high for low, high in zip(scaling["floor"], scaling["ceiling"], strict=True))
    assert content["model"]["network"]["hidden_layers"] == [6, 5]
    np.testing.assert_array_equal(content["model"]["coefficients"], estimator.coefficients_)
    assert content["history"]["n_steps"] == 40
    assert content["fingerprint"]["n_events"] == 1200
    notes = describe(tmp_path / "model").notes
    assert notes == {"weight": "w_gen*w_pu", "cuts": [1, 2.5, None, True]}


def test_notes_must_be_json(fitted_estimator: Fitted, tmp_path: Path) -> None:
    for bad in ({"a": object()}, {"a": float("nan")}, {1: "a"}, {"a": {"b": {1, 2}}}):
        with pytest.raises(InvalidInputError, match="notes"):
            fitted_estimator("resolved").save(tmp_path / "model", notes=bad)
    assert not (tmp_path / "model").exists()


def unfitted(kind: Any) -> Any:
    """An estimator with default parameters; a polynomial one needs its basis."""
    return kind(qr.PolynomialBasis(["a"], order=2)) if kind is qr.PolynomialRatio else kind()


@pytest.mark.parametrize("kind", ESTIMATORS.values())
def test_documents_have_exactly_the_parameters_of_the_estimators(kind: Any) -> None:
    """A new hyperparameter must find its place in the file, and come back from it."""
    document = unfitted(kind).parameter_document()
    assert set(type(document).model_fields) == set(unfitted(kind).get_params(deep=False))
    assert type(document) is kind.parameters_type  # ours are declared, with their limits
    again = kind.from_parameters(type(document).model_validate_json(document.model_dump_json()), {})
    assert type(again) is kind
    require_same(again.get_params(deep=False), unfitted(kind).get_params(deep=False))


def test_every_public_estimator_has_a_place_in_the_laws_and_in_the_files() -> None:
    public = {
        one
        for one in (getattr(qr, name) for name in qr.__all__)
        if isinstance(one, type) and issubclass(one, BaseEstimator)
    }
    assert public == set(ESTIMATORS.values())


@pytest.mark.parametrize("kind", ESTIMATORS.values())
def test_a_template_is_the_one_of_its_class(kind: Any) -> None:
    """The name of the class in the file decides which parameters are read: each must have its own."""
    template = unfitted(kind).template()
    assert isinstance(template, TemplateDocument)
    allowed: Any = Literal[kind.__name__]
    assert type(template).model_fields["kind"].annotation == allowed
    assert type(template).model_fields["parameters"].annotation is kind.parameters_type
    assert type(template.restored({})) is kind


def test_a_generator_as_random_state_leaves_its_seed(tmp_path: Path) -> None:
    X, y = sample(), np.arange(500) % 2
    options: dict[str, Any] = {"max_steps": 5, "hidden_layers": np.array([4]), "verbose": False}
    estimator = qr.SignResolvedRatio(random_state=np.random.RandomState(3), **options).fit(X, y)
    estimator.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    assert again.random_state is None
    assert again.seed_ == estimator.seed_
    assert again.hidden_layers == (4,)
    np.testing.assert_array_equal(again.predict_ratio(X), estimator.predict_ratio(X))


def test_numpy_numbers_are_stored_as_numbers(tmp_path: Path) -> None:
    X, y = sample(), np.arange(500) % 2
    estimator = qr.SignResolvedRatio(
        max_steps=np.int64(5), learning_rate=np.float32(0.01), random_state=np.int32(4), verbose=0,  # type: ignore[arg-type]
    ).fit(X, y)  # fmt: skip
    estimator.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    assert again.get_params() == estimator.get_params()
    assert type(again.max_steps) is int


def test_an_unfitted_estimator_is_not_saved(tmp_path: Path) -> None:
    for estimator in (qr.SignResolvedRatio(), qr.AutoRatio(), qr.Reweighter(), qr.PositiveReweighter()):
        with pytest.raises(NotFittedError):
            estimator.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_device_that_is_not_here_becomes_the_processor(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    estimator = qr.SignResolvedRatio(max_steps=5, verbose=False, random_state=0).fit(
        sample(), np.arange(500) % 2
    )
    estimator.device = "cuda:1"
    estimator.save(tmp_path / "model")
    again = qr.load(tmp_path / "model")
    assert again.device == "cuda:1"
    estimator.device = "cpu"
    np.testing.assert_array_equal(again.predict_ratio(sample()), estimator.predict_ratio(sample()))


class Subclass(qr.SignResolvedRatio):
    pass


def test_a_subclass_is_refused(tmp_path: Path) -> None:
    estimator = Subclass(max_steps=5, verbose=False).fit(sample(), np.arange(500) % 2)
    with pytest.raises(InvalidInputError, match="class Subclass, which model files do not know"):
        estimator.save(tmp_path / "model")


@pytest.fixture(scope="module")
def saved_with_user_loss(user_loss: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    place = tmp_path_factory.mktemp("user") / "model"
    estimator = qr.DirectRatio(
        loss=user_loss(sharpness=2.0),
        max_steps=20,
        hidden_layers=(4,),
        n_members=2,
        random_state=0,
        verbose=False,
    ).fit(sample(), np.arange(500) % 2)
    estimator.save(place)
    return estimator, place


def test_a_user_loss_must_be_given(saved_with_user_loss: tuple[Any, Path]) -> None:
    with pytest.raises(InvalidInputError, match=r"needs the loss 'angle' .*losses=\{'angle': YourLoss\}"):
        qr.load(saved_with_user_loss[1])
    with pytest.raises(InvalidInputError, match="needs the loss 'angle'"):
        qr.load(saved_with_user_loss[1], losses={"other": Bce})


@pytest.mark.parametrize("as_instance", [False, True])
def test_given_the_user_loss_it_predicts_the_same(
    saved_with_user_loss: tuple[Any, Path], user_loss: Any, as_instance: bool
) -> None:
    estimator, place = saved_with_user_loss
    again = qr.load(place, losses={"angle": user_loss(sharpness=2.0) if as_instance else user_loss})
    require_same(estimator, again)
    np.testing.assert_array_equal(
        again.predict_ratio(sample(), return_std=True), estimator.predict_ratio(sample(), return_std=True)
    )


def test_another_loss_than_the_users_is_refused(
    saved_with_user_loss: tuple[Any, Path], user_loss: Any
) -> None:
    place = saved_with_user_loss[1]
    for wrong in (user_loss(sharpness=3.0), Bce(), "angle", object):
        with pytest.raises(InvalidInputError, match="for the loss 'angle'"):
            qr.load(place, losses={"angle": wrong})  # type: ignore[dict-item]


def test_parameters_of_a_loss_that_cannot_be_stored_are_refused(user_loss: Any, tmp_path: Path) -> None:
    loss = user_loss(sharpness=torch.tensor(1.0))
    estimator = qr.DirectRatio(loss=loss, max_steps=5, hidden_layers=(4,), verbose=False)
    estimator.fit(sample(), np.arange(500) % 2)
    with pytest.raises(InvalidInputError, match="'sharpness', which cannot be stored"):
        estimator.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
