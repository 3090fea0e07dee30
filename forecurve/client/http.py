"""HTTP to the service: one httpx client per process, problems read as RFC 9457."""

from __future__ import annotations

import ipaddress
import math
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx

from .errors import ApiError, ClientError

USER_AGENT = "forecurve-python"


def make_http(url: str, token: str | None, *, timeout_s: float = 10.0) -> httpx.Client:
    """An HTTP client on `url`. A loopback address never goes through a proxy of the environment; the certificates of
    its SSL_CERT_FILE are trusted everywhere.

    Raises:
        ClientError: `url` or `token` cannot be one, or what the environment says of proxies or certificates.
    """
    url, token = checked_url(url), checked_token(token)
    headers = {"User-Agent": USER_AGENT} | ({"Authorization": f"Bearer {token}"} if token else {})
    timeout = httpx.Timeout(timeout_s, connect=5.0)
    try:
        trusted = certificates(url)
    except OSError as error:
        told = f"no certificates can be read where SSL_CERT_FILE or SSL_CERT_DIR says ({error})"
        raise ClientError(f"{told}; mend that, or unset it") from None
    try:
        return httpx.Client(
            base_url=url, headers=headers, timeout=timeout, verify=trusted, trust_env=not is_loopback(url)
        )
    except ImportError:
        named = "HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names a SOCKS proxy, which needs a package more"
        raise ClientError(f"{named}: pip install 'httpx[socks]', or unset it") from None
    except (ValueError, httpx.InvalidURL) as error:
        raise ClientError(f"HTTP_PROXY, HTTPS_PROXY or ALL_PROXY is no address of a proxy: {error}") from None


def certificates(url: str) -> ssl.SSLContext:
    """Those to trust at `url`. Without TLS that is none: reading them all takes 50 ms of every client.

    Raises:
        OSError: none can be read where SSL_CERT_FILE or SSL_CERT_DIR says.
    """
    with_tls = urlsplit(url).scheme == "https"
    return httpx.create_ssl_context() if with_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def no_answer(url: str, error: httpx.HTTPError) -> ApiError:
    """Why none came, and the way out."""
    cause = _cause(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = f"its certificate is not trusted: {cause.verify_message}"
        way_out = "SSL_CERT_FILE names a file of certificates to trust, and the address is to be one that they name"
    elif isinstance(cause, ssl.SSLError):
        why, way_out = f"TLS: {cause.reason}", "where it has no TLS its address begins with http://"
    else:
        told = str(error) if isinstance(error, httpx.ProxyError) else getattr(cause, "strerror", None)
        why = f"{type(error).__name__}{f': {told}' if told else ''}"
        way_out = "is it running? `forecurve up` starts one here, `--url` or FORECURVE_URL names another"
    return ApiError(f"no answer from {url} ({why}); {way_out}", code="unreachable")


def _cause(error: BaseException) -> BaseException:
    """What it began with."""
    while (before := error.__cause__ or error.__context__) is not None:
        error = before
    return error


def checked_url(url: str) -> str:
    """The service's address without what a shell or a file left around it; ClientError when it is none."""
    found = str(url).strip().rstrip("/")
    if fault := url_fault(found):
        way_out = "it must be http:// or https:// and a host, such as http://127.0.0.1:8400"
        raise ClientError(f"url is {url!r}: {fault}; {way_out} (argument url, --url or FORECURVE_URL)")
    if found.endswith("/v1"):  # calls begin so, and would then do it twice
        told = "the service's address ends before its /v1; leave that out"
        raise ClientError(f"url is {url!r}: {told} (argument url, --url or FORECURVE_URL)")
    return found


def url_fault(url: str) -> str | None:
    """Why it is no address of a service; None when it is one."""
    try:
        parts = urlsplit(url)
        httpx.URL(url)
        _ = parts.port  # is read only when asked for
    except (ValueError, httpx.InvalidURL) as error:
        return str(error)
    if parts.scheme not in ("http", "https"):
        return "it does not begin with http:// or https://"
    return None if parts.hostname else "it names no host"


def checked_token(token: str | None) -> str | None:
    """The token without white space around it; ClientError, which never shows it, when no header can carry it."""
    found = (token or "").strip()
    wrong = next((at for at, char in enumerate(found) if not "!" <= char <= "~"), None)
    if wrong is None:
        return found or None
    raise ClientError(
        f"token has {found[wrong]!r} as character {wrong + 1} of {len(found)}: it must be printable ASCII without "
        "spaces; copy it again from the page it was minted on (argument token, --token or FORECURVE_TOKEN)"
    )


def is_loopback(url: str) -> bool:
    """True when the URL's host is this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """True when the name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def problem(response: httpx.Response) -> ApiError:
    """The error that an answer of 400 or above stands for."""
    try:
        body = response.json()
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    detail = body.get("detail")
    text = detail if isinstance(detail, str) else f"HTTP {response.status_code} from {response.request.url}"
    return ApiError(
        text,
        status=response.status_code,
        code=str(body.get("code", f"http-{response.status_code}")),
        errors=_faults(body),
        request_id=body.get("request_id"),
        body=body,
        retry_after_s=retry_after(response),
    )


def retry_after(response: httpx.Response) -> float | None:
    """Seconds of a Retry-After header, given as seconds or as a date."""
    header = response.headers.get("retry-after")
    if header is None:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError, OverflowError):  # no date, or one without a zone or with a boundless one
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _faults(body: dict[str, Any]) -> list[dict[str, Any]]:
    errors = body.get("errors")
    return [fault for fault in errors if isinstance(fault, dict)] if isinstance(errors, list) else []
