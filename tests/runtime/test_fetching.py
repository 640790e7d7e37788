"""One file from a server that misbehaves: what arrives is whole, what cannot be had is named by its host alone."""

from __future__ import annotations

import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from imprint.errors import NetworkError
from imprint.runtime.installer import fetching
from imprint.runtime.installer.fetching import Source, read

CONTENT = bytes(range(256)) * 4000
SECRETS = ("secret", "token", "/simple", "me:", "key")


@dataclass
class Seen:
    """What a server was asked: the path and the headers of each request."""

    port: int = 0
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def header(self, name: str) -> list[str | None]:
        """Return one header of each request."""
        return [headers.get(name.lower()) for _, headers in self.asked]


Answer = Callable[[BaseHTTPRequestHandler, int], None]


@contextlib.contextmanager
def serving(answer: Answer, context: ssl.SSLContext | None = None) -> Iterator[Seen]:
    """Serve with `answer`, which gets the number of the request."""
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_GET(self) -> None:
            seen.asked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            self.close_connection = True
            with contextlib.suppress(OSError):
                answer(self, len(seen.asked))

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    # A client that leaves is part of the play.
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    seen.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def whole(request: BaseHTTPRequestHandler, _number: int = 0) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(CONTENT)))
    request.end_headers()
    request.wfile.write(CONTENT)


def cut(request: BaseHTTPRequestHandler, _number: int = 0) -> None:
    request.send_response(200)
    request.send_header("Content-Length", str(len(CONTENT)))
    request.end_headers()
    request.wfile.write(CONTENT[:70_000])


def cut_in_chunks(request: BaseHTTPRequestHandler, _number: int = 0) -> None:
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    request.wfile.write(b"10000\r\n" + CONTENT[:0x10000] + b"\r\n20000\r\n" + CONTENT[:5])


def cut_without_a_length(request: BaseHTTPRequestHandler, _number: int = 0) -> None:
    request.send_response(200)
    request.send_header("Connection", "close")
    request.end_headers()
    request.wfile.write(CONTENT[:70_000])


def status(code: int) -> Answer:
    def answer(request: BaseHTTPRequestHandler, _number: int) -> None:
        request.send_error(code)

    return answer


def then(first: Answer, second: Answer) -> Answer:
    return lambda request, number: (first if number == 1 else second)(request, number)


def redirect(address: str) -> Answer:
    def answer(request: BaseHTTPRequestHandler, _number: int) -> None:
        request.send_response(302)
        request.send_header("Location", address)
        request.send_header("Content-Length", "0")
        request.end_headers()

    return answer


def fetch(
    where: str, *, size: int | None = len(CONTENT), index: str | None = None, environ: dict[str, str] | None = None
) -> bytes:
    data = bytearray()
    source = Source(where, "a-1-py3-none-any.whl", size, index, environ or {})
    for chunk in read(source, data.clear):
        data += chunk
    return bytes(data)


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


def test_a_file_arrives_whole() -> None:
    with serving(whole) as server:
        assert fetch(f"http://127.0.0.1:{server.port}/a.whl") == CONTENT


def test_credentials_go_to_the_hosts_own_index_alone() -> None:
    with serving(whole) as server:
        where = f"http://127.0.0.1:{server.port}/a.whl"
        for index in (
            f"http://me:sec%2Fret@127.0.0.1:{server.port}/simple",
            "http://me:x@example.invalid/simple",
            None,
        ):
            assert fetch(where, index=index) == CONTENT
    assert server.header("Authorization") == ["Basic bWU6c2VjL3JldA==", None, None]


def test_a_redirect_to_another_host_takes_no_credentials_along() -> None:
    with serving(whole) as second, serving(redirect(f"http://localhost:{second.port}/b.whl?key=1")) as first:
        index = f"http://me:secret@127.0.0.1:{first.port}/simple"
        assert fetch(f"http://127.0.0.1:{first.port}/a.whl", index=index) == CONTENT
    assert first.header("Authorization") != [None]
    assert second.header("Authorization") == [None]
    assert second.asked[0][0] == "/b.whl?key=1"


def test_a_redirect_to_the_same_host_keeps_them() -> None:
    with serving(then(redirect("/b.whl"), whole)) as server:
        index = f"http://me:secret@127.0.0.1:{server.port}/simple"
        assert fetch(f"http://127.0.0.1:{server.port}/a.whl", index=index) == CONTENT
    assert len(set(server.header("Authorization"))) == 1


def test_a_circle_of_redirects_ends() -> None:
    with serving(redirect("/a.whl")) as server, pytest.raises(NetworkError):
        fetch(f"http://127.0.0.1:{server.port}/a.whl")
    assert len(server.asked) < 30


@pytest.mark.parametrize("bad", [cut, cut_in_chunks, cut_without_a_length, status(503)])
def test_a_download_that_breaks_off_is_begun_again(bad: Answer) -> None:
    with serving(then(bad, whole)) as server:
        assert fetch(f"http://127.0.0.1:{server.port}/a.whl") == CONTENT
    assert len(server.asked) == 2


@pytest.mark.parametrize("bad", [cut, cut_in_chunks, cut_without_a_length])
def test_a_download_that_always_breaks_off_is_a_network_error(bad: Answer) -> None:
    with serving(bad) as server, pytest.raises(NetworkError, match=r"from 127\.0\.0\.1:\d+: ") as caught:
        fetch(f"http://127.0.0.1:{server.port}/token/a.whl?key=secret")
    assert len(server.asked) == fetching.TRIES
    assert not [secret for secret in SECRETS if secret in caught.value.message]


@pytest.mark.parametrize(
    ("code", "times", "hint"),
    [(401, 1, "UV_DEFAULT_INDEX"), (403, 1, "UV_DEFAULT_INDEX"), (404, 1, "check the index"), (503, 4, "later")],
)
def test_a_refusal_is_named_with_its_status(code: int, times: int, hint: str) -> None:
    with serving(status(code)) as server, pytest.raises(NetworkError, match=f"HTTP status {code}") as caught:
        fetch(f"http://127.0.0.1:{server.port}/token/a.whl", index=f"http://me:secret@127.0.0.1:{server.port}/simple")
    assert len(server.asked) == times
    assert hint in (caught.value.hint or "")
    assert not [secret for secret in SECRETS if secret in caught.value.message]


def test_a_server_that_is_silent_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "SECONDS", 0.2)
    ended = threading.Event()

    def wait(_request: BaseHTTPRequestHandler, _number: int) -> None:
        ended.wait(20)

    with serving(wait) as server:
        try:
            with pytest.raises(NetworkError, match="silent"):
                fetch(f"http://127.0.0.1:{server.port}/a.whl")
        finally:
            ended.set()


def test_a_server_that_sends_next_to_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "STALL_SECONDS", 0.3)
    ended = threading.Event()

    def drip(request: BaseHTTPRequestHandler, _number: int) -> None:
        request.send_response(200)
        request.send_header("Content-Length", str(len(CONTENT)))
        request.end_headers()
        while not ended.wait(0.05):
            request.wfile.write(b"x")

    with serving(drip) as server:
        try:
            with pytest.raises(NetworkError, match="fewer than"):
                fetch(f"http://127.0.0.1:{server.port}/a.whl")
        finally:
            ended.set()


def test_a_host_that_is_not_there_is_said_without_the_address() -> None:
    with pytest.raises(NetworkError, match="Connection refused") as caught:
        fetch("http://127.0.0.1:9/token/a.whl?key=secret")
    assert not [secret for secret in SECRETS if secret in caught.value.message]


def test_the_users_proxy_is_asked_with_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(whole) as proxy:
        monkeypatch.setenv("http_proxy", f"http://you:s%40fe@127.0.0.1:{proxy.port}")
        assert fetch("http://index.invalid/a.whl") == CONTENT
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        assert fetch(f"http://127.0.0.1:{proxy.port}/direct.whl") == CONTENT
    assert [path for path, _ in proxy.asked] == ["http://index.invalid/a.whl", "/direct.whl"]
    assert proxy.header("Proxy-Authorization") == ["Basic eW91OnNAZmU=", None]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a certificate for 127.0.0.1 that nobody else trusts; its key lies beside it."""
    folder = tmp_path_factory.mktemp("certificate")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "ca.pem"]
    subprocess.run([*command, *names], cwd=folder, check=True, capture_output=True)
    return folder / "ca.pem"


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"])
def test_certificates_count_where_the_user_names_them(certificate: Path, name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with serving(whole, context) as server:
        where = f"https://127.0.0.1:{server.port}/a.whl"
        assert fetch(where, environ={name: str(certificate)}) == CONTENT
        with pytest.raises(NetworkError, match="certificate is not trusted") as caught:
            fetch(where)
    assert "SSL_CERT_FILE" in (caught.value.hint or "")


def test_a_file_of_certificates_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match="SSL_CERT_FILE"):
        fetch("https://127.0.0.1:9/a.whl", environ={"SSL_CERT_FILE": str(tmp_path / "gone")})


def test_a_file_of_a_folder_is_read_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "a b.whl"
    file.write_bytes(CONTENT)
    assert fetch(str(file)) == fetch(file.as_uri()) == CONTENT


def test_other_kinds_of_addresses_are_refused() -> None:
    with pytest.raises(NetworkError, match="ftp"):
        fetch("ftp://127.0.0.1/a.whl")
