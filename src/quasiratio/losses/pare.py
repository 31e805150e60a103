r"""The pole-adjustable ratio estimation (PARE) loss, in a form that keeps its precision.

The paper trains a score $s$ with $(1 - t_y s)^2$, whose optimum is
$s^* = (t_0 + t_1 r) / (t_0^2 + t_1^2 r)$. Written in $r$ with $\epsilon = t_1/t_0$,

$$1 - t_0 s = -\epsilon (1-\epsilon)\,\frac{r}{1 + \epsilon^2 r}, \qquad
  1 - t_1 s = \frac{1-\epsilon}{1 + \epsilon^2 r},$$

so that for the published $t_0 = 25619$, $t_1 = 58$ the information sits in the last digits of numbers
near one. Dividing by $\epsilon^2 (1-\epsilon)^2$ and dropping a constant leaves, with
$u = r / (1 + \epsilon^2 r)$, the quadratics $u^2$ and $-2u + \epsilon^2 u^2$: the same risk up to an affine
map, exact in float32. Only $\epsilon$ matters; the pole stands at $r = -1/\epsilon^2$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from quasiratio.errors import InvalidInputError
from quasiratio.losses.links import PoleLink
from quasiratio.losses.ratio_loss import RatioLoss

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

__all__ = ["PUBLISHED_T0", "PUBLISHED_T1", "Pare"]

PUBLISHED_T0, PUBLISHED_T1 = 25619.0, 58.0
_AUTO_MARGIN = 4.0


@dataclass(frozen=True, init=False)
class Pare(RatioLoss):
    r"""PARE, $\ell_0 = u^2$, $\ell_1 = -2u + \epsilon^2 u^2$, $r = u / (1 - \epsilon^2 u)$.

    Convex in $u$ wherever $q_0 + \epsilon^2 q_1 > 0$; with a positive reference every ratio above the pole
    $-1/\epsilon^2$ can be learned. $\epsilon = 0$ is (twice) LSIF and $\epsilon = 1$ is MSE.

    Args:
        t0: First parameter of the paper; positive. Left out with `t1` and `eps`: the published pair.
        t1: Second parameter of the paper; positive.
        eps: Give $\epsilon = t_1/t_0 \ge 0$ directly, or `"auto"` to choose it from a first estimate.

    Example:
        >>> loss = Pare(25619, 58)
        >>> round(loss.eps, 7), round(loss.pole)
        (0.0022639, -195105)
        >>> Pare(eps="auto").resolved([-12.0, 0.5, 3.0]).pole
        -2304.0
    """

    eps: float | Literal["auto"]

    name: ClassVar[str] = "pare"

    def __init__(
        self,
        t0: float | None = None,
        t1: float | None = None,
        *,
        eps: float | Literal["auto"] | None = None,
    ) -> None:
        if eps is not None and (t0 is not None or t1 is not None):
            msg = (
                f"Got both eps = {eps!r} and t0 = {t0}, t1 = {t1}; expected either eps or the pair (t0, t1)."
            )
            raise InvalidInputError(msg)
        object.__setattr__(self, "eps", _checked_eps(eps) if eps is not None else _eps_of_pair(t0, t1))

    @property
    def link(self) -> PoleLink:
        r"""The link $r = u / (1 - \epsilon^2 u)$."""
        return PoleLink(self._number())

    @property
    def requires_positive(self) -> tuple[tuple[float, float], ...]:
        r"""The risk is bounded where $q_0 + \epsilon^2 q_1 > 0$."""
        return ((1.0, self._number() ** 2),)

    @property
    def pole(self) -> float:
        r"""The ratio $-1/\epsilon^2 = -(t_0/t_1)^2$ that cannot be expressed."""
        return self.link.pole

    @property
    def needs_first_estimate(self) -> bool:
        r"""Whether $\epsilon$ is still to be chosen."""
        return self.eps == "auto"

    def reference(self, raw: Tensor) -> Tensor:
        """Return $u^2$."""
        return raw.square()

    def target(self, raw: Tensor) -> Tensor:
        r"""Return $-2u + \epsilon^2 u^2$."""
        return raw * (self._number() ** 2 * raw - 2.0)

    def resolved(self, first_estimate: npt.ArrayLike) -> Pare:
        r"""Choose $\epsilon$ so that $-1/\epsilon$ lies below every estimated ratio, with a margin of four.

        The reference term stays of order one up to $|r| \sim 1/\epsilon$, so large positive ratios count
        as well. In the reduced form a small $\epsilon$ costs no precision.
        """
        if self.eps != "auto":
            return self
        extent = float(np.max(np.abs(np.asarray(first_estimate, dtype=float)), initial=1.0))
        if not math.isfinite(extent):
            msg = (
                "Got a first estimate with NaN or infinite ratios; expected finite ratios to choose eps from."
            )
            raise InvalidInputError(msg)
        return Pare(eps=1.0 / (_AUTO_MARGIN * extent))

    def _number(self) -> float:
        if isinstance(self.eps, str):
            msg = (
                'Pare(eps="auto") has no value yet; call resolved(first_estimate) or let an estimator fit it.'
            )
            raise InvalidInputError(msg)
        return self.eps


def _checked_eps(eps: float | str) -> float | Literal["auto"]:
    if isinstance(eps, str):
        if eps == "auto":
            return "auto"
    elif 0 <= eps < math.inf:
        return float(eps)
    msg = f"Got eps = {eps!r}; expected a finite nonnegative number or 'auto'."
    raise InvalidInputError(msg)


def _eps_of_pair(t0: float | None, t1: float | None) -> float:
    if t0 is None and t1 is None:
        t0, t1 = PUBLISHED_T0, PUBLISHED_T1
    if t0 is None or t1 is None or not (0 < t0 < math.inf and 0 < t1 < math.inf):
        msg = f"Got t0 = {t0}, t1 = {t1}; expected two positive numbers, such as Pare(25619, 58)."
        raise InvalidInputError(msg)
    return t1 / t0
