"""Which service a command talks to: flags, then FORECURVE_URL and FORECURVE_TOKEN, then a local `forecurve up`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CliError

if TYPE_CHECKING:
    from forecurve.client.api import Api


def connect(url: str | None, token: str | None, data_dir: Path) -> Api:
    """An API client; CliError says how to name a service when none is known."""
    from forecurve.client.api import Api
    from forecurve.client.patience import PATIENCE_S

    return Api(*service(url, token, data_dir), patience_s=PATIENCE_S)


def service(url: str | None, token: str | None, data_dir: Path) -> tuple[str, str]:
    """URL and token of the service to talk to. The local admin token is sent to the local service only."""
    known_url, known_token = local_service(data_dir)
    chosen = url or known_url
    if not chosen:
        way_out = "start one with `forecurve up`, or name one with --url (or FORECURVE_URL)"
        raise CliError(f"no service is running on {data_dir.expanduser().resolve()}; {way_out}")
    secret = token or (known_token if chosen.rstrip("/") == known_url else None)
    if not secret:
        way_out = "give --token (or FORECURVE_TOKEN); an admin mints one by `forecurve token create`"
        raise CliError(f"no token for {chosen}; {way_out}")
    return chosen, secret


def local_service(data_dir: Path) -> tuple[str | None, str | None]:
    """URL and admin token of the service on this data directory; the URL is None while it is not running.

    A service that was killed leaves its state behind, and another program may listen at its address by now.
    """
    from ..supervisor.identity import same_process

    state, secrets = _read(data_dir / "state.json"), _read(data_dir / "secrets.json")
    return state.get("url") if same_process(state) else None, secrets.get("admin_token")


def _read(path: Path) -> dict[str, Any]:
    from ..supervisor.files import read_json

    return read_json(path.expanduser())
