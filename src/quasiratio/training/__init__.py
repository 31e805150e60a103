"""Training: batches from memory, disk or several processes, objectives, and one loop for any number of networks."""

from quasiratio.training.batches import Batch, Batches, Pool, TrainingPool
from quasiratio.training.bootstrap import member_weights, normalized_per_group
from quasiratio.training.checkpoints import resumable
from quasiratio.training.event_source import TrainingSource
from quasiratio.training.history import TrainingHistory
from quasiratio.training.objectives import CrossEntropyObjective, RatioObjective, TunedRatioObjective
from quasiratio.training.projection import projected_line
from quasiratio.training.ranks import Ranks, alone, joined_ranks
from quasiratio.training.settings import TrainingSettings
from quasiratio.training.shared_training import SharedTraining
from quasiratio.training.stored_pool import StoredPool, StoredTraining
from quasiratio.training.trainer import TrainedNetworks, train

__all__ = [
    "Batch",
    "Batches",
    "CrossEntropyObjective",
    "Pool",
    "Ranks",
    "RatioObjective",
    "SharedTraining",
    "StoredPool",
    "StoredTraining",
    "TrainedNetworks",
    "TrainingHistory",
    "TrainingPool",
    "TrainingSettings",
    "TrainingSource",
    "TunedRatioObjective",
    "alone",
    "joined_ranks",
    "member_weights",
    "normalized_per_group",
    "projected_line",
    "resumable",
    "train",
]
