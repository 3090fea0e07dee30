"""A real HTTP receiver in a thread, which answers as it is told and keeps what it got."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from server.settings import Settings


@dataclass
class Receiver:
    """`answers` are given one after the other, the last one for ever: (status, headers, body)."""

    url: str = ""
    port: int = 0
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=lambda: [(200, {}, b"ok")])
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@contextmanager
def receiving(*answers: tuple[int, dict[str, str], bytes], tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    receiver = Receiver(answers=list(answers) or [(200, {}, b"ok")])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            receiver.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            status, headers, answer = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
            self.send_response(status)
            for name, value in {"content-length": str(len(answer)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    receiver.port = server.server_address[1]
    receiver.url = f"{'https' if tls else 'http'}://127.0.0.1:{receiver.port}/hook"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def settings_of_delivery(tmp_path: Path) -> Settings:
    """For deliveries to a receiver on this machine."""
    return Settings(
        DATABASE_URL="postgresql://unused",
        data_dir=tmp_path,
        allow_private_webhooks=True,
        public_url="https://fc.example/",
    )
