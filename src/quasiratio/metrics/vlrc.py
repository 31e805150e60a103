r"""The area under the curve of the residual validation loss (VLRC AUC of arXiv:2410.10216).

$$A = \int_{e_\mathrm{first}}^{e_\mathrm{stop}} [L(e) - L(e_\mathrm{stop})]\,de$$

It says how slowly a training converged, in units of loss times epochs. Compare only trainings with one
epoch length and a constant rate: a decaying rate flattens the end of every curve. With early stopping, the
stopping point is the epoch whose state is kept; the last one before patience ran out is higher by chance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from quasiratio.errors import InvalidInputError
from quasiratio.metrics.arrays import checked_values

__all__ = ["validation_loss_area"]


def validation_loss_area(validation_loss: npt.ArrayLike, *, epochs: npt.ArrayLike | None = None) -> float:
    """Return the area between the validation loss and its final value, by the trapezoidal rule.

    Args:
        validation_loss: The validation loss at each epoch, up to the stopping point.
        epochs: Where the losses were taken, in epochs; `0, 1, 2, ...` when left out.

    Example:
        >>> validation_loss_area([3.0, 2.0, 1.0, 1.0])
        2.0
    """
    loss = checked_values(validation_loss, "validation losses")
    if len(loss) == 0:
        msg = "Got no validation losses; expected at least one epoch."
        raise InvalidInputError(msg)
    where = np.arange(len(loss), dtype=np.float64)
    if epochs is not None:
        where = checked_values(epochs, "epochs", n_expected=len(loss))
        if np.any(np.diff(where) <= 0):
            msg = "Got epochs that do not increase; expected the epochs in the order of the training."
            raise InvalidInputError(msg)
    residual = loss - loss[-1]
    return float(np.diff(where) @ (residual[1:] + residual[:-1]) / 2)
