"""Data in, `Figure` out: nothing here fits, draws a sample or opens a window.

What to use when:

- `closure_figure`, `closure_grid_figure`: observables of the target, the reference, and the reference as each
  method reweights it.
- `distribution_figure`: one observable of several samples. `density_figure`: two variables, with marginals.
- `ratio_figure`: ratios along a feature, against the exact one. `ratio_truth_figure`: event by event.
- `calibration_figure`: does an event with a learned ratio have that ratio? `support_figure`: are there
  reference events to reweight?
- `training_figure`: one fit. `loss_curves_figure`: several trainings against the lowest loss possible.
- `weight_figure`: signed weights and what they cost.
- `landscape_figure`, `risk_curve_figure`: risks over the mixture coefficients.
- `transform_figure`: what a network outputs for a ratio, with poles.
- `scatter_figure`: the result of a study against what was varied, with straight lines.
- `save_figure`: write a figure in several formats, all or none. `settled_layout`: arrange its panels once for several
  such calls.

Figures of arXiv:2410.10216, and what draws them:

| figure of the paper | function |
|---|---|
| ratio-to-score transforms of MSE and PARE(2, 1), range of the Signed case | `transform_figure` with \
`LossTransform.from_loss(Mse())`, `LossTransform.published_pare(2, 1)` |
| x-y density with marginals, reference and both targets | `density_figure` of `DensityGrid.from_events` |
| radial distributions, both cases | `distribution_figure`, with `exact=` for the closed form |
| radial closure, both cases, all models | `closure_figure`; `lower="quotient"` for the quotient |
| x and y closure, both cases | `closure_figure` or `closure_grid_figure` |
| sub-density closure in x, y, r for the four sub-ratios | `closure_grid_figure` with `titles=` |
| loss landscapes over (c0, c1), MSE beside PARE | `landscape_figure` of two `RiskLandscape` |
| validation-loss curves, unweighted, analytic optimum | `loss_curves_figure` with `optimum=` |
| VLRC AUC against sigma_w coloured by eta, with fit and R; against eta | `scatter_figure` of one coloured \
`ScatterSeries` |
| D_S2 against sigma_w and against eta, per model | `scatter_figure` of one coloured `ScatterSeries` per model |
| median D_S2 against sigma_w, two fits | `scatter_figure` of `ScatterSeries.medians()` |
| m_hh of both samples at the hard-scattering level | `distribution_figure` |
| weights and W^2 - W | `weight_figure` |
| c1 landscapes, PARE and MSE | `risk_curve_figure` of two `RiskCurve` |
| closure of m_hh, hh, jet and muon observables | `closure_figure` or `closure_grid_figure` |

A new figure takes its colours, sizes and fonts from `plots.style`, its checks of input from `plots.drawable`.
"""

from quasiratio.metrics import LinearFit, linear_fit
from quasiratio.plots.calibration_figure import CalibrationCurve, calibration_figure
from quasiratio.plots.closure_figure import closure_figure, closure_grid_figure
from quasiratio.plots.closure_panels import sign_changes
from quasiratio.plots.density_figure import DensityGrid, density_figure
from quasiratio.plots.distribution_figure import distribution_figure
from quasiratio.plots.figure_files import save_figure, settled_layout
from quasiratio.plots.landscape_figure import RiskCurve, RiskLandscape, landscape_figure, risk_curve_figure
from quasiratio.plots.ratio_figure import RatioCurve, ratio_figure
from quasiratio.plots.ratio_truth_figure import ratio_truth_figure
from quasiratio.plots.scatter_figure import ScatterSeries, scatter_figure
from quasiratio.plots.style import figure_style
from quasiratio.plots.support_figure import support_figure
from quasiratio.plots.training_figure import loss_curves_figure, training_figure
from quasiratio.plots.transform_figure import LossTransform, transform_figure
from quasiratio.plots.weight_figure import weight_figure

__all__ = [
    "CalibrationCurve",
    "DensityGrid",
    "LinearFit",
    "LossTransform",
    "RatioCurve",
    "RiskCurve",
    "RiskLandscape",
    "ScatterSeries",
    "calibration_figure",
    "closure_figure",
    "closure_grid_figure",
    "density_figure",
    "distribution_figure",
    "figure_style",
    "landscape_figure",
    "linear_fit",
    "loss_curves_figure",
    "ratio_figure",
    "ratio_truth_figure",
    "risk_curve_figure",
    "save_figure",
    "scatter_figure",
    "settled_layout",
    "sign_changes",
    "support_figure",
    "training_figure",
    "transform_figure",
    "weight_figure",
]
