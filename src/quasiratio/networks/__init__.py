"""Networks with a leading member axis, and the scaling of their inputs."""

from quasiratio.networks.mlp import ACTIVATIONS, StackedMlp, default_hidden_layers
from quasiratio.networks.standardize import FeatureScaling

__all__ = ["ACTIVATIONS", "FeatureScaling", "StackedMlp", "default_hidden_layers"]
