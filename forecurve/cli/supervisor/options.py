"""What `forecurve up` was asked for, and whether that is allowed."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

from forecurve.client.http import is_loopback_host

from ..errors import BAD_INPUT, CliError
from .files import read_json
from .layout import Layout

_NOT_IN_PATHS = ('"', "$", "`", "\\", "\n", "\r")


class CannotStart(CliError):
    """The service cannot be started; the text says why and the way out."""


def not_allowed(text: str) -> CannotStart:
    """The options ask for something that is not allowed, or that another process has."""
    return CannotStart(text, exit_code=BAD_INPUT)


def unusable(layout: Layout, error: OSError) -> CannotStart:
    """The data directory cannot be made or written. A full disk is no fault of the name, so the same may do later."""
    told = f"--data-dir: {layout.data_dir} cannot be made or written ({error}); name a folder of your own"
    return CannotStart(told) if error.errno in (errno.ENOSPC, errno.EDQUOT) else not_allowed(told)


@dataclass(frozen=True)
class UpOptions:
    """The flags of `forecurve up`."""

    data_dir: Path = Path(".data")
    host: str = "127.0.0.1"
    port: int = 8400
    workers: int = 2
    allow_remote: bool = False
    with_ray: bool = True

    @property
    def is_local(self) -> bool:
        """True when only this machine can reach the API."""
        return is_loopback_host(self.host)

    @property
    def local_url(self) -> str:
        """Where this machine reaches the API, whatever it is bound to."""
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::", "localhost") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def public_url(self) -> str:
        """Where people reach the API."""
        return os.environ.get("FORECURVE_PUBLIC_URL", self.local_url).rstrip("/")


def check(options: UpOptions, layout: Layout) -> None:
    """Raise CannotStart when the secrets cannot be read, or when other machines would be let in without that being
    meant, or without a token."""
    _check_path(layout)
    _check_secrets(layout)
    if options.is_local:
        return
    refusal = f"--host {options.host} lets other machines in, over plain HTTP"
    if not options.allow_remote:
        raise not_allowed(f"{refusal}; say --allow-remote if you mean it (better: a TLS proxy in front of 127.0.0.1)")
    if "admin_token" not in read_json(layout.secrets) and not os.environ.get("FORECURVE_TOKEN"):
        first = "start it once without --host, so that its admin token is minted while only this machine can reach it"
        raise not_allowed(f"{refusal}, and no token exists yet in {layout.data_dir}; {first}")


def _check_path(layout: Layout) -> None:
    """PostgreSQL's own start command has the path between double quotes, for a shell."""
    found = " ".join(repr(sign) for sign in _NOT_IN_PATHS if sign in str(layout.postgres))
    if found and not os.environ.get("DATABASE_URL"):
        refusal = f"--data-dir: {layout.data_dir} has {found} in it"
        raise not_allowed(f"{refusal}, which PostgreSQL cannot start with; name another folder")


def _check_secrets(layout: Layout) -> None:
    """What cannot be read would be written anew, and the admin token in it is nowhere else."""
    try:
        whole = isinstance(json.loads(layout.secrets.read_text()), dict)
        why = "holds no JSON object"
    except FileNotFoundError:
        return
    except ValueError as error:
        whole, why = False, f"is no JSON ({error})"
    except OSError as error:
        whole, why = False, f"cannot be read ({error.strerror})"
    if not whole:
        way_out = "put it back from a backup, or remove it: then another is made, and `forecurve login` lets you in"
        raise not_allowed(f"{layout.secrets} {why}; {way_out}")
