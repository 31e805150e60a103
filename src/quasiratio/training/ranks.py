"""One training in several processes: every rank has events of its own, all have the same networks.

A rank is one process of a `torch.distributed` group, as `torchrun` starts them. What is decided is decided by numbers that all
ranks have: sums over all, or what the first of them says. So nothing that differs between them, such as the last digit of
another processor, makes one go where the others do not, and waits for them there.

One process is a group of one, for which every sum is the sum of itself and nothing is sent anywhere.
"""

from __future__ import annotations

import datetime as dt
import io
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from quasiratio.errors import LostRankError, QuasiratioError, QuasiratioWarning

__all__ = ["Place", "Ranks", "alone", "joined_ranks"]

_Value = TypeVar("_Value")
_LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_PATIENCE = dt.timedelta(hours=2)
"""For a rank that reads larger files than the others, or makes a store of them for all. One that has ended is noticed at once, by its closed connection."""
_AWAKE_SECONDS = 0.02
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_ALONE: ContextVar[bool] = ContextVar("_ALONE", default=False)


class Place(NamedTuple):
    """Where the events of this rank stand among those of all.

    Attributes:
        before: Events of the ranks before.
        own: Events of this rank.
        total: Events of all ranks.
    """

    before: int
    own: int
    total: int

    def share(self, n_events: int, draw: int) -> int:
        """Return how many of `n_events` this rank gives to a batch; those of all ranks add up to all.

        A rank gives in proportion to what it has, so that every event of all ranks is seen equally often. Parts of an event are
        rounded up in some draws and down in others, or a rank with few events would give none for ever.

        Args:
            n_events: Events of the batch.
            draw: Number of the batch, from zero.

        Example:
            >>> few, many = Place(0, 1, 8), Place(1, 7, 8)
            >>> [few.share(20, draw) for draw in range(4)], [many.share(20, draw) for draw in range(4)]
            ([2, 3, 2, 3], [18, 17, 18, 17])
        """
        if self.own == self.total:
            return n_events
        start = math.fmod(draw * _GOLDEN, 1.0)
        bounds = (n_events * (edge / self.total) + start for edge in (self.before, self.before + self.own))
        first, last = (math.floor(bound) for bound in bounds)
        return last - first


@dataclass(frozen=True)
class Ranks:
    """The processes of one training, seen from one of them.

    Attributes:
        rank: Number of this process, from zero.
        size: Number of processes.

    Example:
        >>> ranks = Ranks.present()
        >>> ranks.size, ranks.gathered("mine"), ranks.sum(torch.ones(2))
        (1, ['mine'], tensor([1., 1.]))
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def present(cls) -> Ranks:
        """Return the ranks of the process group that was initialised, or this process alone."""
        if _ALONE.get() or not dist.is_available() or not dist.is_initialized():
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that speaks and writes."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum of the tensors of all ranks, on the device of this one."""
        if self.size == 1:
            return tensor
        total = tensor.detach().clone(memory_format=torch.contiguous_format)
        with self._talking():
            _wait(dist.all_reduce(total, async_op=True))
        return total

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one type by their sums over all ranks, in one message."""
        if self.size > 1:
            _take(tensors, self.sum(_flat(tensors)))

    def take_first(self, tensors: Sequence[Tensor]) -> None:
        """Replace tensors of one type by those of the first rank, in one message."""
        if self.size == 1:
            return
        flat = _flat(tensors)
        with self._talking():
            dist.broadcast(flat, src=0)
        _take(tensors, flat)

    def gathered(self, value: _Value) -> list[_Value]:
        """Return the values of all ranks, in their order."""
        if self.size == 1:
            return [value]
        values: list[Any] = [None] * self.size
        with self._talking():
            dist.all_gather_object(values, _packed(value))
        return [value if rank == self.rank else _unpacked(one) for rank, one in enumerate(values)]

    def same(self, value: _Value) -> _Value:
        """Return the value of the first rank."""
        if self.size == 1:
            return value
        values = [_packed(value) if self.is_first else b""]
        with self._talking():
            dist.broadcast_object_list(values, src=0)
        return value if self.is_first else _unpacked(values[0])

    def once(self, compute: Callable[[], _Value]) -> _Value:
        """Let the first rank compute something by itself, warnings and all, and return it to all of them."""
        if self.size == 1:
            return compute()
        value: Any = None
        with self.agreed():
            if self.is_first:
                with alone():
                    value = compute()
        result: _Value = self.same(value)
        return result

    @contextmanager
    def agreed(self) -> Iterator[None]:
        """Let an error of one rank in this block, in which none may wait for another, be an error of all of them."""
        if self.size == 1:
            yield
            return
        found: QuasiratioError | None = None
        try:
            yield
        except LostRankError:
            raise
        except QuasiratioError as error:
            found = error
        errors = [error for error in self.gathered(found) if error is not None]
        if errors:
            errors[0].is_told = not self.is_first
            raise errors[0]

    @contextmanager
    def one_voice(self) -> Iterator[None]:
        """Let the first rank alone warn in this block: the others have nothing else to say."""
        if self.size == 1:
            yield
            return
        with warnings.catch_warnings():
            if not self.is_first:
                warnings.simplefilter("ignore", QuasiratioWarning)
            yield

    def places(self, counts: Sequence[int]) -> list[Place]:
        """Return where the events of this rank stand, for each of several numbers of events."""
        found = []
        for column in zip(*self.gathered(list(counts)), strict=True):
            found.append(Place(sum(column[: self.rank]), column[self.rank], sum(column)))
        return found

    @contextmanager
    def _talking(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            msg = (
                f"Process {self.rank} of {self.size} lost the others: one of them has ended or cannot be reached "
                f"({_reason(error)}). Look at what it said last."
            )
            raise LostRankError(msg) from error


@contextmanager
def alone() -> Iterator[None]:
    """Within this block this process is a group of one, although a process group was initialised.

    Example:
        >>> with alone():
        ...     Ranks.present()
        Ranks(rank=0, size=1)
    """
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)


@contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """Join the processes that `torchrun` has started, where it has; leave them at the end.

    Tensors in memory go through gloo, those of a GPU through NCCL; each process takes the GPU of its number on the node.
    """
    is_launched = all(os.environ.get(name) for name in _LAUNCHED) and os.environ["WORLD_SIZE"] != "1"
    if not is_launched or not dist.is_available() or dist.is_initialized():
        yield Ranks.present()
        return
    # PyTorch's compiler keeps the group that it finds when it is loaded, as an optimizer does at its first step. A group that
    # is kept is never taken down: its threads outlive the interpreter and abort the process at its end. So load it before.
    import torch._dynamo  # noqa: PLC0415 - takes a second, and only where there are several processes

    has_cuda = torch.cuda.is_available()
    if has_cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if has_cuda else "gloo", timeout=_PATIENCE)
    except (RuntimeError, ValueError) as error:
        msg = (
            f"Process {os.environ['RANK']} of {os.environ['WORLD_SIZE']} could not join the others ({_reason(error)}). Check "
            "that all were started and can reach each other; GLOO_SOCKET_IFNAME names the network interface."
        )
        raise LostRankError(msg) from error
    try:
        yield Ranks.present()
    finally:
        with suppress(RuntimeError):  # the others may have gone
            dist.destroy_process_group()


def _wait(work: Any) -> None:  # noqa: ANN401 - PyTorch's handle
    """Wait for a message, awake at first: a step is short, and to be put to sleep and woken costs more than what is sent."""
    rest = getattr(os, "sched_yield", lambda: time.sleep(0))
    awake_until = time.perf_counter() + _AWAKE_SECONDS
    while not work.is_completed() and time.perf_counter() < awake_until:
        rest()
    work.wait()


def _reason(error: Exception) -> str:
    """Return the first sentence of an error of PyTorch, without the place in its source that it begins with."""
    text = re.sub(r"^\[\S+\]\s*", "", " ".join(str(error).split()))
    return text.partition(". ")[0][:160]


def _flat(tensors: Sequence[Tensor]) -> Tensor:
    return torch.cat([tensor.detach().reshape(-1) for tensor in tensors])


def _take(tensors: Sequence[Tensor], flat: Tensor) -> None:
    with torch.no_grad():
        start = 0
        for tensor in tensors:
            tensor.copy_(flat[start : start + tensor.numel()].view_as(tensor))
            start += tensor.numel()


def _packed(value: object) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


def _unpacked(packed: bytes) -> Any:  # noqa: ANN401 - whatever was packed
    """Return what another rank of this training sent; its tensors in memory, as its GPU is not ours."""
    return torch.load(io.BytesIO(packed), map_location="cpu", weights_only=False)
