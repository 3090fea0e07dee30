"""Scripts ask the service that `init` reports to."""

from __future__ import annotations

import os

from .api import Api
from .errors import ClientError
from .patience import PATIENCE_S

DEFAULT_URL = "http://127.0.0.1:8400"


def connect(url: str | None = None, token: str | None = None, *, timeout_s: float = 30.0) -> Api:
    """The service, to submit runs and sweeps to, to look at them, and to decide. Nothing is asked of it yet.

    Args:
        url, token: the service; else FORECURVE_URL, by default http://127.0.0.1:8400, and FORECURVE_TOKEN. What a
            token may do are its scopes; to submit needs `operate`.
        timeout_s: for one answer. A service that says to ask again later is asked again, for up to 30 s in all.

    Raises:
        ClientError: there is no token, or `url` or `token` cannot be one.
    """
    token = token or os.environ.get("FORECURVE_TOKEN")
    if not token:
        way_out = "give token= or set FORECURVE_TOKEN; `forecurve up` shows one, an admin mints others by "
        raise ClientError(f"token: there is none; {way_out}`forecurve token create`")
    return Api(url or os.environ.get("FORECURVE_URL") or DEFAULT_URL, token, timeout_s=timeout_s, patience_s=PATIENCE_S)
