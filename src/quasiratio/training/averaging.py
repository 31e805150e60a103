"""Averaging the weights over the last part of a decaying schedule, as a rule its second half.

The last iterate of stochastic gradient descent still carries the noise of the last batches, and slow
directions keep what the noise left there while the rate was high. The mean of the iterates has far less of
it (Polyak and Juditsky 1992; Izmailov et al. 2018), at no cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["WeightAverage"]

_INTERVAL = 5


class WeightAverage:
    """The running mean of parameters from some step on.

    Args:
        parameters: What to average; they keep training untouched.
        first_step: First step that counts, or `None` for never.

    Example:
        >>> weight = nn.Parameter(torch.zeros(1))
        >>> average = WeightAverage([weight], first_step=0)
        >>> for step in range(11):
        ...     _ = weight.data.fill_(float(step))
        ...     average.update(step)
        >>> with average.swapped_in():
        ...     weight.item()
        5.0
        >>> weight.item()
        10.0
    """

    def __init__(self, parameters: Sequence[nn.Parameter], *, first_step: int | None) -> None:
        self.parameters: list[Tensor] = list(parameters)
        self.means = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.first_step = first_step
        self.n_averaged = 0

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take the parameters into the mean, every few steps."""
        if self.first_step is None or step < self.first_step or step % _INTERVAL:
            return
        self.n_averaged += 1
        torch._foreach_lerp_(self.means, self.parameters, 1.0 / self.n_averaged)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Put the mean, where there is one, in the place of the parameters."""
        if self.n_averaged == 0:
            yield
            return
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for mean, parameter in zip(self.means, self.parameters, strict=True):
            mean_values = mean.clone()
            mean.copy_(parameter)
            parameter.copy_(mean_values)

    def state_dict(self) -> dict[str, Any]:
        """Return the mean so far."""
        return {"means": self.means, "n_averaged": self.n_averaged}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from an earlier mean."""
        for mean, saved in zip(self.means, state["means"], strict=True):
            mean.copy_(saved)
        self.n_averaged = state["n_averaged"]
