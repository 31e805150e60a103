"""Training: batches from memory, objectives, and one loop for any number of networks."""

from quasiratio.training.batches import Batch, Batches, Pool, TrainingPool
from quasiratio.training.bootstrap import member_weights, normalized_per_group
from quasiratio.training.checkpoints import resumable
from quasiratio.training.history import TrainingHistory
from quasiratio.training.objectives import CrossEntropyObjective, RatioObjective, TunedRatioObjective
from quasiratio.training.settings import TrainingSettings
from quasiratio.training.trainer import TrainedNetworks, train

__all__ = [
    "Batch",
    "Batches",
    "CrossEntropyObjective",
    "Pool",
    "RatioObjective",
    "TrainedNetworks",
    "TrainingHistory",
    "TrainingPool",
    "TrainingSettings",
    "TunedRatioObjective",
    "member_weights",
    "normalized_per_group",
    "resumable",
    "train",
]
