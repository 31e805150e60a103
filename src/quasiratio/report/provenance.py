"""With what, and when, a report was made."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version

from quasiratio.report.content import Report

__all__ = ["provenance"]

_LIBRARIES = ("quasiratio", "torch", "numpy")


def provenance(report: Report) -> dict[str, str]:
    """Return what stands at the foot of a page: date, versions, and the seed where a fact names one.

    Example:
        >>> from quasiratio.report import Facts, Section
        >>> given = provenance(Report("", "", [Section("Fit", [Facts({"Seed": 3})])], ""))
        >>> list(given), given["seed"]
        (['made', 'seed', 'quasiratio', 'torch', 'numpy', 'Python', 'system'], '3')
    """
    seeds = [str(value) for name, value in report.facts.items() if name.strip().lower() == "seed"]
    return {
        "made": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        **({"seed": seeds[0]} if seeds else {}),
        **{name: _version(name) for name in _LIBRARIES},
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
