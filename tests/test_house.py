"""The house stays as it is: the library speaks Python, and no module uses what another keeps to itself."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

import quasiratio
from quasiratio.registry import ESTIMATORS

SOURCE = Path(quasiratio.__file__).parent
ROOT = Path(__file__).parents[1]
LARGEST_FILE = 400
MODULES = sorted(path for path in SOURCE.rglob("*.py"))
LIBRARY = [path for path in MODULES if "cli" not in path.relative_to(SOURCE).parts]
COMMANDS = "demo|inspect|fit|apply|evaluate|positive|export|study|generate|models|eft"
OPTION = re.compile(
    rf"(?<![\w-])--[a-z]|\bwith -o\b|(?<![\w-])-o\b|quasiratio (?:{COMMANDS})\b|'(?:eft )?fit'"
)
ALLOWED = {"--porcelain", "--no-optional-locks", "quasiratio demo"}
"""Options of another program, and the command that a report says it was made by."""
OF_NAMED_TUPLES = {"_asdict", "_fields", "_make", "_replace"}
"""Public in spite of their name."""


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def sentences(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every text of the code that is no docstring, with its line; what a comment says is free."""
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.lineno, node.value


def options_in(code: str) -> list[str]:
    return [
        f"line {line}: {text}"
        for line, text in sentences(ast.parse(code))
        if OPTION.search(text) and text not in ALLOWED
    ]


def test_options_in_messages_are_found() -> None:
    assert options_in('msg = f"Got {x}; add --force."') == ["line 1: ; add --force."]
    assert options_in('msg = "Choose another with -o."')
    assert options_in("msg = \"Expected what 'quasiratio eft fit' writes.\"")
    assert not options_in('def f():\n    """As `--force` does."""\n    return "a--b, linestyle --, well-o"')


@pytest.mark.parametrize("path", LIBRARY, ids=name_of)
def test_the_library_speaks_python(path: Path) -> None:
    """Advice names arguments, as in `overwrite=True`; the command line tells it in options."""
    assert options_in(path.read_text(encoding="utf-8")) == []


def borrowed(code: str) -> list[str]:
    """Return private names of other modules that are imported, or used as attributes of what was imported."""
    tree = ast.parse(code)
    found, foreign = [], set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("quasiratio"):
            found += [f"line {node.lineno}: {one.name}" for one in node.names if is_private(one.name)]
        elif isinstance(node, ast.Import):  # of other packages, which have rules of their own
            foreign |= {(one.asname or one.name).partition(".")[0] for one in node.names} - {"quasiratio"}
    own = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.name]
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            else [node.attr]
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
            else [node.target.id]
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            else [node.id]
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            else []
        )
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not is_private(node.attr):
            continue
        is_allowed = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", *foreign}
        if not is_allowed and node.attr not in own:
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in OF_NAMED_TUPLES


def test_private_names_of_others_are_found() -> None:
    assert borrowed("from quasiratio.io import _plain") == ["line 1: _plain"]
    assert borrowed("from quasiratio import io\nio.table._plain()") == ["line 2: io.table._plain"]
    assert borrowed("def f(model):\n    return model._predict()") == ["line 2: model._predict"]
    assert not borrowed("class A:\n    def _a(self, other):\n        return self._b + other._a()")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_private_of_another_module_is_used(path: Path) -> None:
    assert borrowed(path.read_text(encoding="utf-8")) == []


def test_a_file_is_a_concept_and_not_a_collection() -> None:
    lengths = {str(path.relative_to(SOURCE)): len(path.read_text().splitlines()) for path in MODULES}
    assert {name: length for name, length in lengths.items() if length > LARGEST_FILE} == {}


OF_ONE_CLASS = {"workflows/eft_evaluation.py"}
"""Written for one estimator: weights at parameter points are fitted by `PolynomialRatio` and nothing else."""


def asks_for_a_class(code: str) -> list[str]:
    """Return the places that ask whether a model is of one concrete class of estimators."""
    concrete = set(ESTIMATORS.built_in_classes())
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "isinstance"
        and concrete & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
    ]


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_model_is_asked_and_not_recognised(path: Path) -> None:
    """`RatioPredictor` has what workflows and reports want to know; a new class has it too."""
    assert asks_for_a_class("isinstance(model, RatioEstimator | Reweighter)")
    assert name_of(path) in OF_ONE_CLASS or asks_for_a_class(path.read_text(encoding="utf-8")) == []


SMALL_FILE = 80
ALONE_FOR_A_REASON = {
    "cli/commands/export.py": "one file per command",
    "cli/main.py": "the command, which `__main__` starts as well",
}


def importers() -> dict[str, set[str]]:
    """Return the modules that import each module; packages that pass a name on make it public, and count as `...`."""
    names = {
        f"quasiratio.{'.'.join(path.relative_to(SOURCE).with_suffix('').parts)}".removesuffix(
            ".__init__"
        ): path
        for path in MODULES
    }
    found: dict[str, set[str]] = {name_of(path): set() for path in MODULES}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    home = names.get(f"{node.module}.{one.name}") or names.get(node.module)
                    if home is not None:
                        found[name_of(home)].add("..." if path.name == "__init__.py" else name_of(path))
    return found


def test_a_helper_stands_beside_its_only_caller() -> None:
    lonely = {
        name: users
        for name, users in importers().items()
        if len(users) == 1
        and users != {"..."}
        and not name.endswith("__init__.py")
        and len((SOURCE / name).read_text(encoding="utf-8").splitlines()) < SMALL_FILE
    }
    assert lonely.keys() <= ALONE_FOR_A_REASON.keys(), lonely


ENDINGS = {
    "",
    "s",
    "e",
    "d",
    "r",
    "ed",
    "er",
    "ers",
    "or",
    "ing",
    "ings",
    "ion",
    "ions",
    "ation",
    "ations",
    "al",
}
BOTH_ARE_TERMS = {("sign", "signed")}
"""Of the theory: a sign-resolved classifier and a signed mixture are two methods."""


def differ_by_an_ending(one: str, other: str) -> bool:
    """Whether the first words of two names are forms of one word, as `applying` and `applied_model` begin."""
    first, second = sorted((one.partition("_")[0], other.partition("_")[0]))
    if first == second or (first, second) in BOTH_ARE_TERMS:
        return False
    stems = [n for n in range(4, len(first) + 1) if first[:n] == second[:n]]
    return any({first[n:], second[n:]} <= ENDINGS for n in stems)


def test_names_differ_by_more_than_an_ending() -> None:
    assert differ_by_an_ending("stack_training", "stacked_pass")
    assert differ_by_an_ending("evaluation", "evaluated_model")
    assert not differ_by_an_ending("closure_figure", "closure_panels")
    for folder in {path.parent for path in MODULES}:
        rooms = sorted(
            {
                path.stem
                for path in folder.iterdir()
                if path.suffix == ".py" or (path / "__init__.py").exists()
            }
        )
        assert [pair for pair in combinations(rooms, 2) if differ_by_an_ending(*pair)] == [], folder


def test_the_fast_tests_of_the_makefile_exist() -> None:
    root = Path(__file__).parents[1]
    (line,) = re.findall(
        r"^FAST := \$\(addprefix tests/,(.*)\)$", (root / "Makefile").read_text(), re.MULTILINE
    )
    assert [name for name in line.split() if not (root / "tests" / name).exists()] == []
    assert len(line.split()) > 5


MAP = ROOT / "ARCHITECTURE.md"
LONGEST_MAP = 20_000
"""Characters; its first three sections are read in five minutes, at 200 words in each."""


@pytest.mark.parametrize("page", [MAP, ROOT / "docs" / "decisions.md"], ids=lambda path: path.name)
def test_files_and_folders_that_the_map_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:py|md|toml|yml))`", text))
    named |= set(re.findall(r"`((?:\w+/)+)`", text))
    places = (SOURCE, ROOT, SOURCE.parent, *(path for path in SOURCE.iterdir() if path.is_dir()))
    written_by_us = {"model.json"}
    missing = {name for name in named if not any((place / name).exists() for place in places)}
    assert len(named) > 10
    assert missing - written_by_us == set()


OF_OTHERS_OR_PLANNED = {"inference", "setprofile"}


def test_names_that_the_map_uses_exist() -> None:
    """Words in backticks that look like ours, `CamelCase` or `with_underscores`, stand somewhere in the code."""
    code = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    words = set(re.findall(r"\w+", code))
    named = re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", MAP.read_text(encoding="utf-8"))
    ours = {part for name in named if not name.endswith((".py", ".md")) for part in name.split(".")}
    assert len(ours) > 60
    assert {name for name in ours if name not in words} <= OF_OTHERS_OR_PLANNED


def test_the_map_is_short() -> None:
    text = MAP.read_text(encoding="utf-8")
    top = text[: text.index("## The path of a mined event")]
    assert len(top.split()) < 1000
    assert len(text) < LONGEST_MAP
    stations = re.findall(r"^(\d+)\. ", top, re.MULTILINE)
    assert [int(number) for number in stations] == list(range(1, 13))


MOVES = {"os.replace", "os.rename", "os.renames", "shutil.move"}


def moved_files(code: str) -> list[str]:
    """Return the places that give a file a name by a rename of their own."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Call)
        and (
            ast.unparse(node.func) in MOVES
            or (
                isinstance(node.func, ast.Attribute)
                and node.func.attr in {"rename", "replace"}
                and (len(node.args), len(node.keywords)) == (1, 0)  # that of a text has two
            )
        )
    ]


def test_files_appear_whole_by_one_mechanism() -> None:
    assert moved_files("os.replace(a, b)")
    assert moved_files("(directory / 'new').replace(path)")
    assert not moved_files("text.replace('a', 'b')")
    found = {name_of(path): moved_files(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name for name, places in found.items() if places} == {"atomic_files.py"}


ONCE = {
    "effective size": (r"sum\(\)\)? ?\*\* ?2 ?/|sum_of_weights ?\*\* ?2 ?/|np\.square\(\w+\.sum\(\)\)\)? ?/", "sample.py"),
    "provenance": (r"importlib\.metadata import .*\bversion\b|python_version\(\)|metadata\.version\(", "provenance.py"),
    "metadata of a graph": (r"\"training_sha256\"", "estimators/persistent.py"),
}  # fmt: skip
"""What is done in one place: how it looks, and where."""


@pytest.mark.parametrize(("pattern", "home"), ONCE.values(), ids=ONCE)
def test_one_mechanism_stands_once(pattern: str, home: str) -> None:
    found = {name_of(path) for path in MODULES if re.search(pattern, path.read_text(encoding="utf-8"))}
    assert found - {"__init__.py"} <= {home}  # `quasiratio.__version__` is looked up lazily


def test_the_patterns_of_what_stands_once_find_it() -> None:
    size, provenance, _ = (pattern for pattern, _ in ONCE.values())
    assert re.search(size, "return w.sum() ** 2 / np.square(w).sum()")
    assert re.search(size, "after.sum_of_weights**2 / squares")
    assert re.search(provenance, "from importlib.metadata import PackageNotFoundError, version")


def side_channels(code: str) -> list[str]:
    """Return the places that leave something private on an object for a later call, or look for it."""
    found = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            is_own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if is_private(node.attr) and (not is_own or isinstance(node.ctx, ast.Del)):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
        elif (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) in {"getattr", "hasattr", "setattr", "delattr"}
            and isinstance(node.args[1], ast.Constant)
            and is_private(str(node.args[1].value))
        ):
            found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


MADE_BY_ITS_CLASS = {"tasks/store.py"}
"""A class method that makes an object fills it."""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_is_left_on_an_object_for_a_later_call(path: Path) -> None:
    assert name_of(path) in MADE_BY_ITS_CLASS or side_channels(path.read_text(encoding="utf-8")) == []


def test_side_channels_are_found() -> None:
    assert side_channels("result._start = 1")
    assert side_channels("del result._start")
    assert side_channels("start = getattr(self, '_start', None)")
    assert not side_channels("self._start = 1; other.scale_ = 2")


def counts_from_warnings(code: str) -> list[str]:
    """Return the places that read a number out of a warning, by an attribute or from its text."""
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.Attribute)
        and (node.attr.startswith("n_") or node.attr in {"count", "fraction", "args"})
        and ast.unparse(node.value).endswith(("warning", "warning.message", "caught"))
    ]


def test_no_warning_carries_a_count() -> None:
    """What is counted is returned, as `RatioPrediction.n_nonpositive` is."""
    assert counts_from_warnings("total += warning.message.n_nonpositive")
    found = {name_of(path): counts_from_warnings(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name for name, places in found.items() if places} == set()
    from quasiratio import errors

    fields = {
        name: set(vars(kind("text"))) - {"message", "advice"}
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.QuasiratioWarning)
    }
    assert {name: extra for name, extra in fields.items() if extra} == {}
