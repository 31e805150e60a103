"""How many threads the work of networks is worth.

The threads of a step wait for each other, spinning. For the small products of a ratio network that waiting costs more
than the arithmetic that is shared, and beside another busy process it costs several times the whole: a step then takes
one thread. Only work with a million values per layer or more is shared. The number follows from the work and from what
this process may use, never from the load of the machine, so that the same seed gives the same bits on a busy machine and
on an idle one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from quasiratio.machine import share_of_cores

__all__ = ["network_threads", "share_of_cores", "threads_for"]

_SHARED_VALUES = 2**20
_MOST_THREADS = 4


def threads_for(n_rows: int, width: int) -> int:
    """Return the threads for `n_rows` events of all networks together, with layers of `width`.

    Never more than PyTorch has been given (OMP_NUM_THREADS, `torch.set_num_threads`), than the cores that this process
    may use, nor than four.

    Example:
        >>> threads_for(2048, 64)
        1
    """
    wanted = max(1, n_rows * width // _SHARED_VALUES)
    wanted = wanted if wanted == 1 else 2 * wanted
    return min(wanted, _MOST_THREADS, torch.get_num_threads(), share_of_cores())


@contextmanager
def network_threads(n_threads: int | None, n_rows: int = 0, width: int = 0) -> Iterator[None]:
    """Work with `n_threads`, or with as many as the work is worth; afterwards with as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads_for(n_rows, width) if n_threads is None else n_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
