"""Labels of axes, with units where there are any."""

from __future__ import annotations

__all__ = ["axis_label", "density_label"]


def axis_label(name: str, unit: str | None = None) -> str:
    """Return `name [unit]`, or the name alone.

    Example:
        >>> axis_label("m", "GeV"), axis_label("r")
        ('m [GeV]', 'r')
    """
    return f"{name} [{unit}]" if unit else name


def density_label(unit: str | None = None) -> str:
    """Return the label of a density normalised to one.

    Example:
        >>> density_label("GeV"), density_label()
        ('Density [1/GeV]', 'Density')
    """
    return axis_label("Density", f"1/{unit}" if unit else None)
