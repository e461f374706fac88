"""What a person adds: pages by URL within limits, PDF, and what is refused with a way out."""

import contextlib
import importlib.util
import io
import os
import socketserver
import threading
import urllib.request
from collections.abc import Iterator
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfWriter
from pypdf.generic import DictionaryObject, NameObject, StreamObject

from stitch_tui.tools.docs import fetch, pdf, sources, worker
from stitch_tui.tools.docs.chunk import Cut
from stitch_tui.tools.docs.fetch import fetched
from stitch_tui.tools.docs.index import Index
from stitch_tui.tools.docs.sources import Added
from stitch_tui.tools.errors import EnvironmentFault, StitchError, UsageError

PAGES: dict[str, tuple[int, dict[str, str], bytes]] = {
    "/guide": (200, {"Content-Type": "text/html; charset=latin-1"}, b"<h1 id='g'>Gr\xfcn</h1>tiles"),
    "/notes.md": (200, {"Content-Type": "text/plain"}, b"# Tiles\n\nare 64 wide\n"),
    "/moved": (302, {"Location": "/notes.md"}, b""),
    "/round": (302, {"Location": "/round"}, b""),
    "/file": (302, {"Location": "file:///etc/hostname"}, b""),
    "/ftp": (302, {"Location": "ftp://127.0.0.1/a"}, b""),
    "/picture": (200, {"Content-Type": "image/png"}, b"x"),
    "/large": (200, {"Content-Type": "text/plain"}, b"x" * 5000),
    "/none": (404, {}, b""),
    "/": (200, {"Content-Type": "text/html"}, b"<h1>Start</h1>here"),
    "/gr%C3%BCn": (200, {"Content-Type": "text/plain"}, b"green"),
    "/short": (200, {"Content-Type": "text/html", "Content-Length": "900"}, b"<h1>Start</h1>"),
    "/packed": (200, {"Content-Type": "text/html", "Content-Encoding": "gzip"}, b"\x1f\x8b"),
    "/nowhere": (302, {"Location": "http://[::1"}, b""),
    "/undefined": (200, {"Content-Type": "text/html; charset=undefined"}, b"<h1>Start</h1>"),
    "/idna": (200, {"Content-Type": "text/html; charset=idna"}, b"<h1>Start</h1>"),
    "/base64": (200, {"Content-Type": "text/html; charset=base64"}, b"<h1>Start</h1>"),
}  # fmt: skip


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        status, headers, body = PAGES[self.path or "/"]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server of pages on this machine."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def document(path: Path, *pages: str) -> Path:
    """A PDF with a line of text on each page and an outline entry for the first."""
    writer = PdfWriter()
    helvetica = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    font = DictionaryObject({NameObject(name): NameObject(value) for name, value in helvetica.items()})
    for text in pages:
        page = writer.add_blank_page(width=300, height=300)
        stream = StreamObject()
        stream.set_data(f"BT /F1 12 Tf 20 200 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = writer._add_object(stream)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    writer.add_outline_item(title="Launching", page_number=0)
    writer.write(path)
    return path


def test_a_page_is_fetched_as_utf_8_under_a_name_that_tells_its_origin(site: str, tmp_path: Path) -> None:
    page = fetched(f"{site}/guide", tmp_path)
    assert page.name.startswith("127-0-0-1-guide-")
    assert page.suffix == ".html"
    assert "Grün" in page.read_text(encoding="utf-8")
    notes = fetched(f"{site}/moved", tmp_path)
    assert notes.read_text() == "# Tiles\n\nare 64 wide\n"
    assert fetched(f"{site}/notes.md", tmp_path).suffix == ".md"
    assert fetched(f"{site}/guide", tmp_path) == page, "the same address is the same file"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/round", "cannot be fetched"),
        ("/file", "not allowed"),
        ("/ftp", "only http and https"),
        ("/picture", "image/png is not read"),
        ("/large", "too large"),
        ("/none", "404"),
        ("/short", "broke off: 14 of 900 bytes"),
        ("/packed", "packed, unasked: Content-Encoding: gzip"),
        ("/nowhere", "cannot be fetched|no URL"),
    ],
)
def test_what_cannot_be_taken_is_refused_and_leaves_nothing(
    site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, said: str
) -> None:
    monkeypatch.setattr(fetch, "LARGEST_BYTES", 4000)
    with pytest.raises(StitchError, match=said):
        fetched(f"{site}{path}", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["/", "", "/grün", "/undefined", "/idna", "/base64"])
def test_a_sites_first_page_and_odd_encodings_are_read(site: str, tmp_path: Path, path: str) -> None:
    assert fetched(f"{site}{path}", tmp_path).stat().st_size > 0


def test_only_a_page_of_this_machine_or_network_may_lead_to_another_there() -> None:
    def led(origin: str, target: str) -> object:
        request = urllib.request.Request(origin)
        return fetch._Redirects().redirect_request(request, io.BytesIO(), 302, "Found", Message(), target)

    for target in ("http://127.0.0.1/admin", "http://10.0.0.1/", "http://169.254.169.254/", "http://[::1]/"):
        with pytest.raises(UsageError, match="of this machine or its network"):
            led("http://8.8.8.8/guide", target)
        assert led("http://192.168.1.1/guide", target)
    assert led("http://8.8.8.8/guide", "http://9.9.9.9/guide")


@pytest.mark.parametrize("part", ["head", "body", "handshake"])
def test_a_server_that_sends_a_byte_now_and_then_is_left_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    """Each byte comes long before a silence is too long: only a limit on all of it ends this."""
    begun = {
        "head": b"HTTP/1.0 200 OK\r\nX-Slow: ",
        "body": b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n",
        "handshake": b"\x16\x03\x03\x40\x00",  # a record of TLS, 16 KiB of it to come
    }
    monkeypatch.setattr(fetch, "LONGEST_S", 0.5)
    ended = threading.Event()

    class Trickling(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with contextlib.suppress(OSError):
                self.request.sendall(begun[part])
                while not ended.wait(0.01):
                    self.request.sendall(b"x")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Trickling) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        scheme = "https" if part == "handshake" else "http"
        try:
            with pytest.raises(EnvironmentFault, match=r"takes too long.*over 0.5 s"):
                fetched(f"{scheme}://127.0.0.1:{server.server_address[1]}/guide.md", tmp_path)
        finally:
            ended.set()
            server.shutdown()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/a.html", "file:///etc/passwd", "http:///a", "http://me:pw@example.org/"),
        *("http://[::1", "http://[", "http://..example/", "http://" + "a" * 300),
    ],
)
def test_only_plain_web_addresses_are_asked(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        fetched(url, tmp_path)
    assert "pw" not in str(caught.value)


def test_the_pages_of_a_pdf_are_passages_with_their_number(toolkit: Path, tmp_path: Path) -> None:
    path = document(tmp_path / "guide.pdf", "grids of blocks", "swizzled tiles")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    index = Index(tmp_path / "docs")
    index.folder.mkdir()
    built = index.build(sources.of_added(Added(str(tmp_path), "guide", "9")), lambda *_: None)
    assert [line.partition(":")[0] for line in built["unread"]] == [str(tmp_path / "broken.pdf")]
    assert "no PDF that can be read" in built["unread"][0]
    first, *_ = index.search("swizzled", limit=5, library="guide")
    assert (first["file"], first["anchor"], first["name"]) == (str(path), "page=2", "Launching")
    assert "swizzled tiles" in first["text"]


def test_a_file_that_no_parser_gets_through_costs_itself_alone(toolkit: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "good.md").write_text("# Swizzle\n\nXor the column.\n")
    (folder / "odd.html").write_text("<p>before</p><![odd[x]]>")
    (folder / os.fsdecode(b"\xff.md")).write_text("# No name\n\nfor a text\n")
    index = Index(tmp_path / "docs")
    index.folder.mkdir()
    asked = {"path": str(folder), "library": "mine", "folders": [str(toolkit)]}
    built = worker.add(worker.Desk(index, lambda *_: None, None), asked)
    assert [Path(line.partition(":")[0]).name for line in built["unread"]] == ["odd.html", "\udcff.md"]
    assert index.search("xor column", limit=1, library="mine")
    with pytest.raises(UsageError, match="no UTF-8"):
        sources.checked(folder / os.fsdecode(b"\xff.md"), "", "")


def test_what_could_not_be_indexed_is_not_remembered(
    toolkit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.md").write_text("# Swizzle\n\nXor the column.\n")
    index = Index(tmp_path / "none" / "docs")  # there is no such folder to write it to
    asked = {"path": str(tmp_path / "mine.md"), "folders": [str(toolkit)]}
    with pytest.raises((OSError, StitchError)):
        worker.add(worker.Desk(index, lambda *_: None, None), asked)
    assert sources.added_paths() == []


def test_a_fetched_page_is_listed_and_removed_by_its_address(
    site: str, toolkit: Path, tmp_path: Path
) -> None:
    index = Index(tmp_path / "docs")
    index.folder.mkdir()
    desk = worker.Desk(index, lambda *_: None, None)
    page = fetched(f"{site}/notes.md", tmp_path)
    asked = {"path": str(page), "url": f"{site}/notes.md", "library": "tiles", "folders": [str(toolkit)]}
    assert worker.add(desk, asked)["source"] == f"{site}/notes.md"
    listed = {row["source"]: row for row in index.listing()}
    assert listed[f"{site}/notes.md"]["licence"].startswith("of 127.0.0.1")
    assert "toolkit" in listed, "nothing was indexed yet: all the rest too"
    assert worker.remove(desk, {"path": f"{site}/notes.md"})["chunks"] == 1
    assert not page.exists()
    assert index.search("tiles wide", limit=3, library="tiles") == []


def test_adding_to_an_index_of_another_kind_makes_all_of_it_anew(toolkit: Path, tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    Index(folder, Cut(200, 20)).build(sources.installed([toolkit]), lambda *_: None)
    (tmp_path / "mine.md").write_text("# Swizzle\n\nXor the column.\n")
    index = Index(folder)
    asked = {"path": str(tmp_path / "mine.md"), "folders": [str(toolkit)]}
    worker.add(worker.Desk(index, lambda *_: None, None), asked)
    assert {row["source"] for row in index.listing()} >= {"toolkit", "notes", str(tmp_path / "mine.md")}


def test_without_pypdf_a_pdf_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = document(tmp_path / "guide.pdf", "x")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    for use in (lambda: sources.checked(path, "", ""), lambda: list(pdf.chunks(path))):
        with pytest.raises(EnvironmentFault) as caught:
            use()
        assert "stitch-tui[docs]" in caught.value.advice


def test_what_cannot_be_read_is_refused_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_text("x")
    with pytest.raises(UsageError) as caught:
        sources.checked(tmp_path / "a.bin", "", "")
    assert ".md" in caught.value.advice
    with pytest.raises(UsageError, match="no such file"):
        sources.checked(tmp_path / "none.md", "", "")
