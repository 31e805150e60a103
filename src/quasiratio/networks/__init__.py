"""Networks with a leading member axis, and the scaling of their inputs."""

from quasiratio.networks.activations import ACTIVATIONS, Activation, activation_shares
from quasiratio.networks.angles import declared_angles, recognised_angles, refuse_degrees, warn_of_degrees
from quasiratio.networks.mlp import StackedMlp, default_hidden_layers
from quasiratio.networks.objects import ObjectCoordinates
from quasiratio.networks.sentinels import recognised_sentinels
from quasiratio.networks.standardize import FeatureScaling

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "FeatureScaling",
    "ObjectCoordinates",
    "StackedMlp",
    "activation_shares",
    "declared_angles",
    "default_hidden_layers",
    "recognised_angles",
    "recognised_sentinels",
    "refuse_degrees",
    "warn_of_degrees",
]
