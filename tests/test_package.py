"""The package as a user meets it: lazy names, version, light import."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import quasiratio

ROOT = Path(__file__).parents[1]
HEAVY = {
    "awkward", "boost_histogram", "fastjet", "hist", "matplotlib", "mplhep", "onnx", "pandas", "pyarrow",
    "pydantic", "pythia8mc", "rich", "scipy", "sklearn", "torch", "typer", "uproot",
}  # fmt: skip


def _modules_after(code: str) -> set[str]:
    """Top-level modules that a fresh interpreter has loaded after running `code`."""
    script = f"{code}\nimport sys\nprint(*sorted({{name.split('.')[0] for name in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_import_loads_nothing_heavy() -> None:
    loaded = _modules_after("import quasiratio; dir(quasiratio)")
    assert "quasiratio" in loaded
    assert not loaded & HEAVY


def test_a_sample_needs_numpy_only() -> None:
    loaded = _modules_after("import quasiratio; quasiratio.WeightedSample([[1.0]])")
    assert "numpy" in loaded
    assert not loaded & HEAVY


def test_metrics_and_distributions_need_no_torch() -> None:
    loaded = _modules_after("import quasiratio; quasiratio.metrics.closure; quasiratio.distributions")
    assert not loaded & {"torch", "sklearn", "matplotlib"}


@pytest.mark.parametrize("name", quasiratio.__all__)
def test_every_public_name_resolves(name: str) -> None:
    assert getattr(quasiratio, name) is not None
    assert name in dir(quasiratio)


def test_unknown_names_raise_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nope'"):
        quasiratio.nope  # noqa: B018


@pytest.mark.parametrize(
    "package", ["distributions", "estimators", "losses", "metrics", "networks", "ratios"]
)
def test_names_of_subpackages_resolve_and_are_sorted(package: str) -> None:
    module = __import__(f"quasiratio.{package}", fromlist=["__all__"])
    for name in module.__all__:
        assert hasattr(module, name)
    assert len(set(module.__all__)) == len(module.__all__)


def test_version_is_the_same_everywhere() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = re.search(
        r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert quasiratio.__version__ == declared
    assert citation is not None
    assert citation[1] == declared


def test_package_is_marked_as_typed() -> None:
    assert (Path(quasiratio.__file__).parent / "py.typed").is_file()


def test_every_dependency_has_a_tested_pin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = list(project["project"]["dependencies"])
    for extra in project["project"]["optional-dependencies"].values():
        wanted += [requirement for requirement in extra if not requirement.startswith("quasiratio[")]
    for group in project["dependency-groups"].values():
        wanted += [requirement for requirement in group if isinstance(requirement, str)]
    pins = [line for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").split("\n") if line]
    pinned = {_normalized(line.split("==")[0]) for line in pins}
    missing = {
        name for name in (_normalized(re.split(r"[\[<>=~ ;]", r)[0]) for r in wanted) if name not in pinned
    }
    assert not missing
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][\w.]*", line) for line in pins)


def test_the_lowest_versions_are_those_of_the_project() -> None:
    """What `.github/workflows/lowest.yml` installs: each lower bound of what runs or tests the package, but torch."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [*project["project"]["dependencies"], *project["dependency-groups"]["test"]]
    for extra in project["project"]["optional-dependencies"].values():
        wanted += [requirement for requirement in extra if not requirement.startswith("quasiratio[")]
    bounds: dict[str, tuple[int, ...]] = {}
    for requirement in wanted:
        name, bound = re.split(r">=|==", requirement)
        assert bounds.setdefault(_normalized(name), _padded(bound)) == _padded(bound), requirement
    lines = (ROOT / "constraints-lowest.txt").read_text(encoding="utf-8").splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    lowest = {_normalized(name): _padded(version) for name, version in pins.items()}
    assert lowest.pop("torch") >= bounds.pop("torch")
    assert {name: lowest.get(name) for name in bounds} == bounds  # the rest is what these need


def _padded(version: str) -> tuple[int, ...]:
    """Return the four numbers of a version: 1.26 and 1.26.0 are the same."""
    numbers = [int(part) for part in version.split(".")]
    return tuple(numbers + [0] * (4 - len(numbers)))


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
