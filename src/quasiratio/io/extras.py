"""Optional dependencies of the file formats, with a sentence where one is missing."""

from __future__ import annotations

import importlib
from typing import Any

from quasiratio.errors import MissingExtraError

__all__ = ["require_extra"]


def require_extra(module: str, *, extra: str, purpose: str) -> Any:  # noqa: ANN401 - a module
    """Import an optional dependency, or say which extra installs it.

    Example:
        >>> require_extra("uproot", extra="root", purpose="to read ROOT files").__name__
        'uproot'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        msg = (
            f"Got a request {purpose}, which needs the package {module!r} that cannot be imported ({error}). "
            f"Install it with: pip install 'quasiratio[{extra}]'"
        )
        raise MissingExtraError(msg) from error
