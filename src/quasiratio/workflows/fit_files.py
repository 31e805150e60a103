"""Two samples from files, a fit, and its model in a directory: read, check, train under a lock, save."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from quasiratio.errors import FitInterrupted, LostRankError
from quasiratio.estimators import PersistentEstimator, Reweighter, VariationReweighter
from quasiratio.estimators.fitting import usable_device
from quasiratio.estimators.loading import estimator_by_name
from quasiratio.estimators.predictor import RatioPredictor
from quasiratio.estimators.stored_fit import require_streaming
from quasiratio.io import EventStore, Feature, StoredSample, Table
from quasiratio.progress import progress_lines
from quasiratio.registry import DEFAULT_METHOD
from quasiratio.sample import WeightedSample
from quasiratio.training import Ranks, resumable
from quasiratio.wording import feature_line, percent
from quasiratio.workflows.drawing_options import label_texts, require_labelled
from quasiratio.workflows.fit_directory import FitDirectory
from quasiratio.workflows.fitted_model import NOTES_KEY, FitNotes, SampleNotes
from quasiratio.workflows.sample_files import Files, SampleFiles, Variations, chosen_features, varied_files
from quasiratio.workflows.shared_samples import ReadSamples, SharedSamples, read_shares
from quasiratio.workflows.stored_samples import require_apart, store_for_fit

__all__ = ["FittedFiles", "feature_notes", "fit_files"]

_ROLES = ("reference", "target")


@dataclass(frozen=True)
class FittedFiles:
    """A fit that is complete and saved.

    Attributes:
        estimator: The fitted estimator.
        path: Directory of the model.
        notes: What is noted in the model.
        seconds: Time of the training.
    """

    estimator: RatioPredictor
    path: Path
    notes: FitNotes
    seconds: float

    @property
    def parts(self) -> list[Any]:
        """The ratio estimators: one, or one per fold."""
        return [*self.estimator.ratio_parts]

    @property
    def has_folds(self) -> bool:
        """Whether there is a model per fold."""
        return self.estimator.predicts_unseen

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        first = self.parts[0]
        history = getattr(first, "history_", None)
        diverged = [getattr(part, "diverged_", None) for part in self.parts]
        return {
            "model": str(self.path),
            "seconds": self.seconds,
            "n_steps": None if history is None else history.n_steps,
            "diverged": None if None in diverged else any(diverged),
            "features": list(self.estimator.fingerprint_.ranges),
            "periodic": getattr(first, "periodic_features_", None),
            "dropped": getattr(first, "dropped_features_", None),
            "fill": first.fill_,
            "sentinels": getattr(first, "sentinels_", None),
            "reference_density": asdict(first.reference_density_),
            "target_density": asdict(first.target_density_),
            "fit_check": asdict(self.estimator.fit_check_),
            "variations": getattr(self.estimator, "names_", None),
            **self.notes.model_dump(),
        }


def fit_files(
    reference: Files,
    target: Files,
    output: str | os.PathLike[str],
    *,
    features: Sequence[str] | None = None,
    label: Sequence[str] | None = None,
    weight: str | None = None,
    reference_weight: str | None = None,
    target_weight: str | None = None,
    weights: Sequence[str] | None = None,
    selection: str | None = None,
    tree: str | None = None,
    allow_large: bool = False,
    cache: str | os.PathLike[str] | None = None,
    method: str = DEFAULT_METHOD,
    n_folds: int = 1,
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] | None = None,
    quiet: bool = True,
    **hyperparameters: Any,  # noqa: ANN401 - of the estimator
) -> FittedFiles:
    """Fit the ratio of two samples from files, and save the model, as `quasiratio fit` does.

    The model appears when it is complete. An interrupted fit leaves its state in `<output>.partial`. Where a process group was
    initialised (`torchrun`), every process reads a part of the events, and the first one says, keeps and writes; with a
    cache it also makes the store, of which every process then streams a part.

    Args:
        reference: Files of the reference, the sample that will be reweighted.
        target: Files of the target, what it should look like.
        output: Directory of the model.
        features: Columns, elements and formulas such as `ptg=pt/1000` to learn from; every numeric column that both have,
            but weights and identifiers, when left out.
        label: What to call features in figures and tables, such as `mll=m_ll [GeV]`.
        weight: Expression of the signed weight; one when left out, if no column is named like a weight.
        reference_weight: Weight of the reference, where it differs.
        target_weight: Weight of the target, where it differs.
        weights: Several weights instead, the nominal one first: columns, patterns such as `w_pdf_*`, formulas such as
            `up=w*sf`. One fit then has a ratio for each (`VariationReweighter`). A sample with a weight of its own
            (`reference_weight` or `target_weight`) has that for all of them.
        selection: Events to use; all when left out.
        tree: Tree of ROOT files, where the path names none.
        allow_large: Read small files that unpack to gigabytes.
        cache: Directory of a store of events on disk (`io.create_store`), for samples beyond memory; one that was made of
            the same files before is used again. Left out, there is a store, removed at the end, where the samples would
            need more than half of the memory that is available.
        method: Name of the estimator.
        n_folds: With two or more: as many models, so that each event gets its ratio from one that has not seen it.
        resume: Continue an interrupted fit, where there is one.
        overwrite: Replace a model that is there.
        say: Called with lines for people: features and samples in use.
        quiet: Show no progress of the training.
        hyperparameters: Of the estimator, such as `n_members=8`.

    Example:
        >>> import tempfile
        >>> from quasiratio.workflows import fit_files
        >>> rng = np.random.default_rng(0)
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     for name, mean in (("a", 0.0), ("b", 0.3)):
        ...         np.savez(f"{directory}/{name}.npz", pt=rng.normal(mean, size=2000))
        ...     pair = f"{directory}/a.npz", f"{directory}/b.npz"
        ...     fitted = fit_files(*pair, f"{directory}/model", max_steps=50, random_state=0)
        >>> fitted.notes.reference.n_events, list(fitted.estimator.fingerprint_.ranges)
        (2000, ['pt'])
    """
    ranks = Ranks.present()
    say = say if say is not None and ranks.is_first else (lambda _: None)
    quiet = quiet or not ranks.is_first
    directory = FitDirectory(Path(output))
    with ranks.agreed():
        labels = label_texts(label)
        if ranks.is_first:
            directory.require_writable(overwrite=overwrite)
            if cache is not None:
                require_apart(cache, directory.path, directory.partial)
        ratio = estimator_by_name(method, **hyperparameters)
        ratio.set_params(verbose=not quiet)
        usable_device(ratio.device)  # names are looked at before files are read
        estimator: RatioPredictor = ratio
        if weights:
            estimator = VariationReweighter(ratio, total="original", n_folds=n_folds)
        elif n_folds > 1:
            estimator = Reweighter(ratio, total="original", n_folds=n_folds)
        if ranks.size > 1:
            require_streaming(estimator, "several processes")
        files = [
            SampleFiles(paths, own_weight or weight, selection, tree, allow_large)
            for paths, own_weight in ((reference, reference_weight), (target, target_weight))
        ]
        tables = [sample.open() for sample in files]
        if weights:
            files = varied_files(files, tables, weights, weight)
        chosen = chosen_features(features, files, tables, say)
        require_labelled(labels, [one.name for one in chosen])
        ratio.require_features([one.name for one in chosen])
    say(feature_line(chosen))
    for text in dict.fromkeys(sample.variation_line for sample in files if sample.weights):
        say(text)
    with ExitStack() as stack:
        samples: Sequence[WeightedSample | StoredSample]
        events: _InMemory | _OnDisk | SharedSamples
        store = stack.enter_context(
            store_for_fit(
                cache,
                estimator,
                files,
                tables,
                chosen,
                beside=directory.path.parent,
                ranks=ranks,
                say=say,
                quiet=quiet,
            )
        )
        if store is not None:
            samples, events = [store.reference, store.target], _OnDisk(store, ranks, say)
        elif ranks.size > 1:
            events = read_shares(files, tables, chosen, ranks)
            samples = events.totals
        else:
            pairs = list(zip(files, tables, strict=True))
            samples = read = [sample.read(table, chosen) for sample, table in pairs]
            events = _InMemory(read, [sample.read_variations(table) for sample, table in pairs])
        with ranks.agreed():
            for role, facts, table in zip(_ROLES, samples, tables, strict=True):
                facts.require_positive_sum(role)
                say(
                    f"{role.capitalize()}: {len(facts)} events of {table.label}, sum of weights "
                    f"{facts.sum_of_weights:.6g}, {percent(facts.negative_fraction)} negative"
                )
            notes = _notes(method, files, tables, samples).model_copy(
                update={**feature_notes(chosen, tables[0]), "labels": labels}
            )
            start = time.perf_counter()
            if ranks.is_first:
                stack.enter_context(directory.working(resume=resume))
                if resume and not directory.has_state:
                    say("There is no interrupted fit to continue; fitting from the start.")
        with _told_what_is_kept(directory, ranks):
            _train(estimator, events, directory.partial, quiet=quiet)
        seconds = time.perf_counter() - start
        notes_of_model = {NOTES_KEY: notes.model_dump()}
        ranks.once(lambda: estimator.save(directory.path, notes=notes_of_model, overwrite=overwrite))
    return FittedFiles(estimator, directory.path, notes, seconds)


@dataclass(frozen=True)
class _InMemory(ReadSamples):
    """Two samples to fit to."""

    variations: list[Variations | None]

    def contents(self) -> Iterator[Any]:
        labels = np.repeat([0, 1], [len(sample) for sample in self.samples])
        varied = [array for one in self.variations if one is not None for array in one.values()]
        features, weights = (
            [getattr(sample, name) for sample in self.samples] for name in ("features", "weights")
        )
        for array in (*features, *weights, *varied, labels):
            yield np.ascontiguousarray(array).data

    def fit(self, estimator: Any) -> None:  # noqa: ANN401
        estimator.fit_samples(*self.samples, *self.variations)


@dataclass(frozen=True)
class _OnDisk:
    """A store to fit to."""

    store: EventStore
    ranks: Ranks
    say: Callable[[str], None]

    @property
    def names(self) -> Sequence[str]:
        return self.store.names

    @property
    def fill(self) -> Mapping[str, float]:
        return self.store.fill

    def contents(self) -> Iterator[Any]:
        yield self.store.sha256.encode()
        if self.ranks.size > 1:  # whose stretches of the store are part of the state
            yield str(self.ranks.size).encode()

    def fit(self, estimator: Any) -> None:  # noqa: ANN401
        estimator.fit_store(self.store, say=self.say)


def _train(
    estimator: RatioPredictor, events: _InMemory | _OnDisk | SharedSamples, state: Path, *, quiet: bool
) -> None:
    with ExitStack() as stack:
        if not quiet:
            stack.enter_context(progress_lines())
        stack.enter_context(resumable(state, _key(estimator, events)))
        events.fit(estimator)


def _key(estimator: RatioPredictor, events: _InMemory | _OnDisk | SharedSamples) -> str:
    """Return a hash of everything that decides the outcome of the training."""
    parameters = {
        # What is in an estimator has names of its own, such as `ratio__max_steps`.
        name: type(value).__name__ if isinstance(value, PersistentEstimator) else repr(value)
        for name, value in sorted(estimator.get_params().items())
        if name.rpartition("__")[2] != "verbose"
    }
    described = {"class": type(estimator).__name__, "parameters": parameters, "features": events.names}
    if events.fill:
        described["fill"] = dict(events.fill)
    digest = hashlib.blake2b(json.dumps(described).encode(), digest_size=16)
    for content in events.contents():
        digest.update(content)
    return digest.hexdigest()


def _notes(
    method: str,
    files: list[SampleFiles],
    tables: list[Table],
    samples: Sequence[WeightedSample | StoredSample],
) -> FitNotes:
    """Return what `apply_files` and `evaluate_files` want to know of the fit."""
    roles = {
        role: SampleNotes(
            files=list(table.sources),
            weight=sample_files.weight,
            weights=dict(sample_files.weights),
            n_events=len(sample),
            sum_of_weights=sample.sum_of_weights,
            negative_fraction=sample.negative_fraction,
            effective_size=sample.effective_size,
            mixture_coefficient=sample.mixture_coefficient,
        )
        for role, sample_files, table, sample in zip(_ROLES, files, tables, samples, strict=True)
    }
    return FitNotes.model_validate({"method": method, "selection": files[0].selection, **roles})


def feature_notes(features: list[Feature], table: Table) -> dict[str, dict[str, str]]:
    """Return kinds and formulas of the features, as `FitNotes` holds them."""
    return {
        "kinds": {one.name: _kind(table, one.text) for one in features if one.expression is None},
        "formulas": {one.name: one.text for one in features if one.expression is not None},
    }


def _kind(table: Table, name: str) -> str:
    """Return the kind of a feature, that of its elements for one such as `jet_pt[0]`."""
    column = table.columns.get(name)
    return "float" if column is None or column.kind == "jagged" else column.kind


@contextmanager
def _told_what_is_kept(directory: FitDirectory, ranks: Ranks) -> Iterator[None]:
    """Let an interruption, or the end of another process, say what is kept of the fit."""
    advice = "Repeat the command with `resume=True` to continue."
    where = f"the state after the last epoch is in {str(directory.partial)!r}."
    try:
        yield
    except LostRankError as error:
        if not directory.has_state:
            raise
        msg = f"{error.message} What is known is kept: {where}"
        raise LostRankError(msg, advice=advice) from error
    except (KeyboardInterrupt, SystemExit) as error:
        # A batch system ends one process in silence, and torchrun, for the sake of one, all others.
        if isinstance(error, SystemExit) and ranks.size == 1:
            raise
        if not directory.has_state:
            where, advice = "nothing was kept, as the first epoch was not complete.", ""
        msg = f"Interrupted; {where}"
        raise FitInterrupted(msg, advice=advice) from None
