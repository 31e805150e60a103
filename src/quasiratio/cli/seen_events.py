"""What to say where a model meets the events that it was trained on."""

from __future__ import annotations

__all__ = ["seen_line"]


def seen_line(share: float, what: str = "events") -> str | None:
    """Return one line with the share and the way out, or nothing where no event was recognised.

    Example:
        >>> seen_line(0.0)
        >>> seen_line(0.75).split(". ")[0]
        'About 75% of the events took part in the training of this model, and share their fluctuations with its ratio'
    """
    if share <= 0:
        return None
    return (
        f"About {share:.0%} of the {what} took part in the training of this model, and share their fluctuations with "
        "its ratio. For ratios from models that have not seen the event: 'quasiratio fit --folds 5'."
    )
