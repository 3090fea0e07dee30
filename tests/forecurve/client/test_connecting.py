"""What lies between the client and the service, certificates and proxies, is named when it is at fault."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from forecurve.client import ApiError, ClientError, init
from tests.certificates import self_signed
from tests.worker.receiver import receiving

pytestmark = pytest.mark.usefixtures("fresh")


def test_a_certificate_that_is_not_trusted_is_named_and_trusted_when_the_environment_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, serve = self_signed("localhost", tmp_path)
    with receiving(tls=serve) as receiver:
        url = f"https://localhost:{receiver.port}"
        init(url=url, token="mine").finish()
        assert f"no answer from {url} (its certificate is not trusted: self-signed certificate)" in caplog.text
        assert "SSL_CERT_FILE" in caplog.text
        assert receiver.got == []

        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
        with pytest.raises(ApiError) as caught:  # it is no Forecurve
            init(url=url, token="mine")
        assert caught.value.code != "unreachable"
        assert len(receiver.got) == 1


def test_an_address_without_tls_is_not_called_away(caplog: pytest.LogCaptureFixture) -> None:
    with receiving() as receiver:
        init(url=f"https://127.0.0.1:{receiver.port}", token="mine").finish()
    assert "where it has no TLS its address begins with http://" in caplog.text


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1080", "names a SOCKS proxy, which needs a package more"),
        ("HTTPS_PROXY", "ftp://127.0.0.1:1080", "is no address of a proxy"),
        ("SSL_CERT_FILE", "missing.pem", "no certificates can be read where SSL_CERT_FILE"),
    ],
)
def test_an_environment_that_cannot_be_meant_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    monkeypatch.setitem(sys.modules, "socksio", None)
    with pytest.raises(ClientError, match=words):
        init(url="https://forecurve.invalid", token="mine")
    assert list(tmp_path.iterdir()) == []
