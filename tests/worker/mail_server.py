"""A real SMTP server in a thread, which takes letters, or answers as it is told."""

from __future__ import annotations

import base64
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default


@dataclass
class MailServer:
    """`answers` by command, in place of `250 ok`. `said` is every command that came, without the letters."""

    port: int = 0
    answers: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    letters: list[EmailMessage] = field(default_factory=list)
    secure: list[bool] = field(default_factory=list)

    def url(self, scheme: str = "smtp", login: str = "", host: str = "127.0.0.1") -> str:
        return f"{scheme}://{login}{host}:{self.port}"


@contextmanager
def mail_server(
    *, answers: dict[str, str] | None = None, tls: ssl.SSLContext | None = None, starttls: ssl.SSLContext | None = None
) -> Iterator[MailServer]:
    """Over TLS from the first byte with `tls`, after STARTTLS with `starttls`."""
    state = MailServer(answers=answers or {})

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.secured = tls is not None
            self.answer("220 here")
            while line := self.rfile.readline():
                command = line.decode().rstrip("\r\n")
                state.said.append(command)
                word = command.partition(" ")[0].upper()
                if word == "QUIT":
                    return self.answer(state.answers.get("QUIT", "221 bye"))
                self.take(word, command)
            return None

        def take(self, word: str, command: str) -> None:
            if word in state.answers:
                return self.answer(state.answers[word])
            if word == "EHLO":
                offers = ["STARTTLS"] if starttls is not None and not self.secured else ["AUTH PLAIN"]
                return self.answer("\r\n".join(["250-here", *(f"250 {offer}" for offer in offers)]))
            if word == "STARTTLS":
                return self.secure()
            if word == "DATA":
                return self.letter()
            return self.answer("235 welcome" if word == "AUTH" else "250 ok")

        def secure(self) -> None:
            assert starttls is not None
            self.answer("220 go on")
            self.connection = starttls.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", buffering=0)
            self.secured = True

        def letter(self) -> None:
            self.answer("354 go on")
            lines = []
            while (line := self.rfile.readline()) != b".\r\n":
                lines.append(line[1:] if line.startswith(b"..") else line)
            found = message_from_bytes(b"".join(lines).replace(b"\r\n", b"\n"), policy=default)
            assert isinstance(found, EmailMessage)
            state.letters.append(found)
            state.secure.append(self.secured)
            self.answer(state.answers.get("END", "250 taken"))

        def answer(self, text: str) -> None:
            self.wfile.write(f"{text}\r\n".encode())

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        allow_reuse_address = True

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def login_of(server: MailServer) -> str:
    """User and password that came, as `user:password`."""
    (line,) = (command for command in server.said if command.startswith("AUTH"))
    return ":".join(base64.b64decode(line.split()[2]).decode().split("\0")[1:])
