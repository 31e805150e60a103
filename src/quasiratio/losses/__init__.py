"""Seven losses for ratio estimation, one file each, and the protocol of an eighth."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from quasiratio import registry
from quasiratio.errors import InvalidInputError
from quasiratio.losses.links import ExponentialLink, Link, PoleLink, SinhLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    from quasiratio.losses.bce import Bce as Bce
    from quasiratio.losses.lsif import Lsif as Lsif
    from quasiratio.losses.mlc import Mlc as Mlc
    from quasiratio.losses.mse import Mse as Mse
    from quasiratio.losses.pare import Pare as Pare
    from quasiratio.losses.revert import Revert as Revert
    from quasiratio.losses.sqr import Sqr as Sqr

__all__ = [  # noqa: PLE0604 - losses are listed once, in the registry
    *registry.LOSSES.built_in_classes(),
    "LOSSES",
    "ExponentialLink",
    "Link",
    "PoleLink",
    "RatioLoss",
    "SinhLink",
    "loss_by_name",
]

LOSSES: Mapping[str, Callable[[], RatioLoss]] = registry.LOSSES
"""Constructors by name, yours among them (see `quasiratio.registry`); `"pare"` is the published pair (25619, 58)."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - the class of a loss
    home = registry.LOSSES.home(name)
    if home is None:
        msg = f"module 'quasiratio.losses' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(importlib.import_module(home.partition(":")[0]), name)


def loss_by_name(loss: str | RatioLoss) -> RatioLoss:
    """Return the loss of that name, or the loss itself.

    Example:
        >>> loss_by_name("lsif")
        Lsif()
    """
    if isinstance(loss, RatioLoss):
        return loss
    if loss in LOSSES:
        found: Any = LOSSES[loss]
        return found if isinstance(found, RatioLoss) else cast("RatioLoss", found())
    msg = f"Got the loss {loss!r}; expected one of {', '.join(LOSSES)}, or an instance of RatioLoss."
    raise InvalidInputError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
