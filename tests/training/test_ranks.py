"""Several processes train what one process trains on the same batches; what one of them meets, all of them do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.in_ranks import free_port, in_ranks
from torch import Tensor

from quasiratio.errors import InvalidInputError, LostRankError
from quasiratio.losses import Bce
from quasiratio.networks import StackedMlp
from quasiratio.training import Batch, Batches, Pool, RatioObjective, TrainingSettings, resumable
from quasiratio.training.ranks import Place, Ranks
from quasiratio.training.trainer import train

N_EVENTS, N_HELD_OUT, BATCH = 1200, 301, 96
SHARES = ((0, 300), (300, 1200))
"""Events of two ranks: one has three times those of the other."""


def events(n_pools: int = 1) -> tuple[Tensor, list[Pool], Batch]:
    """Two shifted Gaussians with weights of both signs, as one or several problems, and validation events."""
    rng = np.random.default_rng(3)
    n = N_EVENTS + N_HELD_OUT
    classes = torch.from_numpy(rng.integers(0, 2, n).astype(np.float32))
    features = torch.from_numpy(rng.normal(size=(n, 2)).astype(np.float32)) + 0.7 * classes[:, None]
    weights = torch.from_numpy(rng.exponential(1.0, (1, n)).astype(np.float32))
    weights[rng.random((1, n)) < 0.1] *= -0.3
    pools = [
        Pool(
            torch.arange(0, N_EVENTS - 150 * k),
            classes[: N_EVENTS - 150 * k],
            weights[:, : N_EVENTS - 150 * k],
        )
        for k in range(n_pools)
    ]
    held_out = slice(N_EVENTS, None)
    validation = Batch(features[held_out], classes[None, held_out], weights[:, held_out].abs())
    return features[:N_EVENTS], pools, validation


def network(n_networks: int = 1) -> StackedMlp:
    return StackedMlp(n_networks, 2, (8, 8), 1, generator=torch.Generator().manual_seed(0))


def part(pool: Pool, rank: int) -> Pool:
    """Return the events of a pool that a rank has."""
    first, last = SHARES[rank]
    chosen = slice(first, min(last, len(pool)))
    indices = torch.arange(first, max(first, min(last, len(pool))))
    return Pool(indices, pool.classes[chosen], pool.weights[:, chosen])


class Recorded(Batches):
    """Batches that remember what they gave."""

    given: list[Batch]

    def stream(self, sizes: Iterable[int]) -> Iterator[Batch]:
        self.given = []
        for batch in super().stream(sizes):
            self.given.append(batch)
            yield batch


class Repeated(Batches):
    """The same batches once more, each the union of what several ranks had."""

    union: list[list[Batch]]

    def stream(self, sizes: Iterable[int]) -> Iterator[Batch]:
        for _, shares in zip(sizes, self.union, strict=True):
            yield Batch(
                *(
                    torch.cat([getattr(one, name) for one in shares], 1)
                    for name in ("features", "classes", "weights")
                ),
                n_events=shares[0].n_events,
            )


def settings(n_steps: int = 10, **more: Any) -> TrainingSettings:
    return TrainingSettings(batch_size=BATCH, max_steps=n_steps, weight_decay=0.1, **more)


def trained_in_ranks(rank: int, n_pools: int, n_steps: int) -> dict[str, Any]:
    ranks = Ranks.present()
    features, pools, validation = events(n_pools)
    generator = torch.Generator().manual_seed(10 + rank)
    batches = Recorded(features, [part(pool, rank) for pool in pools], BATCH, generator, ranks)
    model = network(n_pools)
    trained = train(model, RatioObjective(Bce()), batches, validation, settings(n_steps), ranks=ranks)
    return {
        "parameters": [one.detach().numpy() for one in model.parameters()],
        "losses": trained.losses.numpy(),
        "train_loss": np.array(trained.history.train_loss),
        "given": [[one.features.numpy(), one.classes.numpy(), one.weights.numpy(), one.n_events] for one in batches.given],
        "largest": batches.largest_pool,
    }  # fmt: skip


@pytest.mark.parametrize("n_pools", [1, 2])
def test_ten_steps_on_the_same_batches_give_the_parameters_of_one_process(n_pools: int) -> None:
    found = in_ranks(trained_in_ranks, n_pools, 10)
    features, pools, validation = events(n_pools)
    batches = Repeated(features, pools, BATCH, torch.Generator().manual_seed(0))
    batches.union = [
        [Batch(*(torch.from_numpy(one) for one in share[:3]), n_events=share[3]) for share in shares]
        for shares in zip(*(one["given"] for one in found), strict=True)
    ]
    model = network(n_pools)
    trained = train(model, RatioObjective(Bce()), batches, validation, settings())
    sizes = [
        [int((torch.from_numpy(share[2]) != 0).sum(dim=1)[0]) for share in one["given"]] for one in found
    ]
    assert {sum(pair) for pair in zip(*sizes, strict=True)} == {BATCH}
    assert np.mean(sizes[0]) == pytest.approx(BATCH / 4, abs=0.5)
    assert {one["largest"] for one in found} == {N_EVENTS}
    for one in found:
        for ours, theirs in zip(one["parameters"], model.parameters(), strict=True):
            np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=0, atol=1e-5)
        np.testing.assert_allclose(one["losses"], trained.losses.numpy(), rtol=0, atol=1e-5)
        np.testing.assert_allclose(one["train_loss"], np.array(trained.history.train_loss), atol=1e-5)
    for ours, theirs in zip(found[0]["parameters"], found[1]["parameters"], strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_shares_add_up_and_are_in_proportion() -> None:
    counts = [7, 0, 500, 9993]
    before = np.cumsum([0, *counts])
    places = [Place(int(before[k]), count, int(before[-1])) for k, count in enumerate(counts)]
    shares = np.array([[place.share(64, draw) for place in places] for draw in range(4000)])
    assert (shares.sum(axis=1) == 64).all()
    assert shares.min() == 0
    np.testing.assert_allclose(shares.mean(axis=0), 64 * np.array(counts) / sum(counts), atol=2e-3)


def fail(rank: int, culprit: int) -> None:
    if rank == culprit:
        msg = f"Got nothing in rank {rank}."
        raise InvalidInputError(msg, advice="Give `files`.")


def talk(rank: int) -> dict[str, Any]:
    ranks = Ranks.present()
    tensors = [torch.full((2,), float(rank)), torch.full((1, 3), 10.0 * rank)]
    ranks.add_up(tensors)
    first = [torch.full((2,), float(rank)), torch.full((1,), rank - 0.5)]
    ranks.take_first(first)
    sentences = []
    for culprit in (0, 1):
        try:
            with ranks.agreed():
                fail(rank, culprit)
        except InvalidInputError as error:
            sentences.append((str(error), error.advice, error.is_told))
    return {
        "ranks": (ranks.rank, ranks.size),
        "sum": ranks.sum(torch.tensor([1, rank])).tolist(),
        "add_up": [one.tolist() for one in tensors],
        "first": [one.tolist() for one in first],
        "gathered": ranks.gathered({"rank": rank}),
        "same": ranks.same(f"of {rank}"),
        "once": ranks.once(lambda: (os.getpid(), Ranks.present().size)),
        "pid": os.getpid(),
        "places": ranks.places([rank + 1, 0]),
        "sentences": sentences,
    }


def test_what_ranks_tell_each_other() -> None:
    found = in_ranks(talk)
    assert [one["ranks"] for one in found] == [(0, 2), (1, 2)]
    for one in found:
        assert one["sum"] == [2, 1]
        assert one["add_up"] == [[1.0, 1.0], [[10.0, 10.0, 10.0]]]
        assert one["first"] == [[0.0, 0.0], [-0.5]]
        assert one["gathered"] == [{"rank": 0}, {"rank": 1}]
        assert one["same"] == "of 0"
        assert one["once"] == (found[0]["pid"], 1)
    assert [one["places"] for one in found] == [[(0, 1, 3), (0, 0, 0)], [(1, 2, 3), (0, 0, 0)]]
    for rank, one in enumerate(found):
        said = [f"Got nothing in rank {culprit}. Give `files`." for culprit in (0, 1)]
        assert one["sentences"] == [(text, "Give `files`.", rank == 1) for text in said]


def resumed_in_ranks(rank: int, directory: str, n_epochs: int) -> list[Any]:
    """Train with a state that is kept, and end the process, or another, after so many epochs."""
    ranks = Ranks.present()
    features, pools, validation = events()
    generator = torch.Generator().manual_seed(10 + rank)
    batches = Batches(features, [part(pools[0], rank)], BATCH, generator, ranks)
    model = network()
    seen = 0

    def stop(*_: Any) -> None:
        nonlocal seen
        seen += 1
        if rank == 1 and seen == n_epochs:
            os.kill(os.getpid(), signal.SIGKILL)

    start = time.monotonic()
    try:
        with resumable(directory, "the fit"):
            train(model, RatioObjective(Bce()), batches, validation, settings(40), ranks=ranks, progress=stop)
    except LostRankError as error:
        return [str(error), time.monotonic() - start]
    return [one.detach().numpy() for one in model.parameters()]


def test_a_killed_rank_stops_the_others_and_the_training_goes_on(tmp_path: Path) -> None:
    whole = in_ranks(resumed_in_ranks, str(tmp_path / "whole"), 0)
    sentence, seconds = in_ranks(resumed_in_ranks, str(tmp_path / "killed"), 7)[0]
    assert sentence.startswith("Process 0 of 2 lost the others: one of them has ended")
    assert seconds < 60
    resumed = in_ranks(resumed_in_ranks, str(tmp_path / "killed"), 0)
    for ours, theirs in zip(resumed[1], whole[0], strict=True):
        np.testing.assert_array_equal(ours, theirs)


LEAVES = """
import os, pathlib, torch
from quasiratio.training import joined_ranks

with joined_ranks() as ranks:
    parameter = torch.nn.Parameter(ranks.sum(torch.ones(2)))
    (parameter.sum()).backward()
    torch.optim.AdamW([parameter]).step()
    ranks.same(ranks.rank)
threads = {task.joinpath("comm").read_text().strip() for task in pathlib.Path("/proc/self/task").iterdir()}
assert not any("gloo" in name for name in threads), threads
print("left", flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_ranks_that_leave_leave_no_thread_behind() -> None:
    """A thread of the group that outlives the interpreter aborts the process, and torchrun then ends all others."""
    facts = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    facts |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", LEAVES],
            env={**facts, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    assert [rank.communicate(timeout=300)[0] for rank in ranks] == ["left\n", "left\n"]
    assert [rank.returncode for rank in ranks] == [0, 0]
