"""A small Slack-shaped receiver: takes deliveries over HTTP and verifies their signature (Standard Webhooks)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MAX_BYTES = 1 << 20
TOLERANCE_S = 300.0


@dataclass(frozen=True)
class Delivery:
    """A message as it arrived."""

    message_id: str
    body: dict[str, Any]
    verified: bool

    @property
    def text(self) -> str:
        """What a person reads in Slack: the sections' text."""
        blocks = [
            block.get("text", {}).get("text") for block in self.body.get("blocks", []) if block.get("type") == "section"
        ]
        return "\n".join(filter(None, blocks)) or str(self.body.get("text", ""))


class Receiver:
    """Listens on a free loopback port until closed."""

    def __init__(self) -> None:
        self.secret = ""
        self.deliveries: list[Delivery] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,), name="demo-receiver", daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/slack"

    def take(self, headers: Mapping[str, str], raw: bytes) -> int:
        """Keep a message; the HTTP status to answer with."""
        lower = {name.lower(): value for name, value in headers.items()}
        try:
            body = json.loads(raw)
        except ValueError:
            return 400
        if not isinstance(body, dict):
            return 400
        verified = is_signed(self.secret, lower, raw)
        self.deliveries.append(Delivery(lower.get("webhook-id", ""), body, verified))
        return 200 if verified else 401

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def is_signed(secret: str, headers: Mapping[str, str], raw: bytes, now: float | None = None) -> bool:
    """True when one of the signatures is ours and the message is fresh. Header names are in lower case."""
    stamp = headers.get("webhook-timestamp", "")
    if not stamp.isdigit() or abs((time.time() if now is None else now) - int(stamp)) > TOLERANCE_S:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{headers.get('webhook-id', '')}.{stamp}.".encode() + raw
    expected = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    given = headers.get("webhook-signature", "").split()
    return any(hmac.compare_digest(expected.encode(), signature.encode()) for signature in given)


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            status = 413 if length > MAX_BYTES else receiver.take(dict(self.headers), self.rfile.read(length))
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok" if status == 200 else b"no")

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet: the demo has its own display."""

    return Handler
