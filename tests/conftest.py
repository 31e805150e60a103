"""Shared by all tests: one thread, a deterministic Hypothesis profile, and the published toys."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import settings

from quasiratio.distributions import signed_gaussian_case
from quasiratio.registry import ACTIVATIONS, ESTIMATORS, FORMATS, LOSSES

torch.set_num_threads(1)  # busy cores and several threads make small networks many times slower
settings.register_profile("quasiratio", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("quasiratio")

Events = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64], npt.NDArray[np.float64]]


@pytest.fixture(scope="session")
def toy() -> Callable[[str, int, int], Events]:
    """Return a function (case, events per class, seed) -> features, labels, signed weights."""

    def draw(case: str, n_per_class: int, seed: int) -> Events:
        reference, target = signed_gaussian_case(case).samples(n_per_class, np.random.default_rng(seed))
        return (
            np.vstack([reference.features, target.features]),
            np.repeat([0, 1], n_per_class),
            np.concatenate([reference.weights, target.weights]),
        )

    return draw


@pytest.fixture(autouse=True)
def registries_as_they_were() -> Iterator[None]:
    """Forget what a test, or the page that it runs, registered: others ask for exactly what is ours."""
    before = [(registry, set(registry)) for registry in (ESTIMATORS, LOSSES, ACTIVATIONS, FORMATS)]
    yield
    for registry, names in before:
        for name in set(registry) - names:
            registry.remove(name)
