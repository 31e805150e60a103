"""Parton densities from LHAPDF grid text files, read and interpolated without LHAPDF.

A file has a short header and blocks that end with `---`. Each block (one range of scales between quark
thresholds) lists its nodes in x, its nodes in Q and its flavours, then one line per (x, Q) node with
x f(x, Q) for every flavour, Q running fastest. Between the nodes a bicubic spline in (ln x, ln Q^2) is used.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.interpolate import RectBivariateSpline

from quasiratio.errors import InvalidInputError, MissingExtraError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["BUNDLED_GRID", "GLUON", "PartonDensity", "bundled_grid_path", "load_parton_density"]

FloatArray = npt.NDArray[np.float64]

BUNDLED_GRID = "NNPDF31_nlo_as_0118_luxqed_0000.dat"
GLUON = 21


@dataclass(frozen=True, eq=False)
class _Block:
    """One subgrid: `values[i, j, k]` is x f at node x_i, scale Q_j, flavour k."""

    x: FloatArray
    q: FloatArray
    flavours: tuple[int, ...]
    values: FloatArray


@dataclass(frozen=True, eq=False)
class PartonDensity:
    """Parton densities x f(x, Q) on a grid.

    Beyond its edges in x and Q the grid is frozen at its last value; at x = 1 the density vanishes.

    Attributes:
        name: Name of the grid, for metadata.
        blocks: Subgrids by rising scale.
    """

    name: str
    blocks: tuple[_Block, ...]
    _splines: dict[tuple[int, int], RectBivariateSpline] = field(default_factory=dict, repr=False)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Read an LHAPDF grid text file (`lhagrid1`), the member of a set with the extension `.dat`."""
        path = Path(path)
        if not _is_file(path):
            msg = f"Got the parton-density file {str(path)!r}, which does not exist; expected a grid. Check the path."
            raise InvalidInputError(msg)
        try:
            text = path.read_text(encoding="ascii")
        except (UnicodeDecodeError, OSError) as error:
            raise _bad_grid(path, "it is not a readable text file") from error
        header, *parts = _sections(text)
        if "lhagrid1" not in header:
            raise _bad_grid(path, "its header does not say 'Format: lhagrid1'")
        if not parts or not text.rstrip().endswith("---"):
            raise _bad_grid(path, "it ends before its last block is complete")
        blocks = tuple(_parse_block(path, part) for part in parts)
        return cls(path.stem, blocks)

    def xf(self, flavour: int, x: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
        """Return x f(x, Q) of one flavour; the gluon is clipped at zero, where splines may undershoot.

        Args:
            flavour: Particle number, 21 for the gluon.
            x: Momentum fractions.
            q: Scales in GeV; broadcast against `x`.
        """
        x_all, q_all = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(q, dtype=np.float64))
        result = np.zeros(x_all.shape)
        lower_edges = np.array([block.q[0] for block in self.blocks])
        which = np.clip(np.searchsorted(lower_edges, q_all, side="right") - 1, 0, None)
        for index in np.unique(which):
            chosen, block = which == index, self.blocks[index]
            log_x = np.log(np.clip(x_all[chosen], block.x[0], block.x[-1]))
            log_q2 = 2.0 * np.log(np.clip(q_all[chosen], block.q[0], block.q[-1]))
            result[chosen] = self._spline(int(index), flavour).ev(log_x, log_q2)
        return np.maximum(result, 0.0) if flavour == GLUON else result

    def gluon(self, x: npt.ArrayLike, q: npt.ArrayLike) -> FloatArray:
        """Return x g(x, Q), at least zero."""
        return self.xf(GLUON, x, q)

    def _spline(self, index: int, flavour: int) -> RectBivariateSpline:
        if (index, flavour) not in self._splines:
            block = self.blocks[index]
            if flavour not in block.flavours:
                msg = f"Got the flavour {flavour}; expected one of {list(block.flavours)}, those of {self.name}."
                raise InvalidInputError(msg)
            values = block.values[..., block.flavours.index(flavour)]
            degree = min(3, len(block.q) - 1)
            spline = RectBivariateSpline(np.log(block.x), 2.0 * np.log(block.q), values, ky=degree)
            self._splines[index, flavour] = spline
        return self._splines[index, flavour]


def bundled_grid_path() -> Path:
    """Return the grid that comes with pythia8mc, found through the files of the installed package."""
    try:
        files = metadata.distribution("pythia8mc").files or []
    except metadata.PackageNotFoundError as error:
        msg = (
            "Got no parton-density file and pythia8mc, whose grid is the default, is not installed; "
            "expected one of them. Run pip install 'quasiratio[gghh]' or name an LHAPDF grid file."
        )
        raise MissingExtraError(msg) from error
    for file in files:
        if file.name == BUNDLED_GRID:
            return Path(str(file.locate())).resolve()
    msg = f"Got a pythia8mc installation without {BUNDLED_GRID}; expected it there. Name an LHAPDF grid file."
    raise MissingExtraError(msg)


def load_parton_density(path: str | Path | None = None) -> PartonDensity:
    """Return the density of a grid file, by default the one bundled with pythia8mc; files are read once."""
    chosen = Path(path) if path is not None else bundled_grid_path()
    if not _is_file(chosen):
        return PartonDensity.from_file(chosen)
    stat = chosen.stat()
    return _cached(str(chosen.resolve()), stat.st_mtime_ns, stat.st_size)


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113 - false, not an error, for names that no file can have


@lru_cache(maxsize=4)
def _cached(path: str, _mtime_ns: int, _size: int) -> PartonDensity:
    return PartonDensity.from_file(path)


def _sections(text: str) -> list[str]:
    return [part.strip() for part in text.replace("\r\n", "\n").split("\n---") if part.strip(" -\n")]


def _parse_block(path: Path, text: str) -> _Block:
    lines = text.split("\n", 3)
    try:
        x, q = (np.array(line.split(), dtype=np.float64) for line in lines[:2])
        flavours = tuple(int(number) for number in lines[2].split())
        values = np.loadtxt(io.StringIO(lines[3]), dtype=np.float64, ndmin=2)
    except (ValueError, IndexError) as error:
        raise _bad_grid(
            path, "a block is not three lines of nodes and flavours and a table of numbers"
        ) from error
    expected = (x.size * q.size, len(flavours))
    if values.shape != expected:
        raise _bad_grid(path, f"a block holds a table of {values.shape}, its nodes ask for {expected}")
    rising = np.all(np.diff(x) > 0) and np.all(np.diff(q) > 0)
    if x.size < 4 or q.size < 2 or not rising or x[0] <= 0 or q[0] <= 0 or not np.isfinite(values).all():
        raise _bad_grid(path, "its nodes do not rise, are too few, or its values are not finite")
    flavours = tuple(GLUON if number == 0 else number for number in flavours)
    return _Block(x, q, flavours, values.reshape(x.size, q.size, len(flavours)))


def _bad_grid(path: Path, reason: str) -> InvalidInputError:
    msg = (
        f"Got {str(path)!r}, which cannot be read as a parton density: {reason}. Expected an LHAPDF grid "
        "text file. Use the .dat member of a set, complete as downloaded."
    )
    return InvalidInputError(msg)
