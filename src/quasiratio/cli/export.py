"""`quasiratio export`: a model as one ONNX graph, for C++ and other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quasiratio.cli.options import Json, Quiet
from quasiratio.cli.output_directory import require_output_directory
from quasiratio.cli.printing import Printer
from quasiratio.errors import InvalidInputError

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .onnx file.")],
    separate_inputs: Annotated[
        bool, typer.Option("--separate-inputs", help="One input per feature, under its name.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as ONNX: raw features in, ratio (and its spread) out.

    Scaling, logarithms and ensemble average are inside the graph.
    """
    if output.suffix.lower() != ".onnx":
        msg = f"Got the output {str(output)!r} with the suffix {output.suffix!r}; expected .onnx. Rename it."
        raise InvalidInputError(msg)
    if output.exists() and (not force or output.is_dir()):
        msg = f"Got the output {str(output)!r}, which exists; expected a new file. Choose another, or add --force."
        raise InvalidInputError(msg)
    if not output.parent.is_dir():
        msg = f"Got the output {str(output)!r}, but there is no directory {str(output.parent)!r}; create it first."
        raise InvalidInputError(msg)
    require_output_directory(output.parent)

    from quasiratio.estimators.model_files import describe, load  # noqa: PLC0415 - keeps --help fast

    estimator = load(model)
    estimator.export_onnx(output, separate_inputs=separate_inputs)
    features = list(estimator.fingerprint_.ranges)
    printer = Printer(as_json=as_json, quiet=quiet)
    kind = describe(model).estimator.kind
    printer.result(
        {"output": str(output), "features": features, "kind": kind, "n_bytes": output.stat().st_size}
    )
    printer.line(f"Written: {output}, {output.stat().st_size} bytes, a {kind} of {', '.join(features)}")
