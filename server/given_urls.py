"""The URLs and other texts of the settings, looked at when a process starts: one that cannot be meant would fail much
later, and as something else. What is refused is not shown where a password may stand in it."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, SecretStr

from forecurve.client.http import url_fault
from server.database import psycopg_url

_SENDER = re.compile(r"[\w.+-]+@[\w-]+(\.[\w-]+)*", re.ASCII)
_BROKERS = ("redis", "rediss", "redis+socket")


def _database(url: str) -> str:
    psycopg_url(url)
    return url


def _parts(url: str, wanted: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # is read only when asked for
    except ValueError:
        raise ValueError(f"cannot be read; {wanted}, with / # ? @ in its password as %2F %23 %3F %40") from None
    return parts


def _broker(url: str) -> str:
    wanted = "it must be redis://:PASSWORD@HOST:6379/0, or rediss:// with TLS"
    parts = _parts(url, wanted)
    if parts.scheme not in _BROKERS or not (parts.hostname or parts.path.strip("/")):
        raise ValueError(f"is no address of a Redis; {wanted}")
    return url


def _http(url: str) -> str:
    """Without a user and a password: such an address is shown to whoever may read, and calls carry a token of their
    own, in whose place they would be sent."""
    found = url.strip().rstrip("/")
    wanted = "it must be http:// or https:// and a host"
    if fault := url_fault(found):
        raise ValueError(f"{fault}; {wanted}")
    if "@" in urlsplit(found).netloc:
        raise ValueError(f"it is shown to others, and a token is sent there; {wanted} alone")
    scheme, _, rest = found.partition("://")
    return f"{scheme.lower()}://{rest}"


def _mail_server(url: SecretStr) -> SecretStr:
    told = url.get_secret_value().strip()
    wanted = "it must be smtp://USER:PASSWORD@HOST:587, or smtps://...:465 with TLS from the start"
    parts = _parts(told, wanted)
    if told and (parts.scheme not in ("smtp", "smtps") or not parts.hostname):
        raise ValueError(f"is no address of a mail server; {wanted}")
    return SecretStr(told)


def _ray_token(token: SecretStr) -> SecretStr | None:
    """Without what a file left around it. What no header carries would be refused at every call, and shown there."""
    found = token.get_secret_value().strip()
    if not all("!" <= char <= "~" for char in found):
        raise ValueError("must be printable ASCII without spaces; copy it again from where the cluster has it")
    return SecretStr(found) if found else None


def _folder(path: str) -> str:
    if path and not path.startswith("/"):
        raise ValueError("must be a path that begins with /, or empty")
    return path


def _command(line: str) -> str:
    if not line.strip():
        raise ValueError("must be a command, such as `python -m trainer`")
    return line


def _sender(address: str) -> str:
    if not _SENDER.fullmatch(address):
        raise ValueError("must be one address, such as forecurve@example.com")
    return address


DatabaseUrl = Annotated[str, AfterValidator(_database)]
BrokerUrl = Annotated[str, AfterValidator(_broker)]
HttpUrl = Annotated[str, AfterValidator(_http)]
MailServer = Annotated[SecretStr, AfterValidator(_mail_server)]
RayToken = Annotated[SecretStr, AfterValidator(_ray_token)]
Sender = Annotated[str, AfterValidator(_sender)]
Folder = Annotated[str, AfterValidator(_folder)]
Command = Annotated[str, AfterValidator(_command)]
HttpUrlOrNone = Annotated[str, AfterValidator(lambda url: _http(url) if url else url)]
