"""The Ray cluster that somebody else runs: `forecurve up` with RAY_ADDRESS."""

from __future__ import annotations

import os

from forecurve.client.http import is_loopback

from .options import UpOptions, not_allowed


def given_cluster(options: UpOptions) -> dict[str, str]:
    """What the service needs to know of the cluster whose Jobs API RAY_ADDRESS names; nothing where it names none.

    Raises:
        CannotStart: it is no URL, it would let anybody in, or its trainers could not report to this service.
    """
    address = os.environ.get("RAY_ADDRESS")
    if not address:
        return {}
    if not address.startswith(("http://", "https://")):
        raise not_allowed(
            f"RAY_ADDRESS is {address}; it must be the URL of a Jobs API such as "
            "http://ray-head:8265; without it a Ray is started here"
        )
    token = os.environ.get("FORECURVE_RAY_TOKEN") or os.environ.get("RAY_AUTH_TOKEN")
    if token is None and not is_loopback(address):
        way_out = "set RAY_AUTH_TOKEN to the cluster's, or lead its port here (ssh -L 8265:127.0.0.1:8265 ...)"
        raise not_allowed(f"RAY_ADDRESS is {address}, another machine, and there is no token for it; {way_out}")
    found = {"FORECURVE_RAY_URL": address, "FORECURVE_TRAINER_URL": _trainer_url(address, options)}
    return found | ({"FORECURVE_RAY_TOKEN": token} if token else {})


def _trainer_url(address: str, options: UpOptions) -> str:
    """Where that cluster reaches the API: as it was told, else at this machine's own address where both are here."""
    told = os.environ.get("FORECURVE_TRAINER_URL")
    if told:
        return told
    if is_loopback(address):
        return options.local_url
    if not is_loopback(options.public_url):
        return options.public_url
    way_out = (
        "set FORECURVE_TRAINER_URL to where that cluster reaches this service: a proxy before it, "
        "this machine's address with --host and --allow-remote, or a tunnel (ssh -R 8400:127.0.0.1:8400 ...)"
    )
    refusal = f"trainers on {address} cannot report to {options.public_url}, which is this machine's own"
    raise not_allowed(f"{refusal}; {way_out}")
