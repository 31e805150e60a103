"""Where a result comes from: versions, commit, machine. One answer for studies, reports and model files."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["Provenance", "versions_of"]

_PACKAGES = ("python", "quasiratio", "torch", "numpy", "scipy", "scikit-learn")
_SECONDS = 10.0


@dataclass(frozen=True)
class Provenance:
    """What a row was computed with.

    Args:
        versions: Versions of Python and the packages that decide a number.
        commit: Commit of the source, `+changes` behind it where the tree had some, or `"unknown"`.
        machine: Name and kind of the machine.

    Example:
        >>> sorted(Provenance.here().versions)
        ['numpy', 'python', 'quasiratio', 'scikit-learn', 'scipy', 'torch']
    """

    versions: dict[str, str]
    commit: str
    machine: str

    @classmethod
    @cache
    def here(cls) -> Provenance:
        """Return that of this process."""
        return cls(versions_of(*_PACKAGES), _commit(), f"{platform.node()} ({platform.machine()})")

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def versions_of(*names: str, absent: str = "unknown") -> dict[str, str]:
    """Return the versions of packages, and of `"python"`; `absent` for those that are not installed.

    Example:
        >>> versions_of("no-such-package", absent="none")
        {'no-such-package': 'none'}
    """
    return {
        name: platform.python_version() if name == "python" else _installed_version(name) or absent
        for name in names
    }


def _installed_version(name: str) -> str | None:
    """Return the version of an installed package, or nothing where it is not there."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _commit() -> str:
    """Ask git about the directory of this file; an installed package has none."""
    source = Path(__file__).resolve().parent
    head = _git(source, "rev-parse", "HEAD")
    # An installed copy inside someone else's repository is not a commit of ours.
    if not head or not _git(source, "ls-files", "errors.py"):
        return "unknown"
    return head + ("+changes" if _git(source, "status", "--porcelain", "--", ".") else "")


def _git(directory: Path, *arguments: str) -> str:
    program = shutil.which("git")
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - fixed arguments
            [program, "--no-optional-locks", *arguments],
            cwd=directory, capture_output=True, text=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
