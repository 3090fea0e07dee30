"""A POST goes to the address that was checked, and to no other."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.certificates import self_signed
from tests.worker.receiver import receiving
from worker.safe_http import Refused, post


def test_the_name_is_resolved_once_and_the_checked_address_is_used() -> None:
    asked: list[tuple[str, int]] = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["127.0.0.1"] if len(asked) == 1 else ["169.254.169.254"]

    with receiving() as receiver:
        url = f"http://hooks.internal:{receiver.port}/a?b=c"
        answer = post(url, b"{}", {"x-test": "1"}, allow_private=True, resolve=rebinding)
    assert asked == [("hooks.internal", receiver.port)]
    ((path, headers, body),) = receiver.got
    assert (path, body, answer.status, answer.text) == ("/a?b=c", b"{}", 200, "ok")
    assert (headers["host"], headers["x-test"]) == (f"hooks.internal:{receiver.port}", "1")


def test_every_address_of_a_name_must_be_allowed() -> None:
    with receiving() as receiver:
        url = f"https://both.example:{receiver.port}/"
        with pytest.raises(Refused, match=r"10\.0\.0\.1 is not a public address"):
            post(url, b"", {}, allow_private=False, resolve=lambda _, __: ["93.184.215.14", "10.0.0.1"])
    assert receiver.got == []


@pytest.mark.parametrize("scheme", ["file", "gopher", "ftp"])
def test_other_schemes_are_refused(scheme: str) -> None:
    with pytest.raises(Refused, match=scheme):
        post(f"{scheme}://host.example/x", b"", {}, allow_private=True, resolve=lambda _, __: ["127.0.0.1"])


def test_http_to_a_public_address_is_refused_even_where_private_ones_are_allowed() -> None:
    with pytest.raises(Refused, match="public"):
        post("http://host.example/x", b"", {}, allow_private=True, resolve=lambda _, __: ["93.184.215.14"])


def test_an_address_that_does_not_answer_gives_way_to_the_next() -> None:
    with receiving() as receiver:
        url = f"http://two.internal:{receiver.port}/"
        answer = post(url, b"", {}, allow_private=True, resolve=lambda _, __: ["127.0.0.2", "127.0.0.1"])
    assert answer.status == 200


def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with receiving() as receiver:
        assert post(receiver.url, b"", {}, allow_private=True).status == 200


def test_the_certificate_must_be_the_names_though_the_connection_is_to_the_address(tmp_path: Path) -> None:
    trust, serve = self_signed("hooks.example", tmp_path)
    resolve = lambda _, __: ["127.0.0.1"]  # noqa: E731
    with receiving(tls=serve) as receiver:
        url = f"https://hooks.example:{receiver.port}/"
        assert post(url, b"", {}, allow_private=True, resolve=resolve, verify=trust).status == 200
        with pytest.raises(httpx.ConnectError, match=r"(?i)certificate"):
            post(url.replace("hooks", "other"), b"", {}, allow_private=True, resolve=resolve, verify=trust)


@pytest.mark.parametrize(
    ("answers_first", "expected"), [(b"HTTP/1.1 20", None), (b"HTTP/1.1 202 OK\r\nContent-Length: 9999\r\n\r\n", 202)]
)
@pytest.mark.timeout(60)
def test_a_receiver_that_answers_a_byte_at_a_time_is_not_waited_for_to_its_end(
    answers_first: bytes, expected: int | None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):  # it was cut off, which ends this
                connection.sendall(answers_first)
                while True:
                    connection.sendall(b"0")
                    connection.settimeout(0.05)
                    with suppress(TimeoutError):
                        if not connection.recv(65536):
                            return

        dripping = threading.Thread(target=drip, daemon=True)
        dripping.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        if expected is None:
            with pytest.raises(httpx.HTTPError):
                post(url, b"{}", {}, allow_private=True, timeout_s=0.5)
        else:
            assert post(url, b"{}", {}, allow_private=True, timeout_s=0.5).status == expected
        dripping.join()
