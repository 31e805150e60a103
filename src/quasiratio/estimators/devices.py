"""Where tensors live: which devices can be used for a fit, found out by using them."""

from __future__ import annotations

import warnings

import torch

from quasiratio.errors import InvalidInputError
from quasiratio.wording import shortened

__all__ = ["usable_device"]

_KINDS = ("cpu", "cuda", "mps", "xpu")


def usable_device(name: str) -> torch.device:
    """Return the device of this name, or raise unless it computes in single and in double precision.

    Example:
        >>> usable_device("cpu")
        device(type='cpu')
        >>> usable_device("meta")
        Traceback (most recent call last):
        ...
        quasiratio.errors.InvalidInputError: Got the device 'meta', which is not available here; ...
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    given: object = name
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about kinds of devices that PyTorch has given up
            device = torch.device(name)
        if isinstance(given, str) and device.type in _KINDS:
            for precision in (torch.float32, torch.float64):  # Apple's mps has no double precision
                float(torch.ones(1, dtype=precision, device=device).sum())
            return device
    except (RuntimeError, AssertionError, TypeError, ValueError, NotImplementedError):
        pass
    more = ", 'cuda'" if torch.cuda.is_available() else ""
    msg = f"Got the device {shortened(str(name))!r}, which is not available here; use 'auto' or 'cpu'{more}."
    raise InvalidInputError(msg)
