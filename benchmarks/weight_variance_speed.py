"""Time per point of the weight study, against training the same models one after another.

All three ways train the same networks (an MLP 2-64-64-1; four sub-ratios 2-32-32-1 and their joint tuning) with
batches of 256, epochs of 1e5 events and Adam, on one thread, and validate after every epoch on the same fixed subset
(32,768 events per class). Epochs are timed, since all ways need equally many:

- ours: a group of points in one stack;
- in memory: one network at a time on tensors in memory, automatic differentiation, validation in chunks of 8192;
- DataLoader: the same network at a time from `DataLoader` and `TensorDataset`, batches of 256 everywhere.

Times are processor seconds of the process, which other work on the machine changes little. What NumPy's products are
made for (`OPENBLAS_CORETYPE`, docs/studies.md) is in the rows, since it decides over half of our time.
`python -m benchmarks.weight_variance_speed`
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from benchmarks.results import write_rows
from quasiratio.losses import Pare
from quasiratio.studies.weight_variance.fast_passes.mixture_problem import mixture_ratio
from quasiratio.studies.weight_variance.fast_passes.signed_events import SignedEvents
from quasiratio.studies.weight_variance.grid import GridPoint, grid_points
from quasiratio.studies.weight_variance.shared_events import EventSizes, shared_events
from quasiratio.studies.weight_variance.training import compute

_BATCH, _EPOCH = 256, 100_000
_SIZES = EventSizes(training=400_000, validation=32_768, test=1000)
_PARE = Pare()
Epoch = Callable[[], Iterator[tuple[Tensor, ...]]]


def ours(model: str, points: list[GridPoint], n_epochs: int) -> float:
    """Return the processor seconds of one epoch of one point, from the difference of two runs, the faster of two each."""
    arguments = {
        "seed": 0, "model": model, "points": [[point.sigma_w, point.eta] for point in points], "patience": 1000,
        "n_training": _SIZES.training, "n_validation": _SIZES.validation,
        "n_validation_used": _SIZES.validation, "n_test": _SIZES.test,
        "epoch_events": _EPOCH, "batch_size": _BATCH, "learning_rate": 1e-4,
    }  # fmt: skip
    seconds: dict[int, list[float]] = {1: [], 1 + n_epochs: []}
    for n in (1, *seconds, *seconds):  # the first loads what is loaded once, and is the slower one
        start = time.process_time()
        for _ in compute(arguments | {"max_epochs": n}):
            pass
        seconds[n].append(time.process_time() - start)
    return (min(seconds[1 + n_epochs]) - min(seconds[1])) / n_epochs / len(points)


def one_after_another(model: str, point: GridPoint, *, with_loader: bool) -> float:
    """Return the processor seconds of one epoch of one point, every network by itself."""
    events = shared_events(0, _SIZES)
    training = SignedEvents.draw(events.training, events.training_labels, [point], seed=0, stream=0)
    held_out = SignedEvents.draw(events.validation, events.validation_labels, [point], seed=0, stream=1)
    everything = [
        (part.inputs, part.labels, part.weights_of(slice(None))[0]) for part in (training, held_out)
    ]
    if model == "mlp":
        return _epoch([_network(64)], everything, _cross_entropy, with_loader=with_loader)
    seconds = 0.0
    for reference_negative in (False, True):
        for target_negative in (False, True):
            pairs = []
            for part in (training, held_out):
                chosen = [
                    part.parts(0, 0, negative=reference_negative), part.parts(0, 1, negative=target_negative)
                ]  # fmt: skip
                which = torch.cat(chosen)
                weights = torch.cat([torch.full((len(one),), len(which) / 2 / len(one)) for one in chosen])
                pairs.append((part.inputs[which], part.labels[which], weights))
            seconds += _epoch([_network(32)], pairs, _cross_entropy, with_loader=with_loader)
    networks = [_network(32) for _ in range(4)]
    coefficients = nn.Parameter(torch.tensor([[point.mixture_coefficient] * 2]))

    def pare(outputs: Tensor, labels: Tensor) -> Tensor:
        return _PARE.per_event(_PARE.link.raw(mixture_ratio(outputs, coefficients)[0]), labels)

    return seconds + _epoch(networks, everything, pare, with_loader=with_loader, extra=[coefficients])


def _network(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(2, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1)
    )


def _cross_entropy(outputs: Tensor, labels: Tensor) -> Tensor:
    return softplus(outputs[0]) - labels * outputs[0]


def _epoch(
    networks: list[nn.Module],
    data: list[tuple[Tensor, ...]],
    loss: Callable[[Tensor, Tensor], Tensor],
    *,
    with_loader: bool,
    extra: list[nn.Parameter] | None = None,
) -> float:
    """Return the processor seconds of an epoch with its validation."""
    parameters = [p for network in networks for p in network.parameters()] + (extra or [])
    optimiser = torch.optim.Adam(parameters, lr=1e-4)
    training, held_out = (_from_loader if with_loader else _from_memory)(*data)

    def risk(inputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        outputs = torch.cat([network(inputs).transpose(0, 1) for network in networks])
        return (loss(outputs, labels) * weights).sum()

    start = time.process_time()
    for batch in training():
        optimiser.zero_grad()
        (risk(*batch) / len(batch[0])).backward()
        optimiser.step()
    with torch.no_grad():
        total = 0.0
        for batch in held_out():
            total += float(risk(*batch))
    return time.process_time() - start


def _from_memory(training: tuple[Tensor, ...], held_out: tuple[Tensor, ...]) -> tuple[Epoch, Epoch]:
    def batches() -> Iterator[tuple[Tensor, ...]]:
        order = torch.randperm(len(training[0]))[: _EPOCH // _BATCH * _BATCH]
        order = order.repeat(-(-_EPOCH // len(order)))
        for start in range(0, _EPOCH - _BATCH + 1, _BATCH):
            chosen = order[start : start + _BATCH]
            yield tuple(column[chosen] for column in training)

    def chunks() -> Iterator[tuple[Tensor, ...]]:
        yield from zip(*(column.split(8192) for column in held_out), strict=True)

    return batches, chunks


def _from_loader(training: tuple[Tensor, ...], held_out: tuple[Tensor, ...]) -> tuple[Epoch, Epoch]:
    data = TensorDataset(*training)
    sampler = RandomSampler(data, replacement=len(data) < _EPOCH, num_samples=_EPOCH)
    loaders = (
        DataLoader(data, batch_size=_BATCH, sampler=sampler, drop_last=True),
        DataLoader(TensorDataset(*held_out), batch_size=_BATCH),
    )
    return lambda: iter(loaders[0]), lambda: iter(loaders[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=13, help="Points of a group.")
    parser.add_argument("--epochs", type=int, default=4, help="Timed epochs of ours.")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    points = grid_points(10, 5)[:: 50 // arguments.points][: arguments.points]
    shared_events(0, _SIZES)
    rows, sums = [], {"ours": 0.0, "in memory": 0.0, "DataLoader": 0.0}
    for model in ("mlp", "rosmm_r"):
        seconds = {
            "ours": ours(model, points, arguments.epochs),
            "in memory": one_after_another(model, points[len(points) // 2], with_loader=False),
            "DataLoader": one_after_another(model, points[len(points) // 2], with_loader=True),
        }
        sums = {name: sums[name] + seconds[name] for name in sums}
        rows.append(_row(model, len(points), seconds))
    rows.append(_row("both", len(points), sums))
    write_rows("weight_variance_speed", rows)


def _row(model: str, n_points: int, seconds: dict[str, float]) -> dict[str, object]:
    slower = {name: seconds[name] / seconds["ours"] for name in ("in memory", "DataLoader")}
    print(
        f"{model:8s} processor seconds per point and epoch: "
        + ", ".join(f"{name} {value:.3f}" for name, value in seconds.items())
        + f"; ours takes 1/{slower['in memory']:.1f} of the in-memory loop and 1/{slower['DataLoader']:.1f} "
        "of the DataLoader loop",
        flush=True,
    )
    return {
        "model": model, "points": n_points, **{f"seconds_{k.replace(' ', '_').lower()}": v for k, v in seconds.items()},
        "in_memory_over_ours": slower["in memory"], "dataloader_over_ours": slower["DataLoader"],
        "openblas_coretype": os.environ.get("OPENBLAS_CORETYPE"),
    }  # fmt: skip


if __name__ == "__main__":
    main()
