r"""Objects with momenta: coordinates in which a symmetry of the densities is built in.

A group of features $(p_T, \eta, \phi[, m])$ is an object. With the symmetry `azimuth`, all azimuths of objects are
measured from that of one of them, which is left out: the ratio does not change when the event is turned about the beam.
`reflection` takes the mirror image of an event in which the second object stands at a positive angle, and `eta` the one
in which the first object has a positive pseudorapidity. `invariants` add for each pair of objects

$$\ln m_{ij}, \qquad \Delta R_{ij} = \sqrt{(\eta_i-\eta_j)^2 + (\phi_i-\phi_j)^2}.$$

Only coordinates change: the ratio stays a function of the features as they were given.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from quasiratio.errors import InvalidInputError

__all__ = ["COLLINEAR", "LARGEST_ETA", "TINY", "ObjectColumns", "ObjectCoordinates", "parsed_objects"]

COLLINEAR, TINY = 1e-6, 1e-24
"""Added to $m_{ij}^2$, in units of the product of transverse momenta and as it is, to keep the logarithm finite."""
LARGEST_ETA = 12.0
"""Masses and distances know none beyond: no collider reaches it, and the -999 of an event without the object has no energy."""
_SYMMETRIES = ("azimuth", "eta", "reflection")
_NO_COLUMN = "-"


@dataclass(frozen=True)
class ObjectColumns:
    """Which features are the coordinates of an object; `eta` and `mass` may be missing."""

    name: str
    pt: int
    eta: int | None
    phi: int
    mass: int | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """All of them."""
        return tuple(c for c in (self.pt, self.eta, self.phi, self.mass) if c is not None)


@dataclass(frozen=True)
class ObjectCoordinates:
    """A map from features to coordinates.

    The features stay in their order, but for the azimuth of the reference object; invariants stand behind them.

    Attributes:
        n_features: Number of features.
        objects: The objects.
        azimuth: The object from which azimuths are measured; `None` where they are left as they are.
        reflects_eta: Whether events and their mirror images in eta are the same.
        reflects_phi: Whether events and their mirror images in phi are the same.
        invariants: Whether masses and distances of pairs are added.

    Example:
        >>> names = ["pt1", "eta1", "phi1", "pt2", "eta2", "phi2"]
        >>> pair = {"mu1": names[:3], "mu2": names[3:]}
        >>> coordinates = ObjectCoordinates.of(pair, "azimuth", names, invariants=True)
        >>> coordinates.names(names)
        ['pt1', 'eta1', 'pt2', 'eta2', 'phi2 - phi1', 'ln m(mu1, mu2)', 'dR(mu1, mu2)']
        >>> events = torch.tensor([[40.0, 0.5, 3.0, 30.0, -0.5, -3.0]])
        >>> turned = events + torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0, 1.0])
        >>> bool(torch.allclose(coordinates(events), coordinates(turned)))
        True
    """

    n_features: int
    objects: tuple[ObjectColumns, ...]
    azimuth: int | None = None
    reflects_eta: bool = False
    reflects_phi: bool = False
    invariants: bool = False

    @classmethod
    def of(
        cls,
        objects: Any,  # noqa: ANN401 - what the user gave
        symmetry: Any,  # noqa: ANN401
        names: Sequence[str],
        *,
        invariants: bool = False,
    ) -> Self | None:
        """Check what the user gave against the names of the features; `None` where there are no objects.

        Args:
            objects: Names of objects, each with three or four names of features (pt, eta, phi[, mass]), eta `"-"` where
                there is none; or the text of `parsed_objects`.
            symmetry: One or several of `azimuth` (or `azimuth:NAME` for another object than the first), `eta` and
                `reflection`.
            names: Names of the features.
            invariants: Whether to add masses and distances of pairs.
        """
        if objects is None:
            if symmetry or invariants:
                what = "a symmetry" if symmetry else "invariants"
                msg = f"Got {what} without objects; expected objects, such as 'mu1:mu1_pt,mu1_eta,mu1_phi'."
                raise InvalidInputError(msg)
            return None
        groups = _checked_objects(parsed_objects(objects) if isinstance(objects, str) else objects, names)
        azimuth, kinds = _checked_symmetry(symmetry, groups)
        if "eta" in kinds and all(group.eta is None for group in groups):
            msg = "Got the symmetry 'eta' with objects that have no eta; expected an object with one."
            raise InvalidInputError(msg)
        return cls(
            len(names), tuple(groups), azimuth, "eta" in kinds, "reflection" in kinds, bool(invariants)
        )

    @property
    def pairs(self) -> list[tuple[ObjectColumns, ObjectColumns]]:
        """The pairs that have invariants."""
        complete = [group for group in self.objects if group.eta is not None]
        return list(itertools.combinations(complete, 2)) if self.invariants else []

    @property
    def kept(self) -> list[int]:
        """The features that stay coordinates."""
        left_out = None if self.azimuth is None else self.objects[self.azimuth].phi
        return [column for column in range(self.n_features) if column != left_out]

    @property
    def angles(self) -> list[int]:
        """The coordinates that are azimuths."""
        azimuths = {group.phi for group in self.objects}
        return [place for place, column in enumerate(self.kept) if column in azimuths]

    @property
    def sources(self) -> list[tuple[int, ...]]:
        """The features that each coordinate is made of."""
        reference = () if self.azimuth is None else (self.objects[self.azimuth].phi,)
        azimuths = {group.phi for group in self.objects}
        own = [(column, *(reference if column in azimuths else ())) for column in self.kept]
        return own + [one.columns + two.columns for one, two in self.pairs for _ in range(2)]

    @property
    def mirror_eta(self) -> int | None:
        """The column whose sign decides about the mirror image in eta."""
        if not self.reflects_eta:
            return None
        ordered = self.objects if self.azimuth is None else (self.objects[self.azimuth], *self.objects)
        return next(group.eta for group in ordered if group.eta is not None)

    @property
    def mirror_phi(self) -> int | None:
        """The column, an azimuth from the reference object, whose sign decides about the mirror image in phi."""
        if not self.reflects_phi or self.azimuth is None:
            return None
        return next(group.phi for number, group in enumerate(self.objects) if number != self.azimuth)

    def names(self, features: Sequence[str]) -> list[str]:
        """Return what the coordinates are called."""
        azimuths = {group.phi for group in self.objects}
        reference = None if self.azimuth is None else features[self.objects[self.azimuth].phi]
        own = [
            f"{features[c]} - {reference}" if c in azimuths and reference is not None else features[c]
            for c in self.kept
        ]
        pairs = [f"({one.name}, {two.name})" for one, two in self.pairs]
        return own + [text for pair in pairs for text in (f"ln m{pair}", f"dR{pair}")]

    def describe(self) -> str:
        """Return a sentence for people."""
        parts = [f"Objects: {', '.join(group.name for group in self.objects)}"]
        if self.azimuth is not None:
            parts.append(f"azimuths measured from {self.objects[self.azimuth].name}")
        mirrors = [name for name, is_on in (("eta", self.reflects_eta), ("phi", self.reflects_phi)) if is_on]
        if mirrors:
            parts.append(f"mirror images in {' and '.join(mirrors)} taken for the same")
        if self.pairs:
            n_pairs = len(self.pairs)
            parts.append(f"masses and distances of {n_pairs} pair{'s' * (n_pairs > 1)} added")
        return "; ".join(parts)

    def __call__(self, features: Tensor) -> Tensor:
        """Return the coordinates of raw features, `(..., n_features)`, in their precision; computed in double."""
        columns = list(features.double().unbind(-1))
        pairs = [value for pair in self.pairs for value in _invariants(columns, *pair)]
        if self.azimuth is not None:
            start = columns[self.objects[self.azimuth].phi]
            for group in self.objects:
                columns[group.phi] = columns[group.phi] - start
        if self.mirror_phi is not None:
            sign = _sign(columns[self.mirror_phi].sin())
            for group in self.objects:
                columns[group.phi] = sign * columns[group.phi]
        if self.mirror_eta is not None:
            sign = _sign(columns[self.mirror_eta])
            for group in self.objects:
                if group.eta is not None:
                    columns[group.eta] = sign * columns[group.eta]
        return torch.stack([*(columns[c] for c in self.kept), *pairs], dim=-1).to(features.dtype)


def parsed_objects(text: str) -> dict[str, list[str]]:
    """Parse `mu1:mu1_pt,mu1_eta,mu1_phi; met:met_pt,-,met_phi`.

    Example:
        >>> parsed_objects("mu1:mu1_pt,mu1_eta,mu1_phi; met:met,-,met_phi")
        {'mu1': ['mu1_pt', 'mu1_eta', 'mu1_phi'], 'met': ['met', '-', 'met_phi']}
    """
    objects: dict[str, list[str]] = {}
    for part in text.split(";"):
        name, colon, columns = part.partition(":")
        if not part.strip():
            continue
        if not colon or not name.strip() or name.strip() in objects:
            msg = (
                f"Got the object {part.strip()!r}; expected a name of its own, a colon and features, as in "
                "'mu1:mu1_pt,mu1_eta,mu1_phi'."
            )
            raise InvalidInputError(msg)
        objects[name.strip()] = [column.strip() for column in columns.split(",")]
    return objects


def _checked_objects(objects: Any, names: Sequence[str]) -> list[ObjectColumns]:  # noqa: ANN401
    if not isinstance(objects, Mapping) or not objects:
        msg = f"Got objects = {objects!r}; expected names with (pt, eta, phi[, mass]), such as {{'mu1': ['mu1_pt', 'mu1_eta', 'mu1_phi']}}."
        raise InvalidInputError(msg)
    places = {name: place for place, name in enumerate(names)}
    groups, taken = [], set[int]()
    for name, columns in objects.items():
        given = [columns] if isinstance(columns, str) else list(columns)
        if len(given) not in (3, 4):
            msg = f"Got the object {name!r} of {len(given)} features; expected three or four: pt, eta, phi and perhaps the mass."
            raise InvalidInputError(msg)
        found: list[int | None] = []
        for position, column in enumerate(given):
            if position == 1 and column == _NO_COLUMN:
                found.append(None)
            elif column not in places or places[column] in taken:
                why = "which another object has" if column in places else "which is no feature"
                msg = f"Got the object {name!r} with {column!r}, {why}; expected one of {', '.join(map(repr, names))}, each once."
                raise InvalidInputError(msg)
            else:
                found.append(places[column])
                taken.add(places[column])
        pt, eta, phi, *mass = found
        groups.append(ObjectColumns(str(name), _there(pt), eta, _there(phi), mass[0] if mass else None))
    return groups


def _there(column: int | None) -> int:
    return -1 if column is None else column


def _checked_symmetry(symmetry: Any, groups: Sequence[ObjectColumns]) -> tuple[int | None, set[str]]:  # noqa: ANN401
    given = symmetry.split(",") if isinstance(symmetry, str) else list(symmetry or [])
    names = [group.name for group in groups]
    azimuth, kinds = None, set()
    for entry in (str(one).strip() for one in given):
        kind, _, name = entry.partition(":")
        if kind not in _SYMMETRIES or (name and (kind != "azimuth" or name not in names)):
            msg = (
                f"Got the symmetry {entry!r}; expected one of {', '.join(_SYMMETRIES)}, and after 'azimuth:' one of the "
                f"objects {', '.join(names)}."
            )
            raise InvalidInputError(msg)
        kinds.add(kind)
        if kind == "azimuth":
            azimuth = names.index(name) if name else 0
    if "reflection" in kinds and (azimuth is None or len(groups) < 2):
        msg = "Got the symmetry 'reflection' without 'azimuth' or with one object only; expected both, and two objects."
        raise InvalidInputError(msg)
    return azimuth, kinds


def _sign(values: Tensor) -> Tensor:
    return torch.where(values < 0, -1.0, 1.0).to(values.dtype)


def _invariants(columns: list[Tensor], one: ObjectColumns, two: ObjectColumns) -> tuple[Tensor, Tensor]:
    """Return the logarithm of the mass and the distance of a pair."""
    (pt_1, eta_1, phi_1, mass_1), (pt_2, eta_2, phi_2, mass_2) = (_momentum(columns, o) for o in (one, two))
    between = phi_1 - phi_2
    energies = torch.sqrt((pt_1 * eta_1.cosh()) ** 2 + mass_1**2) * torch.sqrt(
        (pt_2 * eta_2.cosh()) ** 2 + mass_2**2
    )
    product = energies - pt_1 * pt_2 * (eta_1.sinh() * eta_2.sinh() + between.cos())
    mass_squared = torch.clamp(mass_1**2 + mass_2**2 + 2.0 * product, min=0.0)
    logarithm = 0.5 * torch.log(mass_squared + COLLINEAR * (pt_1 * pt_2).abs() + TINY)
    turned = between - 2.0 * math.pi * torch.floor(between / (2.0 * math.pi) + 0.5)
    return logarithm, torch.sqrt((eta_1 - eta_2) ** 2 + turned**2)


def _momentum(columns: list[Tensor], group: ObjectColumns) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    pt, phi = columns[group.pt], columns[group.phi]
    eta = torch.zeros_like(pt) if group.eta is None else columns[group.eta].clamp(-LARGEST_ETA, LARGEST_ETA)
    return pt, eta, phi, torch.zeros_like(pt) if group.mass is None else columns[group.mass]
