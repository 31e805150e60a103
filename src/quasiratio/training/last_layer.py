r"""The last layer of trained networks, solved on all training events with what the other layers give it.

In the last layer cross-entropy is convex (but for the caps of sign odds, close to it), and has a minimum that steps with noisy
batches and weight decay only come near. There the gradient vanishes,

$$\sum_i |w_i|\,\bigl(\delta_{k k_i} - \pi_k(x_i)\bigr)\,h_j(x_i) = 0$$

for every class $k$ and every hidden unit $j$: the classes close, on the training events, in each of the functions $h_j$ that the
network has made for itself, and so in every observable that these describe. What training leaves of it is little in the
risk, and much in a histogram: on gg -> hh, whose target changes its sign at an edge, it was one sign over whole ranges of
the mass.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from quasiratio.training.trainer import TrainedNetworks
from quasiratio.training.validation import Verdict, standard_error

if TYPE_CHECKING:
    from torch import nn

    from quasiratio.ratios import RatioModel
    from quasiratio.training.batches import Batch, Pool
    from quasiratio.training.objectives import Objective

__all__ = ["solve_last_layer", "with_solved_last_layer"]

_ITERATIONS, _REMEMBERED = 16, 20
"""Of L-BFGS. On split 102 of gg -> hh the mass closes better up to about so many (chi2/ndof above the hard process's 1.59 before,
0.55, 0.47, 0.32 and 0.41 after 4, 8, 16 and 30), and with more of them the validation risk rises again."""
_MOST_ACTIVATIONS = 2**28
"""Numbers that are kept, one GiB; of larger samples every second or third event is used."""
_CHUNK = 2**14
_WORSE_ERRORS = 2.0
_LEAST_SPREAD = 1e-6


def with_solved_last_layer(
    trained: TrainedNetworks,
    view: nn.Module,
    model: RatioModel,
    objective: Objective,
    features: Tensor,
    pools: Sequence[Pool],
    validation: Batch,
) -> TrainedNetworks:
    """Solve the last layer of each network, and keep it unless its validation risk is higher by two standard errors.

    What it does for the risk is about one such error, either way; closure on the training events is what it is for.

    Args:
        trained: What the training has left in the model.
        view: The model as the training saw it.
        model: The model.
        objective: What was minimised, with weights that are not negative.
        features: Scaled features.
        pools: Training events of each network of a member.
        validation: As in the training.
    """
    start = time.perf_counter()
    last = (model.network.weights[-1], model.network.biases[-1])
    before = [parameter.detach().clone() for parameter in last]
    risks = solve_last_layer(model, objective, features, pools)
    verdict = Verdict.of(view, objective, validation)
    difference = (verdict.losses - trained.losses).double()
    kept = difference.mean(dim=1) <= _WORSE_ERRORS * standard_error(difference)
    with torch.no_grad():
        for parameter, earlier in zip(last, before, strict=True):
            parameter[~kept] = earlier[~kept]
    history = trained.history
    seconds = history.wall_clock + time.perf_counter() - start
    history.append(history.n_steps, np.array(risks), verdict.risk.cpu().numpy(), 0.0, seconds)
    history.best_epoch = np.where(kept.cpu().numpy(), len(history) - 1, history.best_epoch)
    return TrainedNetworks(history, torch.where(kept[:, None], verdict.losses, trained.losses))


def solve_last_layer(
    model: RatioModel, objective: Objective, features: Tensor, pools: Sequence[Pool]
) -> list[float]:
    """Bring the last layer of each network to the lowest risk of its training events, and return that risk.

    Args:
        model: The trained model; network `k * n_pools + p` is that of member `k` for pool `p`.
        objective: What is minimised.
        features: Scaled features.
        pools: Training events of each network of a member.
    """
    risks = []
    for number in range(model.network.n_networks):
        member, pool = number // len(pools), pools[number % len(pools)]
        step = math.ceil(len(pool) * len(model.network.weights[-1][number]) / _MOST_ACTIVATIONS)
        chosen = slice(None, None, step)
        events = features[chosen] if pool.events is None else features[pool.events[chosen]]
        with torch.no_grad():
            hidden = [model.network.last_hidden(part, number) for part in _parts(events)]
        layer = _Layer(model.network.weights[-1][number], model.network.biases[-1][number], hidden)
        classes, weights = _parts(pool.classes[chosen]), _parts(pool.weights[member, chosen])
        parts = list(zip(hidden, classes, weights, strict=True))
        risks.append(_minimised(layer, parts, model.bounded, objective))
        layer.put_back()
    return risks


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    return torch.split(tensor, _CHUNK)


class _Layer:
    """A last layer as it was, and a change of it in units in which all hidden units have the same spread."""

    def __init__(self, weight: Tensor, bias: Tensor, hidden: Sequence[Tensor]) -> None:
        self.weight, self.bias = weight, bias
        self.before = (weight.detach().clone(), bias.detach().clone())
        n_events = sum(len(part) for part in hidden)
        mean = torch.stack([part.double().sum(dim=0) for part in hidden]).sum(dim=0) / n_events
        squares = torch.stack([(part - mean).double().square().sum(dim=0) for part in hidden]).sum(dim=0)
        self.mean, self.spread = mean.float(), (squares / n_events).sqrt().float() + _LEAST_SPREAD
        self.change = [torch.zeros_like(one, requires_grad=True) for one in self.before]

    def parameters(self) -> tuple[Tensor, Tensor]:
        """Return the weights and biases with the change."""
        change = self.change[0] / self.spread[:, None]
        return self.before[0] + change, self.before[1] + self.change[1] - self.mean @ change

    def put_back(self) -> None:
        """Change the layer itself."""
        with torch.no_grad():
            for parameter, value in zip((self.weight, self.bias), self.parameters(), strict=True):
                parameter.copy_(value)


def _minimised(
    layer: _Layer,
    parts: Sequence[tuple[Tensor, Tensor, Tensor]],
    bounded: Callable[[Tensor], Tensor],
    objective: Objective,
) -> float:
    n_events = sum(len(classes) for _, classes, _ in parts)
    optimiser = torch.optim.LBFGS(
        layer.change, max_iter=_ITERATIONS, history_size=_REMEMBERED, line_search_fn="strong_wolfe"
    )

    def risk(*, backwards: bool = True) -> Tensor:
        optimiser.zero_grad()
        total = torch.zeros((), dtype=torch.float64, device=layer.mean.device)
        for hidden, classes, weights in parts:
            weight, bias = layer.parameters()
            outputs = bounded((hidden @ weight + bias)[None])
            losses = objective.per_event(outputs, classes[None])[0] * weights
            part = losses.sum(dtype=torch.float64) / n_events
            if backwards:
                part.backward()  # type: ignore[no-untyped-call]
            total += part.detach()
        return total

    optimiser.step(risk)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        return float(risk(backwards=False))
