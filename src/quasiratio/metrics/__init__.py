"""How well a ratio does its work, measured with weights of either sign.

What to use when:

- `closure`: does the reweighted reference look like the target, observable by observable?
- `total_chi_squared`: the same with the error of the training sample; `disagreement`: how large is what is left?
- `ratio_risk`, `ratio_risk_difference`: which of two ratio models is better, whatever their losses?
- `chi_squared`, `tsallis_relative_entropy`, `sliced_wasserstein`: one distance between two samples.
- `histogram_band`: the error that a training leaves in a histogram, from the members of an ensemble.
- `weight_diagnostics`, `excess_gradient_variance`: what the weights cost before anything is trained.
- `inspect_samples`: all of that for a pair of samples, their overlap, and which method suits them.
- `feature_overlaps`, `n_duplicates`, `n_shared`: can one sample be reweighted to the other at all?
- `validation_loss_area`: how slowly a training converged.
"""

from quasiratio.metrics.binning import natural_edges, radial_edges, uniform_edges
from quasiratio.metrics.chi_squared import ChiSquared, chi_squared
from quasiratio.metrics.closure import closure
from quasiratio.metrics.closure_result import ClosureResult, MethodClosure, ObservableClosure
from quasiratio.metrics.disagreement import GRADE_LIMITS, Disagreement, Grade, disagreement, grade
from quasiratio.metrics.duplicates import n_duplicates, n_shared
from quasiratio.metrics.histogram import WeightedHistogram, weighted_histogram
from quasiratio.metrics.inspection import Inspection, inspect_samples
from quasiratio.metrics.member_band import HistogramBand, histogram_band
from quasiratio.metrics.overlap import FeatureOverlap, feature_overlaps
from quasiratio.metrics.ratio_risk import RatioRisk, ratio_risk, ratio_risk_difference
from quasiratio.metrics.recommendation import Recommendation, recommend_method
from quasiratio.metrics.straight_line import LinearFit, PartialCorrelation, linear_fit, partial_correlation
from quasiratio.metrics.training_error import TrainingError, total_chi_squared
from quasiratio.metrics.tsallis import TsallisEntropy, tsallis_entropy, tsallis_relative_entropy
from quasiratio.metrics.vlrc import validation_loss_area
from quasiratio.metrics.wasserstein import sliced_wasserstein
from quasiratio.metrics.weights import WeightDiagnostics, excess_gradient_variance, weight_diagnostics

__all__ = [
    "GRADE_LIMITS",
    "ChiSquared",
    "ClosureResult",
    "Disagreement",
    "FeatureOverlap",
    "Grade",
    "HistogramBand",
    "Inspection",
    "LinearFit",
    "MethodClosure",
    "ObservableClosure",
    "PartialCorrelation",
    "RatioRisk",
    "Recommendation",
    "TrainingError",
    "TsallisEntropy",
    "WeightDiagnostics",
    "WeightedHistogram",
    "chi_squared",
    "closure",
    "disagreement",
    "excess_gradient_variance",
    "feature_overlaps",
    "grade",
    "histogram_band",
    "inspect_samples",
    "linear_fit",
    "n_duplicates",
    "n_shared",
    "natural_edges",
    "partial_correlation",
    "radial_edges",
    "ratio_risk",
    "ratio_risk_difference",
    "recommend_method",
    "sliced_wasserstein",
    "total_chi_squared",
    "tsallis_entropy",
    "tsallis_relative_entropy",
    "uniform_edges",
    "validation_loss_area",
    "weight_diagnostics",
    "weighted_histogram",
]
