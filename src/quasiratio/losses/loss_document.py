"""Losses in model files: by name and parameters, never as code.

A loss of the user's own is stored by its name. To load it, the user registers it or hands it to `load`; nothing is
imported because a file says so.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from quasiratio.errors import InvalidInputError
from quasiratio.losses.ratio_loss import RatioLoss
from quasiratio.model_files.document import Document, Name
from quasiratio.registry import LOSSES

__all__ = ["LossDocument", "Scalar", "UserLosses", "loss_document", "stored_loss"]

UserLosses = Mapping[str, RatioLoss | type[RatioLoss]]
Scalar = str | bool | int | float | None


class LossDocument(Document):
    """A loss object: its name and its parameters. Code is never stored, and never looked up by `type`."""

    name: Name
    parameters: dict[Name, Scalar]
    is_built_in: bool
    type: Name

    def restored(self, losses: UserLosses) -> RatioLoss:
        """Make the loss again, one that is neither ours nor registered from `losses`."""
        return stored_loss(self, losses)


def loss_document(loss: RatioLoss) -> LossDocument:
    """Describe a loss; its parameters must be plain values.

    Example:
        >>> from quasiratio.losses import Pare
        >>> loss_document(Pare(eps="auto")).parameters
        {'eps': 'auto'}
    """
    parameters = _parameters(loss)
    plain = str | bool | int | float | None
    odd = [name for name, value in parameters.items() if not isinstance(value, plain)]
    if odd:
        msg = (
            f"Got the loss {loss.name!r} with {', '.join(map(repr, odd))}, which cannot be stored; expected a loss whose "
            "parameters are numbers and strings, as fields of a dataclass."
        )
        raise InvalidInputError(msg)
    kind = type(loss)
    return LossDocument(
        name=loss.name,
        parameters=parameters,
        is_built_in=_built_in(loss.name) is kind,
        type=f"{kind.__module__}.{kind.__qualname__}",
    )


def stored_loss(document: LossDocument, losses: UserLosses) -> RatioLoss:
    """Make the loss again, a user's own from `losses`."""
    if document.is_built_in:
        given: Any = _built_in(document.name)
    else:
        given = losses.get(document.name, _registered(document.name))
    if given is None:
        msg = (
            f"The model needs the loss {document.name!r} ({document.type}), which is not part of quasiratio; give it, as "
            f"in load(path, losses={{{document.name!r}: YourLoss}}), or register it with quasiratio.register_loss."
        )
        raise InvalidInputError(msg)
    try:
        loss = given if isinstance(given, RatioLoss) else given(**document.parameters)
    except TypeError as error:
        msg = f"Got {given!r} for the loss {document.name!r} with {document.parameters}; it cannot be made ({error})."
        raise InvalidInputError(msg) from None
    if not isinstance(loss, RatioLoss) or (loss.name, _parameters(loss)) != (
        document.name,
        document.parameters,
    ):
        msg = (
            f"Got {loss!r} for the loss {document.name!r}; expected a RatioLoss of that name with the parameters "
            f"{document.parameters} of the fit."
        )
        raise InvalidInputError(msg)
    return loss


def _built_in(name: str) -> type[RatioLoss] | None:
    return cast("type[RatioLoss]", LOSSES[name]) if name in LOSSES.built_in else None


def _registered(name: str) -> Any:  # noqa: ANN401 - a loss, its class, or a function that makes it
    if name not in LOSSES or name in LOSSES.built_in:
        return None
    found = LOSSES[name]
    return found if isinstance(found, RatioLoss | type) else type(found())


def _parameters(loss: Any) -> dict[str, Any]:  # noqa: ANN401 - a loss
    if dataclasses.is_dataclass(loss):
        return {field.name: getattr(loss, field.name) for field in dataclasses.fields(loss)}
    return dict(vars(loss)) if hasattr(loss, "__dict__") else {}
