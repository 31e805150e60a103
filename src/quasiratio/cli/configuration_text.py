"""A commented configuration to start from."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping
from typing import Any

from quasiratio.cli.configuration import FitConfiguration

__all__ = ["configuration_text"]

_HEADER = """\
# A fit, for: quasiratio fit THIS_FILE. Options on the command line override these lines.
# Paths are relative to the directory in which the command runs."""
_EXAMPLES: dict[str, Any] = {
    "reference": "reference.root:events",
    "target": "target.root:events",
    "output": "model",
}
_SUGGESTIONS: dict[str, Any] = {
    "tree": "events",
    "features": ["pt", "eta", "jet_*", "ptg=pt/1000"],
    "label": ["ptg=p_T [GeV]"],
    "objects": "mu1:mu1_pt,mu1_eta,mu1_phi; mu2:mu2_pt,mu2_eta,mu2_phi",
    "symmetry": ["azimuth"],
    "weight": "w_gen * w_pu",
    "reference_weight": "w_gen",
    "target_weight": "w_gen * w_pu",
    "selection": "pt > 30 and abs(eta) < 2.5",
    "loss": "bce",
    "activation": "silu",
    "steps": 3000,
    "learning_rate": 0.01,
    "hidden_layers": [64, 64],
    "patience": 20,
    "epoch_size": 100000,
}


def configuration_text(given: Mapping[str, Any]) -> str:
    """Return a YAML file with every key explained; keys that are at their default stand behind a `#`.

    Args:
        given: Values to fill in.

    Example:
        >>> [line for line in configuration_text({"members": 8}).splitlines() if line.startswith("members")]
        ['members: 8']
    """
    blocks = [_HEADER]
    for key, field in FitConfiguration.model_fields.items():
        comment = textwrap.fill(field.description or "", 100, initial_indent="# ", subsequent_indent="# ")
        is_set = key in given or key in _EXAMPLES
        value = given.get(key, _EXAMPLES.get(key))
        if not is_set:
            value = _SUGGESTIONS.get(key, field.default)
        # JSON is YAML, in quotes where YAML might see something else.
        blocks.append(f"{comment}\n{'' if is_set else '# '}{key}: {_written(value)}")
    return "\n\n".join(blocks) + "\n"


def _written(value: Any) -> str:  # noqa: ANN401 - plain values
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return json.dumps(value[0])
    return json.dumps(value)
