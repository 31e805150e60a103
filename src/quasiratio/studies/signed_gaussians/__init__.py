"""How well does each method learn a ratio that is known exactly, also where it is negative?

The two signed Gaussian cases of arXiv:2410.10216, section by section as there: tables of the radial chi2 and
D_S2 beside the published ones, and the figures of the toys. Tasks are (case, seed, family of methods); what
methods share is fitted once (see `ratio_methods`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from quasiratio.studies.engine.study import Presentation, Row, Settings, Study, Task
from quasiratio.studies.output.published_tables import SIGNED_GAUSSIAN_SIZES
from quasiratio.studies.ratio_methods import METHOD_LABELS, PUBLISHED_METHODS, families

if TYPE_CHECKING:
    from quasiratio.studies.signed_gaussians.toy_events import ToyEvents

__all__ = ["STUDY"]

CASES = ("nonnegative", "signed")

_PUBLISHED_TRAINING = {
    "activation": "relu",
    "batch_size": 256,
    "learning_rate": 1e-4,
    "schedule": "constant",
    "weight_decay": 0.0,
    "periodic": [],
    "reference_density": "any",
    "target_density": "any",
    "patience": 20,
    "epoch_size": 100_000,
    "on_divergence": "ignore",
    "max_steps": 300 * (100_000 // 256),
}
"""At most 300 epochs, twice the longest training of the paper: without a bound, cross-entropy on the Signed case goes on
for ever, its validation loss falling."""
_PUBLISHED_TUNING = {"learning_rate": 1e-4}
_FIRST_SEED = 0
_METHODS = [name for name in METHOD_LABELS if name != "exact"]


def _tasks(settings: Settings) -> Sequence[Task]:
    published = bool(settings.get("published_settings"))
    parameters = _parameters(settings)
    tasks = []
    groups = families([*settings["methods"], "exact"], share=not published)
    groups.sort(key=lambda names: "auto" not in names)  # the longest first
    for seed in range(int(settings["seeds"])):
        for case in CASES:
            for names in groups:
                prefix = f"{case}/seed-{seed}"
                rows = [*names, *(["samples"] if "exact" in names else [])]
                if seed == _FIRST_SEED and "rosmm" in names:
                    rows.append("sub-ratios")
                arguments = {
                    "case": case,
                    "seed": seed,
                    "methods": list(names),
                    "sizes": list(settings["sizes"]),
                    "parameters": parameters,
                }
                keys = [f"{prefix}/{row}" for row in rows]
                tasks.append(Task(f"{prefix}/{'+'.join(names)}", arguments, keys))
    return tasks


def _parameters(settings: Settings) -> dict[str, dict[str, Any]]:
    """Return hyperparameters by kind of network; what the preset sets comes last."""
    own = dict(settings.get("training", {}))
    if not settings.get("published_settings"):
        return {"direct": own, "rosmm": own}
    training = _PUBLISHED_TRAINING | own
    return {
        "direct": training | {"hidden_layers": [64, 64]},
        "rosmm": training | {"hidden_layers": [32, 32], "balanced_draw": True},
        "tuning": _PUBLISHED_TUNING,
    }


def _compute(arguments: dict[str, Any]) -> Iterable[Row]:
    from quasiratio.studies.signed_gaussians.toy_events import closure_of, stored_methods, toy_events  # noqa: PLC0415

    events = toy_events(arguments["case"], arguments["seed"], arguments["sizes"])
    known = set(arguments.get("known", ()))
    for name, values in _results(arguments, events):
        key = f"{arguments['case']}/seed-{arguments['seed']}/{name}"
        if key not in known:
            yield Row(key, {"case": arguments["case"], "seed": arguments["seed"], "method": name} | values)
    if "exact" in arguments["methods"]:
        stored = stored_methods(closure_of(events.reference, {}, events.target))
        key = f"{arguments['case']}/seed-{arguments['seed']}/samples"
        values = {
            "case": arguments["case"],
            "seed": arguments["seed"],
            "method": "samples",
            "closure": stored,
        }
        yield Row(key, values)


def _results(arguments: dict[str, Any], events: ToyEvents) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the values of each method, and those of the sub-ratios."""
    from quasiratio.studies.ratio_methods import fit_family  # noqa: PLC0415
    from quasiratio.studies.signed_gaussians.toy_events import sub_density_closures  # noqa: PLC0415

    methods = [name for name in arguments["methods"] if name != "exact"]
    if "exact" in arguments["methods"]:
        yield "exact", events.judge(events.exact) | {"seconds": 0.0}
    if not methods:
        return
    fits = fit_family(
        methods,
        events.training,
        events.validation,
        seed=arguments["seed"],
        parameters=arguments["parameters"],
    )
    for name, estimator, seconds in fits:
        ratio = estimator.predict_ratio(events.reference.features)
        how = {"seconds": seconds, "diverged": _diverged(estimator), "epochs": _epochs(estimator)}
        yield name, events.judge(ratio) | how
        if name == "rosmm" and arguments["seed"] == _FIRST_SEED:
            yield "sub-ratios", {"closure": sub_density_closures(estimator, events)}


def _diverged(estimator: Any) -> bool:  # noqa: ANN401 - any ratio estimator
    return bool(getattr(estimator, "diverged_", False))


def _epochs(estimator: Any) -> list[list[int]]:  # noqa: ANN401 - any ratio estimator
    """Return, for the fit and for its tuning, how many epochs it had and which one each network kept."""
    histories = [getattr(estimator, name, None) for name in ("history_", "tuning_history_")]
    return [[len(one), *one.best_epoch.tolist()] for one in histories if one is not None]


def _present(settings: Settings, rows: Sequence[Row]) -> Presentation:
    from quasiratio.studies.signed_gaussians.presentation import present  # noqa: PLC0415 - loads Matplotlib

    return present(settings, rows)


STUDY = Study(
    name="signed-gaussians",
    question="How close does each method come to a known ratio, and what if that ratio is negative?",
    presets={
        "smoke": {
            "seeds": 2,
            "sizes": [2000, 1000, 10_000],
            "methods": _METHODS,
            "training": {"max_steps": 60, "batch_size": 1000},
            "published_settings": False,
        },
        "quick": {
            "seeds": 3,
            "sizes": [200_000, 60_000, 400_000],
            "methods": _METHODS,
            "training": {"max_steps": 600},
            "published_settings": False,
        },
        "full": {
            "seeds": 5,
            "sizes": list(SIGNED_GAUSSIAN_SIZES),
            "methods": _METHODS,
            "training": {},
            "published_settings": False,
        },
    },
    tasks=_tasks,
    compute=_compute,
    present=_present,
    published_methods=PUBLISHED_METHODS,
    methods=tuple(METHOD_LABELS),
)
