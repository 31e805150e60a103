r"""What changed between two runs of a study, beyond noise.

The noise is the spread over seeds that both runs report: a difference counts where it exceeds three standard
errors, $\sqrt{s_\mathrm{old}^2 / n_\mathrm{old} + s_\mathrm{new}^2 / n_\mathrm{new}}$.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quasiratio.errors import InvalidInputError
from quasiratio.studies.engine.study import Result
from quasiratio.studies.output.study_files import RESULTS_NAME

__all__ = ["Change", "Comparison", "compare_runs", "read_results"]

_SIGNIFICANT = 3.0


@dataclass(frozen=True)
class Change:
    """A number in both runs.

    Args:
        name: What it is.
        old: Its value before.
        new: Its value now.
        error: Standard error of the difference, or `None` where neither run has a spread.

    Example:
        >>> Change("chi2", 1.0, 1.5, error=0.1).is_beyond_noise
        True
    """

    name: str
    old: float
    new: float
    error: float | None

    @property
    def significance(self) -> float | None:
        """The difference in standard errors."""
        if self.error is None or not math.isfinite(self.error):
            return None
        difference = self.new - self.old
        if self.error == 0:
            return math.copysign(math.inf, difference) if difference else 0.0
        return difference / self.error

    @property
    def is_beyond_noise(self) -> bool:
        """Whether it counts as a change."""
        return self.significance is not None and abs(self.significance) > _SIGNIFICANT


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side.

    Args:
        changes: Numbers that both have.
        only_old: Names that only the old run has.
        only_new: Names that only the new run has.
        settings: Settings that differ, as (old, new).
        sources: Commits, as (old, new).
    """

    changes: tuple[Change, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    settings: Mapping[str, tuple[Any, Any]]
    sources: tuple[str, str]

    def lines(self) -> list[str]:
        """Say it in words."""
        lines = [f"Old: commit {self.sources[0]}. New: commit {self.sources[1]}."]
        lines += [f"Setting {name}: {old!r} -> {new!r}." for name, (old, new) in self.settings.items()]
        beyond = [change for change in self.changes if change.is_beyond_noise]
        unknown = [change for change in self.changes if change.significance is None]
        for change in beyond:
            lines.append(
                f"CHANGED {change.name}: {change.old:.4g} -> {change.new:.4g} "
                f"({change.significance:+.1f} standard errors)."
            )
        lines += [f"GONE {name}." for name in self.only_old]
        lines += [f"NEW {name}." for name in self.only_new]
        for change in unknown:
            if change.old != change.new:
                lines.append(
                    f"NO SPREAD {change.name}: {change.old:.4g} -> {change.new:.4g}; run more seeds to judge it."
                )
        n_same = len(self.changes) - len(beyond) - len(unknown)
        lines.append(
            f"{len(beyond)} of {len(self.changes)} numbers changed beyond noise (three standard errors from the "
            f"seed spread), {n_same} did not, {len(unknown)} have no spread."
        )
        return lines


def compare_runs(old: Path, new: Path) -> Comparison:
    """Compare two output directories, or their `results.json`, or reference files.

    Args:
        old: The run before.
        new: The run now.
    """
    before, now = read_results(old), read_results(new)
    if before["study"] != now["study"]:
        msg = (
            f"Got the studies {before['study']!r} and {now['study']!r}; expected two runs of one study. "
            "Check the paths."
        )
        raise InvalidInputError(msg)
    was = {one.name: one for one in before["results"]}
    now_is = {one.name: one for one in now["results"]}
    settings = {
        name: (before["settings"].get(name), now["settings"].get(name))
        for name in sorted(before["settings"] | now["settings"])
        if before["settings"].get(name) != now["settings"].get(name)
    }
    return Comparison(
        tuple(
            Change(n, was[n].value, now_is[n].value, _error(was[n], now_is[n])) for n in was if n in now_is
        ),
        tuple(n for n in was if n not in now_is),
        tuple(n for n in now_is if n not in was),
        settings,
        (before["commit"], now["commit"]),
    )


def read_results(path: Path) -> dict[str, Any]:
    """Read what a run wrote; `results` is then a list of `Result`."""
    file = path / RESULTS_NAME if path.is_dir() else path
    try:
        # Opening a pipe would wait for somebody to write into it.
        is_other = file.exists() and not file.is_file()
        content = json.loads("" if is_other else file.read_text(encoding="utf-8"))
        found = [one for one in content["results"] if isinstance(one["value"], float | int)]
        return {
            "study": str(content["study"]),
            "settings": dict(content["settings"]),
            "commit": str(content["commit"]),
            "results": [Result(**one) for one in found],
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = getattr(error, "strerror", None) or "not what a study writes"
        msg = (
            f"Got {str(path)!r}, which has no readable {RESULTS_NAME} ({reason}); expected the output directory of "
            "a study that ended, or its results.json."
        )
        raise InvalidInputError(msg) from error


def _error(old: Result, new: Result) -> float | None:
    """Return the standard error of the difference; a run without a spread is taken to have the other's."""
    spreads = [
        one.spread if one.spread is not None else other.spread for one, other in ((old, new), (new, old))
    ]
    if any(spread is None for spread in spreads):
        return None
    return math.hypot(*(spread / one.n_seeds**0.5 for spread, one in zip(spreads, (old, new), strict=True)))
