r"""Scaling of the input features, stored inside the model.

Each feature becomes $(f(x) - \mu)/\sigma$, with $f = \ln$ for positive heavy-tailed features (transverse
momenta, masses) and $f = 1$ for the others. An angle becomes two inputs, $\sqrt2\cos x$ and $\sqrt2\sin x$, so that it
has no edge at $\pm\pi$. Every other coordinate has two: beyond the training events a network only extrapolates, and a
momentum of ten times the largest could get any ratio, so that it is taken at the edge. What was decided is stored with the
model and shown by it, so that a user feeds raw features and never a separate scaler.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import torch
from torch import Tensor, nn

from quasiratio.columns import FeatureMatrix, needs_double, without_dominant_value
from quasiratio.networks.objects import ObjectCoordinates

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["FeatureScaling"]

_HEAVY_TAIL_SKEWNESS = 1.0
_ROOT_2 = 2.0**0.5
"""Brings the cosine of an angle without a preferred direction to unit variance."""
_REACH = 16.0
"""How far from its centre a feature is followed, in units of about the width of its bulk."""
_N_PROBED = 20_000
_EDGE_EVENTS, _LEAST_MARGIN = 10, 0.05
"""Edges are as far beyond the last training event as that is beyond the tenth, about where ten times the events would end,
and at least this part of the range."""


class FeatureScaling(nn.Module):
    """Logarithm where it helps, then zero mean and unit variance, per coordinate; angles as cosine and sine.

    Coordinates are the features, or what `objects` makes of them. A value that misses, as it is what `fill` stands for, is
    taken at the mean. The inputs are the coordinates, then the sines of all angles, then, for each feature with a fill, one
    where its value is there and zero where it misses.

    Args:
        n_features: Number of features.
        objects: Turns features into other coordinates.

    Attributes:
        offset: Subtracted from each feature in double precision, before anything else; `None` where float32 is enough.
        unit: What each feature is divided by then.
        reach: The largest absolute value of each feature after that; beyond are numbers that stand for missing ones.
        fill: The value of each feature that stands for a missing one, NaN where none may miss; `None` without any.
        is_kept: Whether a coordinate is an input; constants and copies of others are not.
        floor: The lower edge of each coordinate that is no angle: smaller values are taken there.
        ceiling: The upper edge.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = np.column_stack([rng.normal(5, 2, 4000), rng.lognormal(3, 1, 4000)]).astype(np.float32)
        >>> scaling = FeatureScaling.from_data(x)
        >>> scaling.uses_log.tolist()
        [False, True]
        >>> z = scaling(torch.from_numpy(x))
        >>> bool(z.mean().abs() < 1e-3), bool((z.std(dim=0) - 1).abs().max() < 1e-3)
        (True, True)
    """

    uses_log: Tensor
    floor: Tensor
    ceiling: Tensor
    mean: Tensor
    scale: Tensor
    is_periodic: Tensor
    is_kept: Tensor
    offset: Tensor | None
    unit: Tensor | None
    reach: Tensor | None
    fill: Tensor | None

    def __init__(self, n_features: int, objects: ObjectCoordinates | None = None) -> None:
        super().__init__()
        self.n_features, self.objects = n_features, objects
        n_coordinates = n_features if objects is None else len(objects.sources)
        self.register_buffer("is_periodic", torch.zeros(n_coordinates, dtype=torch.bool))
        self.register_buffer("is_kept", torch.ones(n_coordinates, dtype=torch.bool))
        self.register_buffer("uses_log", torch.zeros(n_coordinates, dtype=torch.bool))
        self.register_buffer("floor", torch.full((n_coordinates,), -torch.inf))
        self.register_buffer("ceiling", torch.full((n_coordinates,), torch.inf))
        self.register_buffer("mean", torch.zeros(n_coordinates))
        self.register_buffer("scale", torch.ones(n_coordinates))
        for name in ("offset", "unit", "reach", "fill"):
            self.register_buffer(name, None)

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the networks."""
        return int(self.is_kept.sum() + (self.is_periodic & self.is_kept).sum()) + len(self.filled)

    @property
    def filled(self) -> list[int]:
        """The features whose values may miss."""
        return list(self.fills)

    @property
    def fills(self) -> dict[int, float]:
        """What stands for a missing value, by feature."""
        values = [] if self.fill is None else self.fill.tolist()
        return {column: value for column, value in enumerate(values) if not math.isnan(value)}

    def coordinate_names(self, features: Sequence[str]) -> list[str]:
        """Return what the coordinates are called."""
        return list(features) if self.objects is None else self.objects.names(features)

    @classmethod
    def from_data(
        cls,
        features: FeatureMatrix,
        periodic: Sequence[int] = (),
        *,
        objects: ObjectCoordinates | None = None,
        fill: Mapping[int, float] | None = None,
        drop: bool = False,
    ) -> Self:
        """Decide on logarithms and measure mean and width, unweighted, on the training features.

        A coordinate is taken in logarithm when every value is positive, its skewness exceeds one, and the
        logarithm at least halves the skewness.

        Args:
            features: `(n, d)` training features.
            periodic: Columns that are angles in radians.
            objects: Turns features into other coordinates; azimuths of objects are angles.
            fill: The value that stands for a missing one, by column, declared or recognised (`recognised_sentinels`).
            drop: Whether constants and copies of other coordinates are no inputs.
        """
        scaling = cls(features.shape[1], objects)
        if fill:
            fills = [fill.get(column, math.nan) for column in range(features.shape[1])]
            scaling.fill = torch.tensor(fills, dtype=torch.float64)
        if features.dtype == np.float64:
            azimuths = [] if objects is None else [group.phi for group in objects.objects]
            scaling._measure_offsets(features, {*periodic, *azimuths}, fill or {})
        scaling.is_periodic[scaling._angles(periodic)] = True
        tensor = torch.from_numpy(np.require(features, requirements=["C", "W"]))
        missing = None if scaling.fill is None else scaling._missing(tensor)
        kept: dict[bytes, int] = {}
        for column, values in enumerate(scaling._coordinates(tensor).unbind(-1)):
            there = (values if missing is None else values[~missing[:, column]]).numpy()
            if drop and (not len(there) or there.min() == there.max() or _is_copy(values, kept)):
                scaling.is_kept[column] = False
            if scaling.is_periodic[column] or not len(there):
                continue
            scaling._measure(column, there.astype(np.float64))
        if not bool(scaling.is_kept.any()):  # nothing to learn from, but networks need an input
            scaling.is_kept[:] = True
        return scaling

    def _measure(self, column: int, values: npt.NDArray[np.float64]) -> None:
        takes_log = bool(values.min() > 0 and _is_heavy_tailed(values))
        self.uses_log[column] = takes_log
        values = _within_reach(np.log(values) if takes_log else values)
        edges = _edges(values)
        self.floor[column], self.ceiling[column] = np.exp(edges) if takes_log else edges
        width = float(values.std())
        self.mean[column] = float(values.mean())
        # A constant feature carries no information; leave it at zero instead of dividing by zero.
        self.scale[column] = width if width > 1e-7 * max(1.0, abs(float(values.mean()))) else 1.0

    def _measure_offsets(
        self, features: FeatureMatrix, angles: Collection[int], fill: Mapping[int, float]
    ) -> None:
        """Find centre and width of the features that float32 cannot hold; the others are left as they are."""
        offsets, units, reaches = [], [], []
        for column in range(features.shape[1]):
            values = features[:, column]
            if column in fill:
                there = values[values != fill[column]]
                values = there if len(there) else values
            offset, unit, reach = 0.0, 1.0, math.inf
            if needs_double(values):
                bulk = without_dominant_value(np.asarray(values, dtype=np.float64))
                low, centre, high = np.quantile(bulk, [0.05, 0.5, 0.95])
                width = float(high - low) or float(np.ptp(bulk)) or 1.0
                if column in angles:  # whole turns
                    offset = 2.0 * math.pi * round(float(centre) / (2.0 * math.pi))
                else:
                    # Values of one sign that spread over their own size keep it, so that they can have a logarithm.
                    offset = float(centre) if abs(centre) > 100.0 * width else 0.0
                    unit = 2.0 ** math.floor(math.log2(width))
                    reach = _REACH if offset and np.abs(values - offset).max() > _REACH * unit else math.inf
            offsets.append(offset)
            units.append(unit)
            reaches.append(reach)
        self.offset, self.unit = (torch.tensor(one, dtype=torch.float64) for one in (offsets, units))
        if any(math.isfinite(reach) for reach in reaches):
            self.reach = torch.tensor(reaches, dtype=torch.float64)

    def _angles(self, periodic: Sequence[int]) -> list[int]:
        if self.objects is None:
            return list(periodic)
        kept = self.objects.kept
        return sorted({*self.objects.angles, *(kept.index(column) for column in periodic if column in kept)})

    def forward(self, features: Tensor) -> Tensor:
        """Scale raw features of shape `(..., n_features)`.

        Values beyond an edge are taken at the edge; `beyond_edges` counts them.
        """
        values = self._coordinates(features)
        scaled = torch.minimum(torch.maximum(values, self.floor), self.ceiling)
        if bool(self.uses_log.any()):
            scaled = torch.where(self.uses_log, scaled.log(), scaled)
        scaled = (scaled - self.mean) / self.scale
        is_periodic = self.is_periodic & self.is_kept
        parts = [scaled]
        if bool(is_periodic.any()):
            parts = [torch.where(is_periodic, _ROOT_2 * values.cos(), scaled), _ROOT_2 * values.sin()]
        if self.fill is not None:
            missing = self._missing(features)
            parts = [torch.where(missing, 0.0, part) for part in parts]
        chosen = [
            part if bool(which.all()) else part[..., which]
            for part, which in zip(parts, (self.is_kept, is_periodic), strict=False)
        ]
        if self.fill is not None:
            chosen.append((~self._absent(features)[..., self.filled]).to(self.mean.dtype))
        return torch.cat(chosen, dim=-1) if len(chosen) > 1 else chosen[0]

    def beyond_edges(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return, per coordinate, how many events lie beyond its edges, and how many farther than these are apart."""
        values = self._coordinates(features)
        distance = torch.maximum(self.floor - values, values - self.ceiling)
        if self.fill is not None:
            distance = torch.where(self._missing(features), -torch.inf, distance)
        return (distance > 0).sum(dim=0), (distance > self.ceiling - self.floor).sum(dim=0)

    def taken(self, features: FeatureMatrix, device: torch.device) -> Tensor:
        """Return events as a tensor, in float32 unless there is an offset to subtract first."""
        precision = torch.float32 if self.offset is None else torch.float64
        return torch.tensor(features, dtype=precision, device=device)

    def _coordinates(self, features: Tensor) -> Tensor:
        """Return what is scaled: features, centred where float32 needs it, or the coordinates made of them."""
        if self.fill is not None:
            features = torch.where(self._absent(features), 0.0, features)
        if self.offset is not None and self.unit is not None:
            features = (features.double() - self.offset) / self.unit
        if self.reach is not None:
            features = torch.clamp(features, -self.reach, self.reach)
        features = features.to(self.mean.dtype)
        return features if self.objects is None else self.objects(features)

    def _absent(self, features: Tensor) -> Tensor:
        """Return, per feature, whether its value misses."""
        if self.fill is None:
            return torch.zeros_like(features, dtype=torch.bool)
        return (features.float() == self.fill.float()) | (features.isnan() & ~self.fill.isnan())

    def _missing(self, features: Tensor) -> Tensor:
        """Return, per coordinate, whether a value misses that it is made of."""
        absent = self._absent(features)
        if self.objects is None:
            return absent
        return torch.stack([absent[..., list(one)].any(dim=-1) for one in self.objects.sources], dim=-1)


def _is_copy(values: Tensor, known: dict[bytes, int]) -> bool:
    """Whether the same values were there before; remember them."""
    key = hashlib.blake2b(np.ascontiguousarray(values.cpu().numpy() + 0.0).data, digest_size=16).digest()
    known[key] = known.get(key, 0) + 1
    return known[key] > 1


def _edges(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return the values beyond which a coordinate is not followed.

    Example:
        >>> _edges(np.arange(101.0)), _edges(np.append(np.zeros(100), 50.0)), _edges(np.zeros(3))
        ((-9.0, 109.0), (-2.5, 100.0), (0.0, 0.0))
    """
    last = len(values) - 1
    rank = min(_EDGE_EVENTS - 1, last // 2)
    ordered = np.partition(values, sorted({0, rank, last - rank, last}))
    low, tenth, other_tenth, high = (float(ordered[place]) for place in (0, rank, last - rank, last))
    least = _LEAST_MARGIN * (high - low)
    return low - max(tenth - low, least), high + max(high - other_tenth, least)


def _within_reach(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the values with those far beyond the bulk moved to where it ends, so that single ones do not hide it.

    Example:
        >>> bulk = np.linspace(-1.0, 1.0, 101)
        >>> moved = _within_reach(np.append(bulk, 1e6))
        >>> round(float(moved.max()), 1), _within_reach(bulk) is bulk
        (29.1, True)
    """
    bulk = without_dominant_value(values[:: max(1, len(values) // _N_PROBED)])
    low, centre, high = np.quantile(bulk, [0.05, 0.5, 0.95])
    reach = _REACH * float(high - low)
    if not reach or max(float(values.max() - centre), float(centre - values.min())) <= reach:
        return values
    return np.clip(values, centre - reach, centre + reach)


def _is_heavy_tailed(values: npt.NDArray[np.float64]) -> bool:
    skewness = _skewness(values)
    return skewness > _HEAVY_TAIL_SKEWNESS and abs(_skewness(np.log(values))) < 0.5 * skewness


def _skewness(values: npt.NDArray[np.float64]) -> float:
    centred = values - values.mean()
    variance = float(np.mean(centred**2))
    return float(np.mean(centred**3)) / variance**1.5 if variance > 0 else 0.0
