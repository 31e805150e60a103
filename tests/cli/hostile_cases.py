"""A table of hostile command lines, generated: every option of every command, every place of a file, odd data and texts.

The options are read from the commands themselves, so that a new one is tried without a line here.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import typer

from quasiratio.cli.main import app

__all__ = ["Case", "hostile_cases", "make_files"]

BASE: dict[str, list[str]] = {
    "inspect": ["inspect", "reference.npz", "target.npz", "--weight", "w"],
    "fit": ["fit", "reference.npz", "target.npz", "--weight", "w", "--max-steps", "2", "-o", "out-model"],
    "apply": ["apply", "model", "reference.npz", "-o", "out.npz"],
    "evaluate": ["evaluate", "model", "reference.npz", "target.npz", "-o", "out-report"],
    "positive": ["positive", "reference.npz", "--weight", "w", "--max-steps", "2", "-o", "out.npz"],
    "export": ["export", "model", "-o", "out.onnx"],
    "models show": ["models", "show", "model"],
    "eft inspect": ["eft", "inspect", "eft.npz", "--pattern", "rwgt*"],
    "eft fit": ["eft", "fit", "eft.npz", "--pattern", "rwgt*", "--max-steps", "2", "-o", "out-model"],
    "generate gg-hh": ["generate", "gg-hh", "--parton-level", "--events", "20", "-o", "out.npz"],
    "study": ["study", "loss-landscapes", "--preset", "smoke", "-o", "out-study"],
    "demo": ["demo", "--n-events", "1000", "--max-steps", "1", "-o", "out-demo"],
}
INPUTS = {
    "inspect": (1, 2), "fit": (1, 2), "apply": (1, 2), "evaluate": (1, 2, 3), "positive": (1,), "export": (1,),
    "models show": (2,), "eft inspect": (2,), "eft fit": (2,),
}  # fmt: skip
"""Where in a command line files or models are read."""

NO_INTEGERS = [
    "",
    "many",
    "1.5",
    "nan",
    "inf",
    "1e3",
    "0x10",
    "-1",
    "-99999999999999999999",
    "9" * 30,
    "9" * 5000,
]
NO_NUMBERS = ["", "many", "nan", "inf", "-inf", "1e999", "-1", "1,5", "1e-400j"]
WORDS = [
    "", " ", "\n", "a\nb", "a\0b", "`", "'", '"', "\N{GREEK SMALL LETTER PHI}", "\N{RIGHT-TO-LEFT OVERRIDE}x",
    "\udcff", "x" * 5000, "../..", "-", "--", "*", "[", "{}", "%s", "$(touch pwned)", "None", "nan", "1e999",
    "=", "a=", "=a", ":", ",", ";", "a:b:c", "\\", "/dev/null", "fifo.npz", "data", "missing.yaml", "\x1b[2J",
]  # fmt: skip
BAD_PATHS = [
    "missing.npz", "data", "data/", "empty.npz", "empty.root", "empty.parquet", "/dev/null", "fifo.npz", "broken.npz",
    "loop.npz", "text.npz", "text.root", "text.parquet", "reference.npz/", "reference.npz/x.npz", "*.nothing", "[", "",
    " ", "\n", "a\0.npz", "\udcff.npz", "~nobody/a.npz", "reference.npz:tree", "reference.npz:", ":", ":tree", "reference",
    ".npz", "..", "/", "https://example.org/a.npz", "x" * 5000, "reference.npz,missing.npz", ",", "reference.npz,,reference.npz",
    "model", "model/model.json", "model/weights.safetensors", "text.yaml", "zip.npz", "fifo.root", "/proc/self/mem",
]  # fmt: skip
BAD_OUTPUTS = [
    "", " ", "\n", "a\0b", ".", "..", "/", "data", "taken/out", "reference.npz", "/dev/null", "/dev/full", "missing/a/b",
    "x" * 300, "\udcff", "/proc/out", "loop.npz", "out.exe", "out.npz/", "fifo.npz", ":", "out.root:", "out.npz:tree", "model",
]  # fmt: skip
_POSSIBLE_NAMES = {"missing/a/b", "\udcff", "out.exe", "out.npz/", ":", "out.root:", "out.npz:tree"}
EXPRESSIONS = [
    "", " ", "w w", "w +", "(w", "w)", "w[", "w[0]", "w[-1]", "w[0", "w.real", "lambda: w", "w if w else w", "[w]",
    "{w}", "w = 1", "w := 1", "w; w", "w, w", "'w'", '"w"', "f(w)", "sqrt()", "sqrt(w, w)", "sqrt", "where(w)",
    "1/0", "w/0", "0/0", "log(0)", "log(-1)", "sqrt(w - 10)", "exp(1e9)", "10**400", "1e400", "nan", "inf", "w*nan", "w*inf", "9" * 400,
    "w" * 300, "(" * 300 + "w" + ")" * 300, "-" * 300 + "w", "w" + "+w" * 600, "`w", "`missing`", "``", "w\nw", "w\\", "w@w", "w<<2", "w!",
    "True", "None", "not w", "w and w", "w > 0", "pt == pt", "~w", "~event", "event % 0", "event // 0", "event ** 99", "fill(w, 0)",
    "fill(w)", "fill(w, w)", "len(w)", "sum(w)", "max(w)", "min()", "deltaphi(w)", "\N{GREEK SMALL LETTER PHI}", "w\N{NO-BREAK SPACE}", "\uff17",
    "1_000", "0x10", "0b1", "1j", "1e", "1.2.3", "..", "...", "*", "*w", "**w", "__import__('os')", "w.__class__", "abs", "abs(abs)",
]  # fmt: skip
SAMPLES = "reference: reference.npz\ntarget: target.npz\nweight: w\nmax_steps: 2\noutput: out-model\n"
CONFIGURATIONS = [
    "", "\n", "-", "[]", "{}", "null", "1", "text", "a: b", "? a", "- reference", SAMPLES + SAMPLES, SAMPLES + "features: 3",
    SAMPLES + "features: {pt: 1}", SAMPLES + "features: [[pt]]", SAMPLES + "features: [null]", SAMPLES + "features: []",
    SAMPLES + f"random_state: {'9' * 400}", SAMPLES + f"random_state: {'9' * 5000}", SAMPLES + "random_state: -1", SAMPLES + "random_state: 1.5", SAMPLES + "random_state: true",
    SAMPLES + "n_members: 1e300", SAMPLES + "n_members: .inf", SAMPLES + "n_members: .nan", SAMPLES + "n_members: 0x7fffffffffffffffff",
    SAMPLES + "n_members: 2020-01-01", SAMPLES + "n_members: '2'", SAMPLES + "learning_rate: .nan", SAMPLES + "learning_rate: -.inf",
    SAMPLES + "learning_rate: 1e400", SAMPLES + "learning_rate: 0", SAMPLES + "weight_decay: -1", SAMPLES + "validation_fraction: 1",
    SAMPLES + "validation_fraction: 1e-300", SAMPLES + "hidden_layers: 64", SAMPLES + "hidden_layers: []", SAMPLES + "hidden_layers: [0]", SAMPLES + "hidden_layers: [1.5]",
    SAMPLES + "hidden_layers: [-3]", SAMPLES + f"hidden_layers: [{'9' * 60}]", SAMPLES + f"hidden_layers: [{', '.join(['1'] * 2000)}]", SAMPLES + "hidden_layers: wide",
    SAMPLES + "method: {name: direct}", SAMPLES + "loss: [bce]", SAMPLES + "device: 3", SAMPLES + "activation: null\nactivation: silu",
    SAMPLES + "1: 2", SAMPLES + "null: 2", SAMPLES + "[a]: 2", SAMPLES + "batch_size: 00012", SAMPLES + "batch_size: 1:30:00", SAMPLES + "batch_size: 0",
    SAMPLES + "schedule: yes", SAMPLES + "patience: -5", SAMPLES + "epoch_size: 0", SAMPLES + "objects: 1", SAMPLES + "objects: {a: [pt]}",
    SAMPLES + "objects: {a: pt}", SAMPLES + "symmetry: 7", SAMPLES + "periodic: {}", SAMPLES + "label: 3", SAMPLES + "labels: {pt: {}}", SAMPLES + "--- \na: b",
    SAMPLES + "\t", "%YAML 9.9\n---\n" + SAMPLES, SAMPLES + "selection: true", SAMPLES + "selection: 3", SAMPLES + "weight: 3", SAMPLES + "tree: [a]",
    "reference: 3\ntarget: 4\noutput: 5\n", "reference: []\ntarget: []\noutput: out-model\n", "reference: {a: b}\ntarget: target.npz\noutput: out-model\n", "[" * 3000, "a: " * 3000, SAMPLES + f"n_members: 0x{'f' * 5000}", SAMPLES + f"learning_rate: 0x{'f' * 5000}", SAMPLES + f"hidden_layers: [0x{'f' * 5000}]", SAMPLES + f"features: 0x{'f' * 5000}", "\ufeff" + SAMPLES + "n_members: 0",
]  # fmt: skip
BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
POINTS = [
    BOMB.replace("i:", "parameters:", 1) + "points: [[1]]\n",
    "", "[]", "{}", "null", "1", "text", "a: b", "- a", "- 1", "- {}", "- {a: 1}", "- {a: 1}\n- {a: 1}", "- {a: x}", "- {a: .nan}", "- {a: .inf}",
    "- {a: 1e400}", f"- {{a: {'9' * 400}}}", f"- {{a: {'9' * 5000}}}", "- {a: true}", "- {a: [1]}", "- {1: 1}", "- {'': 1}", "- {a: 1}\n- {b: 1}", "launch",
    "launch\n set SMEFT 1 x", "launch --rwgt_name=a\n set SMEFT 1 nan", "[" * 3000, "a: &a [*a]", "!!python/object/apply:os.system [touch pwned]", BOMB, f"- {{a: 0x{'f' * 5000}}}", "points: 3", "points:\n- {a: 1}", "\x80",
]  # fmt: skip


@dataclass(frozen=True)
class Case:
    """A command line, and files of this case alone."""

    name: str
    arguments: list[str]
    files: Mapping[str, str] | None = None
    is_refused: bool = False

    @property
    def is_cheap(self) -> bool:
        """Whether nothing is trained or generated, whatever comes out."""
        return self.is_refused or self.name.startswith(
            ("inspect", "apply", "export", "models", "eft inspect", "points")
        )


def _columns(n_events: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "pt": rng.normal(0.3 * seed, 1.0, n_events),
        "eta": rng.normal(0.0, 1.0, n_events).astype(np.float32),
        "event": np.arange(n_events),
        "w": rng.choice([1.0, -0.5], n_events, p=[0.8, 0.2]),
    }


def _odd_data() -> dict[str, dict[str, Any]]:
    n = 60
    good = _columns(n, 0)
    one = np.ones(n)
    changes: dict[str, dict[str, Any]] = {
        "zero weights": {"w": 0 * one}, "negative weights": {"w": -one}, "one weight": {"w": np.eye(1, n)[0]},
        "cancelling weights": {"w": np.tile([1.0, -1.0], n // 2)}, "tiny weights": {"w": one * 5e-324}, "large weights": {"w": one * 1e308},
        "one huge weight": {"w": np.where(np.arange(n) == 3, 1e18, 1.0)}, "NaN weights": {"w": one * np.nan}, "infinite weights": {"w": one * np.inf},
        "text weights": {"w": np.full(n, "1")}, "boolean weights": {"w": one > 0}, "complex weights": {"w": one * 1j}, "integer weights": {"w": np.ones(n, np.int8)},
        "constant features": {"pt": one, "eta": one}, "constant feature": {"pt": one}, "zero features": {"pt": 0 * one, "eta": 0 * one},
        "NaN feature": {"pt": one * np.nan}, "infinite feature": {"pt": -one * np.inf}, "one NaN": {"pt": np.where(np.arange(n) == 5, np.nan, good["pt"])},
        "feature of 1e308": {"pt": good["pt"] * 1e300}, "feature of 1e-320": {"pt": good["pt"] * 1e-320}, "both": {"pt": np.where(np.arange(n) % 2, 1e308, -1e308)},
        "int64 limits": {"pt": np.where(np.arange(n) % 2, np.iinfo(np.int64).max, np.iinfo(np.int64).min)}, "uint64 limits": {"pt": np.full(n, np.iinfo(np.uint64).max)},
        "text feature": {"pt": np.full(n, "x")}, "bytes feature": {"pt": np.full(n, b"\xff")}, "complex feature": {"pt": good["pt"] * 1j}, "boolean feature": {"pt": good["pt"] > 0},
        "dates": {"pt": np.full(n, "2020-01-01", "datetime64[D]")}, "durations": {"pt": np.arange(n).astype("timedelta64[s]")}, "half floats": {"pt": good["pt"].astype(np.float16)},
        "long floats": {"pt": good["pt"].astype(np.longdouble)}, "big endian": {"pt": good["pt"].astype(">f8")}, "records": {"pt": np.zeros(n, [("a", "f8"), ("b", "i4")])},
        "two dimensions": {"pt": np.ones((n, 2))}, "three dimensions": {"pt": np.ones((n, 2, 2))}, "a column of none": {"pt": np.ones((n, 0))}, "a scalar": {"pt": np.float64(1)},
        "another length": {"pt": np.ones(n - 1)}, "an empty column": {"pt": np.ones(0)}, "copies": {"eta": good["pt"]}, "masked": {"pt": np.ma.masked_greater(good["pt"], 0)},
    }  # fmt: skip
    made = {name: {**good, **change} for name, change in changes.items()}
    made["no columns"] = {}
    made["weights only"] = {"w": one}
    made["no feature of the model"] = {"other": one, "w": one}
    for length in (0, 1, 2, 3, 5):
        made[f"{length} events"] = _columns(length, 0)
    for label, odd in {
        "spaces": "p t", "quotes": "p'\"t", "a newline": "p\nt", "a backtick": "p`t", "a slash": "p/t", "a dot": ".", "unicode": "\N{GREEK SMALL LETTER PHI}", "a formula": "pt+eta",
        "a comma": "p,t", "a colon": "p:t", "brackets": "p[0]", "a percent": "%s{0}", "a keyword": "lambda", "a long name": "p" * 3000, "a number": "7", "an operator": "*",
        "a control": "p\x1b[2Jt", "a hash": "p#t", "a space": " ", "dunder": "__class__", "equals": "a=b", "a star": "p*", "html": "<script>",
    }.items():  # fmt: skip
        made[f"named with {label}"] = {odd: good["pt"], **good}
    return made


def make_files(here: Path) -> None:
    """Write everything that cases read, beside a model."""
    for seed, name in enumerate(("reference", "target")):
        np.savez(here / f"{name}.npz", **_columns(200, seed))
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    points = {"rwgt0_a_0p0": 0.0, "rwgt1_a_1p0": 1.0, "rwgt2_a_m1p0": -1.0}
    weights: dict[str, Any] = {name: (1 + a * x) ** 2 + 0.1 for name, a in points.items()}
    np.savez(here / "eft.npz", x=x, **weights)
    (here / "data").mkdir()
    for index, columns in enumerate(_odd_data().values()):
        np.savez(here / "data" / f"{index}.npz", **columns)
    for suffix in ("npz", "root", "parquet"):
        (here / f"empty.{suffix}").touch()
        (here / f"text.{suffix}").write_text("pt, eta\n1, 2\n")
    (here / "text.yaml").write_text("text")
    (here / "taken").write_text("mine")
    (here / "zip.npz").write_bytes(b"PK\x05\x06" + bytes(18))
    for suffix in ("npz", "root"):
        os.mkfifo(here / f"fifo.{suffix}")
    (here / "broken.npz").symlink_to("nowhere.npz")
    (here / "loop.npz").symlink_to("loop.npz")


def _commands() -> Iterator[tuple[str, Any]]:
    root: Any = typer.main.get_command(app)
    for name, command in root.commands.items():
        for inner, one in getattr(command, "commands", {"": command}).items():
            yield f"{name} {inner}".strip(), one


def _without(arguments: list[str], names: list[str]) -> list[str]:
    """Return the command line without an option and its value."""
    kept, skip = [], False
    for word in arguments:
        if not skip and word not in names:
            kept.append(word)
        skip = word in names and not skip
    return kept


def _shown(text: str) -> str:
    return ascii(text if len(text) < 30 else f"{text[:9]}..{len(text)}")[1:-1]


def _of_options() -> Iterator[Case]:
    for command, parsed in _commands():
        hints = get_type_hints(inspect.unwrap(parsed.callback))
        for parameter in parsed.params:
            option = next((name for name in parameter.opts if name.startswith("--")), None)
            if option in (None, "--help", "--output"):  # outputs have a list of their own
                continue
            rest = _without(BASE[command], parameter.opts) if not parameter.is_flag else BASE[command]
            kinds = {hints[parameter.name], *get_args(hints[parameter.name])}
            values = NO_INTEGERS if int in kinds else NO_NUMBERS if float in kinds else WORDS
            if parameter.is_flag:
                yield Case(f"{command} {option}=x", [*rest, f"{option}=x"], is_refused=True)
                continue
            for value in values:
                name = f"{command} {option} {_shown(value)}"
                yield Case(name, [*rest, f"{option}={value}"], is_refused=values is not WORDS)
            yield Case(f"{command} {option} without a value", [*rest, option], is_refused=True)


def _of_paths() -> Iterator[Case]:
    for command, places in INPUTS.items():
        for place in places:
            for path in BAD_PATHS:
                arguments = list(BASE[command])
                if "model" in (path, arguments[place]) and path == arguments[place]:
                    continue
                arguments[place] = path
                yield Case(f"{command} reads {_shown(path)} at {place}", arguments)
    for command, base in BASE.items():
        if "-o" in base:
            for path in BAD_OUTPUTS:
                if command in ("study", "demo") and path in _POSSIBLE_NAMES:
                    continue  # takes its time
                yield Case(f"{command} writes {_shown(path)}", [*_without(base, ["-o"]), "-o", path])


def _of_data() -> Iterator[Case]:
    for index, name in enumerate(_odd_data()):
        path = f"data/{index}.npz"
        yield Case(f"inspect {name}", ["inspect", path, "--weight", "w"])
        yield Case(f"inspect {name} and a target", ["inspect", path, "target.npz", "--weight", "w"])
        yield Case(f"fit {name}", ["fit", path, "target.npz", *BASE["fit"][3:]])
        yield Case(f"fit to {name}", ["fit", "reference.npz", path, *BASE["fit"][3:]])
        yield Case(f"apply to {name}", ["apply", "model", path, "-o", "out.root"])
        yield Case(f"evaluate {name}", ["evaluate", "model", path, *BASE["evaluate"][3:]])
        yield Case(f"positive {name}", ["positive", path, *BASE["positive"][2:]])
        yield Case(
            f"eft inspect {name}",
            ["eft", "inspect", path, "--columns", "w,pt,eta", "--parameters", "a", "--order", "2"],
        )


def _of_texts() -> Iterator[Case]:
    for text in EXPRESSIONS:
        for option in ("--weight", "--selection", "--features"):
            rest = _without(BASE["inspect"], [option])
            yield Case(f"inspect {option} {_shown(text)}", [*rest, f"{option}={text}"])
        yield Case(f"apply --selection {_shown(text)}", [*BASE["apply"], f"--selection={text}"])
        yield Case(f"evaluate --observables {_shown(text)}", [*BASE["evaluate"], f"--observables={text}"])
    for index, text in enumerate(CONFIGURATIONS):
        shown = _shown(text.replace(SAMPLES, "..").replace("\n", " "))
        yield Case(f"configuration {index} {shown}", ["fit", "case.yaml"], {"case.yaml": text})
    for index, text in enumerate(POINTS):
        options = ["--points", "case.yaml", "--columns", "rwgt0_a_0p0,rwgt1_a_1p0,rwgt2_a_m1p0"]
        name = f"points {index} {_shown(text)}"
        yield Case(name, ["eft", "inspect", "eft.npz", *options], {"case.yaml": text})
        yield Case(
            f"generate {name}", [*BASE["generate gg-hh"], "--points", "case.yaml"], {"case.yaml": text}
        )


def hostile_cases() -> list[Case]:
    """Return all cases, with names that differ."""
    made: list[Callable[[], Iterator[Case]]] = [_of_options, _of_paths, _of_data, _of_texts]
    return list({case.name: case for make in made for case in make()}.values())
