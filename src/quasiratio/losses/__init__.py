"""Seven losses for ratio estimation, one file each, and the protocol of an eighth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quasiratio.errors import InvalidInputError
from quasiratio.losses.bce import Bce
from quasiratio.losses.links import ExponentialLink, Link, PoleLink, SinhLink
from quasiratio.losses.lsif import Lsif
from quasiratio.losses.mlc import Mlc
from quasiratio.losses.mse import Mse
from quasiratio.losses.pare import Pare
from quasiratio.losses.ratio_loss import RatioLoss
from quasiratio.losses.revert import Revert
from quasiratio.losses.sqr import Sqr

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "LOSSES",
    "Bce",
    "ExponentialLink",
    "Link",
    "Lsif",
    "Mlc",
    "Mse",
    "Pare",
    "PoleLink",
    "RatioLoss",
    "Revert",
    "SinhLink",
    "Sqr",
    "loss_by_name",
]

LOSSES: dict[str, Callable[[], RatioLoss]] = {
    "bce": Bce,
    "mse": Mse,
    "mlc": Mlc,
    "sqr": Sqr,
    "pare": Pare,
    "revert": Revert,
    "lsif": Lsif,
}
"""Constructors by name; `"pare"` is the published pair (25619, 58)."""


def loss_by_name(loss: str | RatioLoss) -> RatioLoss:
    """Return the loss of that name, or the loss itself.

    Example:
        >>> loss_by_name("lsif")
        Lsif()
    """
    if isinstance(loss, RatioLoss):
        return loss
    if loss in LOSSES:
        return LOSSES[loss]()
    msg = f"Got the loss {loss!r}; expected one of {', '.join(LOSSES)}, or an instance of RatioLoss."
    raise InvalidInputError(msg)
