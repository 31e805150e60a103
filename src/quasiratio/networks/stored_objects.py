"""The coordinates of objects outside of PyTorch: their document in model files, and their ONNX operations."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from quasiratio.model_files.document import Count, Document, Name, refuse_if
from quasiratio.model_files.onnx_graph import OnnxGraph
from quasiratio.networks.objects import COLLINEAR, LARGEST_ETA, TINY, ObjectColumns, ObjectCoordinates

__all__ = ["Column", "ObjectDocument", "ObjectsDocument", "add_objects", "objects_document", "stored_objects"]

Column = Annotated[int, Field(ge=0)]


class ObjectDocument(Document):
    """The columns of one object."""

    name: Name
    pt: Column
    eta: Column | None
    phi: Column
    mass: Column | None = None


class ObjectsDocument(Document):
    """`ObjectCoordinates`: objects, and which symmetries and invariants make coordinates of them."""

    n_features: Count
    objects: list[ObjectDocument] = Field(min_length=1, max_length=1000)
    azimuth: Column | None = None
    reflects_eta: bool = False
    reflects_phi: bool = False
    invariants: bool = False

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates."""
        n_complete = sum(group.eta is not None for group in self.objects)
        n_pairs = n_complete * (n_complete - 1) // 2 if self.invariants else 0
        return self.n_features - (self.azimuth is not None) + 2 * n_pairs

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = [(group.pt, group.eta, group.phi, group.mass) for group in self.objects]
        columns = [column for group in given for column in group if column is not None]
        refuse_if(
            len(set(columns)) < len(columns) or max(columns) >= self.n_features,
            "the columns of the objects are not among the features, each once",
        )
        refuse_if(
            self.azimuth is not None and self.azimuth >= len(self.objects),
            "azimuths are measured from an object that is not there",
        )
        refuse_if(
            self.reflects_phi and (self.azimuth is None or len(self.objects) < 2),
            "a reflection in phi needs two objects and an azimuth to measure from",
        )
        refuse_if(
            self.reflects_eta and all(group.eta is None for group in self.objects),
            "a reflection in eta needs an object with eta",
        )
        return self


def objects_document(objects: ObjectCoordinates) -> ObjectsDocument:
    """Describe the coordinates of objects."""
    values = asdict(objects)
    return ObjectsDocument(**values | {"objects": list(values["objects"])})


def stored_objects(document: ObjectsDocument) -> ObjectCoordinates:
    """Make the coordinates of objects again."""
    values = document.model_dump()
    return ObjectCoordinates(
        **values | {"objects": tuple(ObjectColumns(**group) for group in values["objects"])}
    )


def add_objects(graph: OnnxGraph, features: str, objects: ObjectCoordinates) -> str:
    """Add what `ObjectCoordinates` does: `(n, d)` features to coordinates."""
    columns = [
        graph.add("Gather", features, graph.constant(np.array([column])), axis=1)
        for column in range(objects.n_features)
    ]
    pairs = [value for pair in objects.pairs for value in _add_invariants(graph, columns, *pair)]
    if objects.azimuth is not None:
        start = columns[objects.objects[objects.azimuth].phi]
        for group in objects.objects:
            columns[group.phi] = graph.add("Sub", columns[group.phi], start)
    if objects.mirror_phi is not None:
        sign = _add_sign(graph, graph.add("Sin", columns[objects.mirror_phi]))
        for group in objects.objects:
            columns[group.phi] = graph.add("Mul", sign, columns[group.phi])
    if objects.mirror_eta is not None:
        sign = _add_sign(graph, columns[objects.mirror_eta])
        for group in objects.objects:
            if group.eta is not None:
                columns[group.eta] = graph.add("Mul", sign, columns[group.eta])
    return graph.add("Concat", *(columns[column] for column in objects.kept), *pairs, axis=1)


def _add_sign(graph: OnnxGraph, values: str) -> str:
    return graph.add("Where", graph.add("Less", values, 0.0), -1.0, 1.0)


def _add_invariants(
    graph: OnnxGraph, columns: list[str], one: ObjectColumns, two: ObjectColumns
) -> tuple[str, str]:
    """Add the logarithm of the mass and the distance of a pair."""
    (energy_1, pz_1, mass_1), (energy_2, pz_2, mass_2) = (
        _add_momentum(graph, columns, o) for o in (one, two)
    )
    between = graph.add("Sub", columns[one.phi], columns[two.phi])
    transverse = graph.add("Mul", columns[one.pt], columns[two.pt])
    cosine = graph.add("Sin", graph.add("Add", between, math.pi / 2))
    product = graph.add("Sub", graph.add("Mul", energy_1, energy_2), graph.add("Mul", pz_1, pz_2))
    product = graph.add("Sub", product, graph.add("Mul", transverse, cosine))
    squared = graph.add("Mul", product, 2.0)
    for mass in (mass_1, mass_2):
        if mass is not None:
            squared = graph.add("Add", squared, mass)
    regular = graph.add("Add", graph.add("Mul", graph.add("Abs", transverse), COLLINEAR), TINY)
    logarithm = graph.add("Log", graph.add("Add", graph.add("Max", squared, 0.0), regular))
    turns = graph.add("Floor", graph.add("Add", graph.add("Div", between, 2.0 * math.pi), 0.5))
    turned = graph.add("Sub", between, graph.add("Mul", turns, 2.0 * math.pi))
    along = graph.add("Sub", _add_eta(graph, columns, one), _add_eta(graph, columns, two))
    distance = graph.add("Add", graph.add("Mul", along, along), graph.add("Mul", turned, turned))
    return graph.add("Mul", logarithm, 0.5), graph.add("Sqrt", distance)


def _add_momentum(graph: OnnxGraph, columns: list[str], group: ObjectColumns) -> tuple[str, str, str | None]:
    """Add energy, momentum along the beam and squared mass, where there is one, of an object."""
    eta, pt = _add_eta(graph, columns, group), columns[group.pt]
    grown, shrunk = graph.add("Exp", eta), graph.add("Exp", graph.add("Neg", eta))
    size = graph.add("Mul", pt, graph.add("Mul", graph.add("Add", grown, shrunk), 0.5))
    pz = graph.add("Mul", pt, graph.add("Mul", graph.add("Sub", grown, shrunk), 0.5))
    squared = graph.add("Mul", size, size)
    mass = None
    if group.mass is not None:
        mass = graph.add("Mul", columns[group.mass], columns[group.mass])
        squared = graph.add("Add", squared, mass)
    return graph.add("Sqrt", squared), pz, mass


def _add_eta(graph: OnnxGraph, columns: list[str], group: ObjectColumns) -> str:
    if group.eta is None:  # pairs have objects with eta only
        msg = f"the object {group.name!r} has no eta"
        raise ValueError(msg)
    return graph.add("Max", graph.add("Min", columns[group.eta], LARGEST_ETA), -LARGEST_ETA)
