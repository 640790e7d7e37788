"""A package index on the loopback interface that does one thing wrong: a server of simple pages and wheels."""

from __future__ import annotations

import contextlib
import hashlib
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

TRICKS = ("honest", "wrong-bytes", "truncated", "endless", "slow", "sdist-only", "missing-file", "broken-page")


@dataclass
class Index:
    """What is served: the wheels of a folder, with `trick` played on the distribution `victim`."""

    wheels: Path
    trick: str = "honest"
    victim: str = "onnxruntime"
    asked: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)
    port: int = 0
    on_headers: Callable[[Message], object] = lambda _: None

    @property
    def url(self) -> str:
        """The address for `--index-url`."""
        return f"http://127.0.0.1:{self.port}/simple"

    def page(self, name: str) -> bytes | None:
        """Return the page of a distribution, None when there is none."""
        stem = name.replace("-", "_")
        found = sorted(path for path in self.wheels.glob("*.whl") if path.name.startswith(f"{stem}-"))
        if not found:
            return None
        rows = []
        for path in found:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            file = path.name
            if self.trick == "sdist-only" and name == self.victim:
                file = f"{stem}-{path.name.split('-')[1]}.tar.gz"
            rows.append(f'<a href="/files/{file}#sha256={digest}">{file}</a>')
        return ("<!DOCTYPE html><html><body>" + "".join(rows) + "</body></html>").encode()

    def is_victim(self, file: str) -> bool:
        """Whether a file is one of the distribution on which the trick is played."""
        return file.startswith(self.victim.replace("-", "_") + "-")


@contextlib.contextmanager
def serving(index: Index) -> Iterator[Index]:
    """Serve the index until the body ends."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 10  # a client that connects and says nothing must not keep the end waiting

        def do_GET(self) -> None:
            index.asked.append(self.path)
            index.on_headers(self.headers)
            with contextlib.suppress(OSError):
                _answer(self, index)

        def do_HEAD(self) -> None:
            self.send_error(405)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # Every thread is waited for when the server closes: one that outlived its test would leave a socket open.
    server.daemon_threads = False
    index.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield index
    finally:
        index.stop.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(request: BaseHTTPRequestHandler, index: Index) -> None:
    parts = [part for part in request.path.split("/") if part]
    if len(parts) == 2 and parts[0] == "simple":
        page = index.page(parts[1])
        if page is not None and index.trick == "broken-page" and parts[1] == index.victim:
            page = b"<html><body><a href='"
        _send(request, page, "text/html")
    elif len(parts) == 2 and parts[0] == "files":
        path = index.wheels / parts[1]
        content = path.read_bytes() if path.exists() else None
        trick = index.trick if index.is_victim(parts[1]) else "honest"
        _send_file(request, index, content, trick)
    else:
        request.send_error(404)


def _send(request: BaseHTTPRequestHandler, content: bytes | None, kind: str) -> None:
    if content is None:
        request.send_error(404)
        return
    request.send_response(200)
    request.send_header("Content-Type", kind)
    request.send_header("Content-Length", str(len(content)))
    request.end_headers()
    request.wfile.write(content)


def _send_file(request: BaseHTTPRequestHandler, index: Index, content: bytes | None, trick: str) -> None:
    kind = "application/octet-stream"
    if content is None or trick == "missing-file":
        request.send_error(404)
    elif trick == "wrong-bytes":
        _send(request, content[:-30] + bytes(byte ^ 1 for byte in content[-30:-28]) + content[-28:], kind)
    elif trick in {"truncated", "endless", "slow"}:
        request.send_response(200)
        request.send_header("Content-Type", kind)
        if trick != "endless":
            request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if trick == "endless":
            _send_endless_member(request, index)
        elif trick == "truncated":
            request.wfile.write(content[: len(content) * 99 // 100])
        else:
            for byte in content:
                request.wfile.write(bytes([byte]))
                if index.stop.wait(0.5):
                    return
    else:
        _send(request, content, kind)


def _send_endless_member(request: BaseHTTPRequestHandler, index: Index) -> None:
    """Send the head of an archive whose first file never ends; whoever unpacks it as it comes fills the disk."""
    name = b"onnxruntime/endless.bin"
    # Deflated, sizes to follow after the data.
    request.wfile.write(struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 8, 8, 0, 33, 0, 0, 0, len(name), 0) + name)
    block = struct.pack("<BHH", 0, 0xFFFF, 0) + b"\0" * 0xFFFF
    while not index.stop.is_set():
        request.wfile.write(block)
