"""What every fitted estimator can do with files: `save` and `export_onnx`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

__all__ = ["PersistentEstimator"]


class PersistentEstimator:
    """Mixin of all estimators of quasiratio."""

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        notes: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the fitted estimator to a directory that `qr.load` reads.

        `model.json` is readable and `weights.safetensors` holds the tensors; nothing is pickled. The same data and
        seed give the same bytes: the times of the training stand in `times.json`. A directory with other files
        in it is left alone.

        Args:
            path: The directory; the one above it must exist.
            notes: JSON values to keep with the model, such as how the events were selected.
            overwrite: Replace, in one step, a model that is there already.
        """
        from quasiratio.estimators.model_files import save  # noqa: PLC0415 - it imports all estimators

        save(self, path, notes=notes, overwrite=overwrite)  # type: ignore[arg-type]

    def export_onnx(self, path: str | os.PathLike[str], *, separate_inputs: bool = False) -> None:
        """Write the fitted estimator as one ONNX graph: raw features in, result out.

        Scaling, logarithms, networks, recombination, ensemble average and normalisation are inside, in double
        precision. Input: `features`, float32 of shape `(batch, d)`, or float64 where the features need it (a time
        stamp); a missing value is NaN or the number of its fill, which the metadata have. Outputs, float32 of shape `(batch,)`: `ratio`
        and, for an ensemble, `ratio_std`; reweighters give `weight_factor` instead, by which to multiply the
        weight (`Reweighter`) or its absolute value (`PositiveReweighter`).

        Args:
            path: The file; an older one is replaced in one step.
            separate_inputs: One input of shape `(batch, 1)` per feature, under its name.
        """
        from quasiratio.estimators.onnx_export import export_onnx  # noqa: PLC0415 - it imports all estimators

        export_onnx(self, path, separate_inputs=separate_inputs)  # type: ignore[arg-type]
