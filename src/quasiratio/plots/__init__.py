"""Data in, `Figure` out: nothing here fits, draws a sample or opens a window.

What to use when:

- `closure_figure`: one observable of the target, the reference, and the reference as each method reweights it.
- `ratio_figure`: learned ratios along a feature against the exact one; `RatioCurve` holds each of them.
- `save_figure`: write a figure in several formats, all or none.

A new figure takes its colours, sizes and fonts from `plots.style`.
"""

from quasiratio.plots.closure_figure import closure_figure
from quasiratio.plots.ratio_curve import RatioCurve
from quasiratio.plots.ratio_figure import ratio_figure
from quasiratio.plots.save import save_figure
from quasiratio.plots.sign_changes import sign_changes
from quasiratio.plots.style import figure_style

__all__ = ["RatioCurve", "closure_figure", "figure_style", "ratio_figure", "save_figure", "sign_changes"]
