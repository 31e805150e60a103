"""Functions in several processes on this machine that train together, and what each of them returned."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import socket
import tempfile
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_PROCESSES = multiprocessing.get_context("forkserver")
_PROCESSES.set_forkserver_preload(["quasiratio.estimators", "quasiratio.workflows", "torch._dynamo"])
"""What every rank would else import for itself, the last of them for its first optimiser."""
_TIME_LIMIT = 300.0


def in_ranks(
    function: Callable[..., Any], *arguments: Any, n_ranks: int = 2, launched: bool = False
) -> list[Any]:
    """Call a function of a module in each of `n_ranks` processes of one group, and return what it returns.

    Args:
        function: Called with the rank and the arguments. What it raises is raised here.
        arguments: Of all ranks.
        n_ranks: Number of processes.
        launched: Whether the processes have the environment of `torchrun`, and no group yet.
    """
    with tempfile.TemporaryDirectory() as directory:
        port = free_port() if launched else 0
        pipes, processes = [], []
        for rank in range(n_ranks):
            ours, theirs = _PROCESSES.Pipe()
            process = _PROCESSES.Process(
                target=_run, args=(rank, n_ranks, port or directory, theirs, function, arguments), daemon=True
            )
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        try:
            return [_answer(pipe) for pipe in pipes]
        finally:
            for process in processes:
                process.kill()
                process.join(10.0)


def free_port() -> int:
    """Return a port of this machine that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _run(
    rank: int, n_ranks: int, place: str | int, pipe: Connection, function: Callable[..., Any], arguments: Any
) -> None:
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    import torch

    torch.set_num_threads(1)
    if isinstance(place, int):
        facts = {"RANK": rank, "WORLD_SIZE": n_ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": place}
        os.environ.update({name: str(value) for name, value in facts.items()})
        _answer_with(pipe, function, rank, *arguments)
        return
    # A file in the place of a port: nothing that another test could take.
    torch.distributed.init_process_group(
        "gloo",
        init_method=f"file://{Path(place, 'rendezvous')}",
        rank=rank,
        world_size=n_ranks,
        timeout=dt.timedelta(seconds=60),
    )
    _answer_with(pipe, function, rank, *arguments)
    torch.distributed.destroy_process_group()


def _answer_with(pipe: Connection, function: Callable[..., Any], *arguments: Any) -> None:
    try:
        pipe.send((function(*arguments), ""))
    except BaseException:  # noqa: BLE001 - told to the test
        pipe.send((None, traceback.format_exc()))


def _answer(pipe: Connection) -> Any:
    if not pipe.poll(_TIME_LIMIT):
        raise TimeoutError("a rank did not answer")
    try:
        value, error = pipe.recv()
    except EOFError:
        return None  # it was killed
    if error:
        raise AssertionError(error)
    return value
