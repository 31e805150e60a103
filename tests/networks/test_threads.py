"""As many threads as the work is worth, never more than the process may use, and afterwards as many as before."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

import quasiratio as qr
from quasiratio.networks import threads
from quasiratio.networks.threads import network_threads, share_of_cores, threads_for


@pytest.fixture
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 8)
    monkeypatch.setattr(threads, "share_of_cores", lambda: 8)


@pytest.mark.usefixtures("eight_cores")
@pytest.mark.parametrize(
    ("n_rows", "width", "expected"),
    [
        (0, 0, 1),
        (256, 64, 1),
        (8192, 64, 1),
        (8192, 128, 1),
        (2**15, 64, 4),
        (2**14, 128, 4),
        (10**7, 512, 4),
    ],
)
def test_small_work_takes_one_thread_and_none_takes_many(n_rows: int, width: int, expected: int) -> None:
    assert threads_for(n_rows, width) == expected


def test_never_more_than_pytorch_or_the_process_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for of_pytorch, of_process, expected in ((1, 8, 1), (8, 1, 1), (3, 8, 3), (8, 2, 2)):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=of_pytorch: n)
        monkeypatch.setattr(threads, "share_of_cores", lambda n=of_process: n)
        assert threads_for(10**7, 512) == expected


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/job/step\n", {"job/cpu.max": "150000 100000\n", "job/step/cpu.max": "max 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "50000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/\n", {"cpu.max": "nonsense"}, 64),
        ("0::/\n", {}, 64),
        ("", {"cpu.max": "100000 100000"}, 64),
        (
            "3:memory:/a\n2:cpu,cpuacct:/a\n",
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "400000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
            4,
        ),
        ("2:cpu:/a\n", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, 64),
    ],
)
def test_a_quota_of_a_control_group_is_respected(
    group: str, files: dict[str, str], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    of_process = tmp_path / "cgroup"
    of_process.write_text(group)
    for name, content in files.items():
        (tmp_path / "groups" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "groups" / name).write_text(content)
    assert share_of_cores(tmp_path / "groups", of_process) == expected


def test_the_number_before_comes_back() -> None:
    before = torch.get_num_threads()
    with network_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before
    with pytest.raises(ZeroDivisionError), network_threads(before + 1):
        raise ZeroDivisionError
    assert torch.get_num_threads() == before


@pytest.mark.filterwarnings("ignore::quasiratio.errors.QuasiratioWarning")
def test_a_fit_keeps_to_its_threads_in_all_that_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    set_threads = torch.set_num_threads

    def noted(n_threads: int) -> None:
        seen.append(n_threads)
        set_threads(n_threads)

    monkeypatch.setattr(torch, "set_num_threads", noted)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4000, 1)), np.arange(4000) % 2
    w = rng.choice([1.0, -0.2], 4000, p=[0.9, 0.1])
    before = torch.get_num_threads()
    model = qr.SignResolvedRatio(
        max_steps=3, hidden_layers=(512,), n_threads=1, random_state=0, verbose=False
    )
    model.fit(X, y, w)
    assert set(seen) <= {1, before}
    assert torch.get_num_threads() == before
    assert len(seen) > 4  # the test of the signs and the check took part
