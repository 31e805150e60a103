"""How `evaluate` draws its figures: labels with units, logarithmic scales, lower panels, bins of single observables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.io.formulas import split_name

if TYPE_CHECKING:
    from quasiratio.report.closure_section import Drawing

__all__ = ["DrawingOptions", "figure_names", "label_texts", "require_labelled"]

_UNIT = re.compile(r"(?P<label>.*\S)\s*\[(?P<unit>[^\[\]]+)\]\s*", re.DOTALL)
_BINNING = re.compile(r"(?P<n>\d{1,5}):(?P<low>[^:]+):(?P<high>[^:]+)")
_LOWER = ("pull", "difference", "quotient")
_ALL = "all"


def label_texts(entries: Sequence[str] | None) -> dict[str, str]:
    """Return the labels by name, or say which entry is none.

    Example:
        >>> label_texts(["mll=m_ll [GeV]"])
        {'mll': 'm_ll [GeV]'}
    """
    labels = {}
    for entry in entries or ():
        name, text = split_name(entry)
        if name is None:  # the name may be a formula, whose last '=' is ours
            before, _, text = entry.rpartition("=")
            name = before.strip()
        if not name or not text.strip():
            msg = f"Got the label {entry!r}; expected a name and a text, such as 'mll=m_ll [GeV]'."
            raise InvalidInputError(msg)
        labels[name] = text.strip()
    return labels


def require_labelled(labels: Mapping[str, str], names: Sequence[str]) -> None:
    """Raise where a label is of nothing that is there.

    Example:
        >>> require_labelled({"mll": "m_ll [GeV]"}, ["mll", "pt"])
    """
    for name in labels:
        if name not in names:
            msg = f"Got a label for {name!r}; expected one of {', '.join(map(repr, names))}. Check the spelling."
            raise InvalidInputError(msg)


@dataclass(frozen=True)
class DrawingOptions:
    """What was asked for, by the names of observables.

    Attributes:
        labels: Texts for axes and tables, with units in brackets.
        log: Observables whose densities have a logarithmic scale; `all` for each.
        lower: What is drawn below the densities.
        binning: Entries `NAME=N:LOW:HIGH`.

    Example:
        >>> options = DrawingOptions({"mll": "m_ll [GeV]"}, binning=["mll=4:0:200"])
        >>> options.edges(["mll", "pt"])["mll"].tolist()
        [0.0, 50.0, 100.0, 150.0, 200.0]
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    log: Sequence[str] = ()
    lower: str = "pull"
    binning: Sequence[str] = ()

    def require_names(self, names: Sequence[str]) -> None:
        """Raise unless every entry is about an observable that is drawn."""
        if self.lower not in _LOWER:
            msg = f"Got {self.lower!r} to draw below the densities; expected one of {', '.join(_LOWER)}."
            raise InvalidInputError(msg)
        asked = (
            ("a logarithmic scale", [name for name in self.log if name != _ALL]),
            ("a binning", [_parsed(one)[0] for one in self.binning]),
        )
        for what, given in asked:
            for name in given:
                if name not in names:
                    msg = f"Got {what} for {name!r}; expected one of the observables {', '.join(map(repr, names))}."
                    raise InvalidInputError(msg)

    def edges(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the edges of the observables that have bins of their own."""
        self.require_names(names)
        return {name: np.linspace(low, high, n + 1) for name, n, low, high in map(_parsed, self.binning)}

    def drawings(self, names: Sequence[str]) -> dict[str, Drawing]:
        """Return how each observable is drawn."""
        from quasiratio.report.closure_section import Drawing  # noqa: PLC0415 - slow to import

        found = {}
        own_bins = {_parsed(one)[0] for one in self.binning}
        for name in names:
            match = _UNIT.fullmatch(self.labels.get(name, ""))
            label = match["label"] if match else self.labels.get(name)
            is_log = name in self.log or _ALL in self.log
            unit = match["unit"] if match else None
            found[name] = Drawing(label, unit, is_log, self.lower, hides_far_bins=name not in own_bins)  # type: ignore[arg-type]
        return found


def _parsed(entry: str) -> tuple[str, int, float, float]:
    name, _, text = entry.rpartition("=")
    match = _BINNING.fullmatch(text.strip())
    try:
        if match is not None and name.strip():
            n_bins, low, high = int(match["n"]), float(match["low"]), float(match["high"])
            if n_bins >= 1 and -np.inf < low < high < np.inf:
                return name.strip(), n_bins, low, high
    except ValueError:
        pass
    msg = f"Got the binning {entry!r}; expected a name, a number of bins and a range, such as 'mll=40:0:200'."
    raise InvalidInputError(msg)


def figure_names(observables: Sequence[str]) -> list[str]:
    """Return a name for the figure of each observable, from letters that every file system takes.

    Example:
        >>> figure_names(["p_T [GeV]", "\u0394\u03c6"])
        ['closure-p_T_GeV', 'closure-Delta_phi']
    """
    names: list[str] = []
    for observable in observables:
        spelled = "".join(_spelled(character) for character in observable)
        plain = re.sub(r"[^A-Za-z0-9.-]+", "_", spelled).strip("._-")[:60] or "observable"
        name = f"closure-{plain}"
        while name in names:
            name += "_"
        names.append(name)
    return names


def _spelled(character: str) -> str:
    """Return a letter as it is, without its accents, or by its name where it is Greek."""
    if character.isascii():
        return character
    for part in unicodedata.normalize("NFKD", character):
        if part.isascii():
            return part
        greek = re.match(r"GREEK (SMALL|CAPITAL) LETTER (?:FINAL )?(\w+)", unicodedata.name(part, ""))
        if greek is not None:
            return f" {greek[2].lower() if greek[1] == 'SMALL' else greek[2].capitalize()} "
    return " "
