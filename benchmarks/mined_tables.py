"""Tables of the mined benchmarks for `docs/benchmarks.md`: medians over seeds, one table per question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

from benchmarks.results import read_rows

Row = dict[str, Any]


def _groups(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name) for name in names), []).append(row)
    return groups


def _medians(rows: Sequence[Row], name: str) -> str:
    return ", ".join(f"{median(values):.3g}" for values in zip(*(row[name] for row in rows), strict=True))


def _median(rows: Sequence[Row], name: str) -> str:
    return f"{median(row[name] for row in rows):.3g}"


def _spread(rows: Sequence[Row], name: str) -> str:
    """Return the median, and the smallest and the largest value behind it; nothing where a row has none."""
    if any(name not in row for row in rows):
        return "–"
    values = [row[name] for row in rows]
    return f"{median(values):.3g} ({min(values):.2g} to {max(values):.2g})"


def mined_tables(table: Callable[[Iterable[str], Iterable[Iterable[str]]], str]) -> str:
    """Return the tables of everything that has been measured; `table` writes one."""
    rows = [row for row in read_rows("mined") if "key" in row]
    parts = []
    for problems, names, heading in (
        (("parton", "particle"), ("rms_percent", "information"), ["rms of rho_k in %", "information kept"]),
        (
            ("tails",),
            ("rms_percent", "rms_relative_percent"),
            ["rms of rho_k in %", "over sqrt(1 + rho^2), in %"],
        ),
        (("signed", "signs"), ("rms_percent",), ["rms of rho_k over its spread, in %"]),
    ):
        chosen = [
            row for row in rows if row["problem"].split(",")[0].split()[0] in problems and names[0] in row
        ]
        body = [
            [
                str(problem),
                str(method),
                f"{n_events}",
                f"{len(group)}",
                *(_medians(group, name) for name in names),
            ]
            for (problem, method, n_events), group in _groups(chosen, "problem", "method", "n_events").items()
        ]
        if body:
            parts.append(table(["problem", "method", "events", "seeds", *heading], body))
    compared = [row for row in rows if "rms_two_samples" in row]
    if compared:
        parts.append(
            table(
                [
                    "problem",
                    "events",
                    "seeds",
                    "rms(r − r*), mined",
                    "mined, as given",
                    "two samples",
                    "bulk: mined",
                    "bulk: two samples",
                ],
                [
                    [
                        str(problem),
                        f"{n}",
                        f"{len(group)}",
                        _spread(group, "rms_mined"),
                        _spread(group, "rms_mined_as_given"),
                        _spread(group, "rms_two_samples"),
                        _spread(group, "bulk_mined"),
                        _spread(group, "bulk_two_samples"),
                    ]
                    for (problem, n), group in sorted(
                        _groups(compared, "problem", "n_events").items(), key=lambda entry: entry[0]
                    )
                ],
            )
        )
    wrong = [row for row in rows if "rms_flipped" in row]
    if wrong:
        parts.append(
            table(
                [
                    "toy",
                    "events per class",
                    "seeds",
                    "rms(r − r*), labels flipped",
                    "sign-resolved",
                    "spread of r*",
                ],
                [
                    [
                        str(case),
                        f"{n}",
                        f"{len(group)}",
                        *(
                            _median(group, name)
                            for name in ("rms_flipped", "rms_sign_resolved", "spread_of_ratio")
                        ),
                    ]
                    for (case, n), group in _groups(wrong, "case", "n_events").items()
                ],
            )
        )
    return "\n\n".join(parts)
