"""How a loss turns a ratio into what its network outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import FloatArray

if TYPE_CHECKING:
    from quasiratio.losses import RatioLoss

__all__ = ["LossTransform"]


@dataclass(frozen=True)
class LossTransform:
    """The output that a network should have for a given ratio.

    Args:
        name: Name of the loss.
        output: Function of an array of ratios; NaN where the loss has no output for them.
        pole: The ratio at which the output is infinite, or `None`.
        output_label: What to call the output on its axis.

    Example:
        >>> LossTransform("lsif", lambda ratio: ratio).pole is None
        True
    """

    name: str
    output: Callable[[FloatArray], FloatArray]
    pole: float | None = None
    output_label: str = "Raw output $z$"

    @classmethod
    def from_loss(cls, loss: RatioLoss, *, name: str | None = None) -> LossTransform:
        """Take the link of a loss: ratio to raw output.

        Args:
            loss: The loss; its parameters must have values.
            name: What to call it; its own name when left out.

        Example:
            >>> from quasiratio.losses import Mse
            >>> mse = LossTransform.from_loss(Mse())
            >>> mse.pole, mse.output(np.array([1.0])).tolist()
            (-1.0, [0.5])
        """
        import torch  # noqa: PLC0415 - figures of other things need no torch

        link = loss.link

        def output(ratio: FloatArray) -> FloatArray:
            return np.asarray(link.raw(torch.from_numpy(np.asarray(ratio, dtype=np.float64))).numpy())

        pole = getattr(link, "pole", None)
        return cls(name or loss.name, output, pole if pole is not None and math.isfinite(pole) else None)

    @classmethod
    def published_pare(cls, t0: float, t1: float) -> LossTransform:
        r"""Return the score of PARE as published, $s = (t_0 + t_1 r) / (t_0^2 + t_1^2 r)$.

        The networks of this package output another coordinate, which keeps its precision; that is
        `from_loss(Pare(t0, t1))`. For $t_0 = t_1$ the published score does not depend on the ratio.

        Args:
            t0: First parameter; positive.
            t1: Second parameter; positive, and not equal to the first.

        Example:
            >>> pare = LossTransform.published_pare(2, 1)
            >>> pare.pole, pare.output(np.array([0.0])).tolist()
            (-4.0, [0.5])
        """
        if not (0 < t0 < math.inf and 0 < t1 < math.inf) or t0 == t1:
            msg = f"Got t0 = {t0}, t1 = {t1}; expected two different positive numbers, such as 2 and 1."
            raise InvalidInputError(msg)
        return cls(
            f"PARE({t0:g}, {t1:g})",
            lambda ratio: (t0 + t1 * ratio) / (t0**2 + t1**2 * ratio),
            -((t0 / t1) ** 2),
            "Score $s$",
        )
