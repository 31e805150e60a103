"""Lists of files, and files behind addresses: read as local ones are, and one sentence where they cannot be."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import awkward as ak
import numpy as np
import pytest
import uproot

from quasiratio.errors import InvalidInputError, MissingExtraError, QuasiratioError
from quasiratio.io import create_store, create_table, open_table
from quasiratio.io.locations import locate

COLUMNS = {"pt": np.arange(50.0), "n": np.arange(50)}


class _Ranges(BaseHTTPRequestHandler):
    """Serves the files of `root`, whole or in ranges, as every large server does."""

    root: Path
    sent: list[int]
    protocol_version = "HTTP/1.1"

    def _answer(self, *, with_body: bool) -> None:
        path = self.root / self.path.partition("?")[0].lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        size, status, extra = len(content), 200, {}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked is not None:
            first, last = int(asked[1]), min(int(asked[2] or size - 1), size - 1)
            content, status = content[first : last + 1], 206
            extra = {"Content-Range": f"bytes {first}-{last}/{size}"}
        self.send_response(status)
        for name, value in {
            "Content-Length": str(len(content)),
            "Accept-Ranges": "bytes",
            "ETag": f'"{size}"',
            **extra,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        if with_body:
            self.sent.append(len(content))
            self.wfile.write(content)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def sent() -> list[int]:
    """Return the sizes of what the server has sent."""
    return []


@pytest.fixture
def server(tmp_path: Path, sent: list[int]) -> Iterator[str]:
    """Serve the temporary directory on loopback."""
    handler = type("Handler", (_Ranges,), {"root": tmp_path, "sent": sent})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()
        thread.join()


def write_all(directory: Path) -> None:
    """Write the same events in every format, the ROOT file with a jagged branch."""
    for suffix in ("npz", "parquet"):
        with create_table(directory / f"events.{suffix}", metadata={"who": "me"}) as writer:
            writer.append(COLUMNS)
    with uproot.recreate(directory / "events.root") as file:
        jagged = ak.unflatten(np.arange(100.0), np.full(50, 2))
        file.mktree("events", {"pt": "f8", "n": "i8", "jet": "var * float64"})
        file["events"].extend({**COLUMNS, "jet": jagged})


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["events.npz", "events.parquet", "events.root", "events.root:events"])
def test_an_address_reads_like_the_file(tmp_path: Path, server: str, name: str) -> None:
    pytest.importorskip("aiohttp")
    write_all(tmp_path)
    (here,) = open_table(str(tmp_path / name)).chunks()
    for address in (f"{server}/{name}", f"file://{tmp_path}/{name}"):
        table = open_table(address)
        (chunk,) = table.chunks()
        assert list(chunk) == list(here)
        for column in here:
            assert ak.array_equal(ak.Array(chunk[column]), ak.Array(here[column]))
    assert open_table(f"{server}/{name}").sources[0].startswith(server)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("kind", ["tree", "ntuple"])
def test_no_events_are_fetched_to_open_a_root_file(
    tmp_path: Path, server: str, sent: list[int], kind: str
) -> None:
    pytest.importorskip("aiohttp")
    columns = {"pt": np.random.default_rng(0).normal(size=40_000), "n": np.arange(40_000)}
    with uproot.recreate(tmp_path / "events.root") as file:
        types = {name: values.dtype for name, values in columns.items()}
        made = file.mktree("events", types) if kind == "tree" else file.mkrntuple("events", types)
        made.extend(columns)
    table = open_table(f"{server}/events.root")
    assert (table.n_events, list(table.columns)) == (40_000, ["pt", "n"])
    assert sum(sent) < 20_000 < (tmp_path / "events.root").stat().st_size
    sent.clear()
    (chunk,) = table.chunks(["pt"])
    np.testing.assert_array_equal(chunk["pt"], columns["pt"])
    assert sum(sent) < 1.1 * columns["pt"].nbytes


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_addresses_that_cannot_be_read_are_one_sentence(tmp_path: Path, server: str) -> None:
    pytest.importorskip("aiohttp")
    write_all(tmp_path)
    (tmp_path / "cut.root").write_bytes((tmp_path / "events.root").read_bytes()[:1000])
    for address, expected in {
        f"{server}/absent.npz": "which is not there",
        f"{server}/cut.root": "cannot be read as ROOT",
        "http://127.0.0.1:9/a.npz": "whose server does not answer",
        "eos://host/a.npz": "which fsspec does not know",
    }.items():
        with pytest.raises(InvalidInputError) as raised:
            open_table(address)
        assert expected in str(raised.value), address
        assert "\n" not in str(raised.value)


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_store_of_events_behind_an_address_is_made_again_when_they_have_changed(
    tmp_path: Path, server: str
) -> None:
    pytest.importorskip("aiohttp")
    said: list[str] = []
    for dtype in ("f4", "f4", "f8"):
        np.savez(tmp_path / "a.npz", x=np.arange(50, dtype=dtype))
        create_store(tmp_path / "store", f"{server}/a.npz", f"{server}/a.npz", weight="1", say=said.append)
    assert [text.rpartition(", ")[2] for text in said] == [
        "converted and shuffled now (1.3e-06 GB at most)",
        "which was made of the same files before",
        "in place of one with other files)",
    ]


def test_a_missing_backend_is_named() -> None:
    """None of these is installed where the tests run; where one is, it is asked for a host that is not there."""
    for address, package in {"s3://bucket/a.root": "s3fs", "root://host//a.root": "fsspec-xrootd"}.items():
        try:
            __import__(package.replace("-", "_"))
        except ImportError:
            with pytest.raises(MissingExtraError, match=package):
                open_table(address)


def test_a_list_names_files_relative_to_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    for number in range(3):
        np.savez(tmp_path / "data" / f"part{number}.npz", x=[float(number)])
    text = f"# three files\n\n  part[01].npz  \n{tmp_path}/data/part2.npz\n"
    marked = "utf-8-sig"  # as some editors write it
    (tmp_path / "data" / "files.txt").write_text(text, encoding=marked)
    monkeypatch.chdir(tmp_path)
    table = open_table("@data/files.txt")
    assert [file.path.name for file in table.files] == ["part0.npz", "part1.npz", "part2.npz"]
    assert [one.text for one in locate("data/part0.npz")] == [str(tmp_path / "data" / "part0.npz")]


@pytest.mark.parametrize(
    ("content", "spec", "expected"),
    [
        (None, "@absent.txt", "does not exist"),
        ("", "@list.txt", "names no file"),
        ("# nothing\n\n", "@list.txt", "names no file"),
        ("@list.txt\n", "@list.txt", "names the list '@list.txt'"),
        ("list.txt\n", "@list.txt", "suffix '.txt'"),
        ("a.npz\na.npz\n", "@list.txt", "twice"),
        ("b*.npz\n", "@list.txt", "matches no file"),
        ("gone.npz\n", "@list.txt", "no such file"),
        (b"\xff\xfe\x00", "@list.txt", "cannot be read as text"),
        ("a.npz\n", "@.", "no regular file"),
        ("a.npz\n", "list.txt", "Write '@' before"),
        ("a.npz\n", "@" + "x" * 5000, "does not exist"),
    ],
)
def test_a_list_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | bytes | None, spec: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez(tmp_path / "a.npz", x=[1.0])
    if content is not None:
        (tmp_path / "list.txt").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(QuasiratioError) as raised:
        open_table(spec)
    assert expected in str(raised.value)
    assert str(raised.value).startswith("Got ")
    assert "\n" not in str(raised.value)
