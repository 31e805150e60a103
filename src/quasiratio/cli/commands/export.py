"""`quasiratio export`: a model as one ONNX graph, for C++ and other frameworks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from quasiratio.cli.options import Json, Plugins, Quiet, split_list
from quasiratio.cli.terminal import Printer
from quasiratio.outputs import output_file
from quasiratio.registry import load_plugins

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Directory of a model.")],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="The .onnx file.")],
    separate_inputs: Annotated[
        bool, typer.Option("--separate-inputs", help="One input per feature, under its name.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there already.")] = False,
    plugins: Plugins = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as ONNX: raw features in, ratio (and its spread) out.

    Scaling, logarithms and ensemble average are inside the graph.
    """
    path = output_file(output, overwrite=force, suffixes=(".onnx",)).path

    load_plugins(split_list(plugins) or [])
    from quasiratio.estimators.loading import load_described  # noqa: PLC0415 - keeps --help fast

    estimator, content = load_described(model)
    estimator.export_onnx(path, separate_inputs=separate_inputs, overwrite=force)
    features = list(estimator.fingerprint_.ranges)
    printer = Printer(as_json=as_json, quiet=quiet)
    kind = content.estimator.kind
    parameters = list(getattr(getattr(estimator, "basis", None), "parameters", ()))
    values = {"output": str(path), "features": features, "kind": kind, "n_bytes": path.stat().st_size}
    printer.result(values | ({"parameters": parameters} if parameters else {}))
    beside = f", at theta = ({', '.join(parameters)})" if parameters else ""
    printer.line(f"Written: {path}, {path.stat().st_size} bytes, a {kind} of {', '.join(features)}{beside}")
