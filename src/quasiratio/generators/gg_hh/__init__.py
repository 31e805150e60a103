r"""Higgs-boson pairs in gluon fusion, $gg \to hh$, at leading order with the full top-mass dependence.

The linear SMEFT target is a quasiprobability: its interference with the Standard Model is negative at low
invariant masses. `generate` makes unweighted samples of it, at parton level or showered by Pythia 8, and
every event carries the exact ratio of its parton-level process.

Where it differs from the paper it replaces: leading order and a parton shower instead of next-to-leading
order; NNPDF3.1 instead of 3.0; jets defined in `jets`; the strong coupling in the contact couplings runs
(see `Couplings`).
"""

from quasiratio.generators.gg_hh.amplitudes import Expansion, FormFactors, squared_amplitude
from quasiratio.generators.gg_hh.couplings import PAPER_POINT, STANDARD_MODEL, Couplings
from quasiratio.generators.gg_hh.cross_section import HardProcess, cross_section
from quasiratio.generators.gg_hh.form_factors import HIGGS_MASS, TOP_MASS, form_factors
from quasiratio.generators.gg_hh.generate import GeneratedSample, generate
from quasiratio.generators.gg_hh.parton_density import PartonDensity, load_parton_density
from quasiratio.generators.gg_hh.points import WILSON_COEFFICIENTS, WeightPoint, weight_points
from quasiratio.generators.gg_hh.production import PARTON_FEATURES, SAMPLES
from quasiratio.generators.gg_hh.sampler import PartonEvents, PartonSampler
from quasiratio.generators.gg_hh.selection import (
    FEATURES,
    NO_PT_CUTS,
    OBJECTS,
    OBSERVABLES,
    PAPER_PT_CUTS,
    REFERENCE_PT_CUTS,
    PtCuts,
    reference_pt_cuts,
)
from quasiratio.generators.gg_hh.strong_coupling import alpha_s

__all__ = [
    "FEATURES",
    "HIGGS_MASS",
    "NO_PT_CUTS",
    "OBJECTS",
    "OBSERVABLES",
    "PAPER_POINT",
    "PAPER_PT_CUTS",
    "PARTON_FEATURES",
    "REFERENCE_PT_CUTS",
    "SAMPLES",
    "STANDARD_MODEL",
    "TOP_MASS",
    "WILSON_COEFFICIENTS",
    "Couplings",
    "Expansion",
    "FormFactors",
    "GeneratedSample",
    "HardProcess",
    "PartonDensity",
    "PartonEvents",
    "PartonSampler",
    "PtCuts",
    "WeightPoint",
    "alpha_s",
    "cross_section",
    "form_factors",
    "generate",
    "load_parton_density",
    "reference_pt_cuts",
    "squared_amplitude",
    "weight_points",
]
