"""`forecurve token`: create, list, revoke."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from ..asking.naming import Named
from ..asking.service import Answer, Service, asks_service
from ..given.flags import Limit

app = typer.Typer(no_args_is_help=True, help="Tokens of the API: create, list, revoke. Needs an admin's token.")


TokenId = Annotated[str, Named("token"), typer.Argument(metavar="TOKEN", help="Its id, or its name.")]


class Scope(StrEnum):
    """What a token may do; each may do what stands before it as well."""

    read = "read"
    operate = "operate"
    admin = "admin"


@app.command()
@asks_service
def create(
    service: Service,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who or what uses it.")],
    scope: Annotated[list[Scope], typer.Option("--scope", help="What it may do; may be repeated.")],
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="For how long it is good: 30d, 12h, 2w; else ever.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="The secret alone, and no word beside it.")] = False,
) -> Answer:
    """Mint a token. Its secret, shown this once, is all that goes to stdout.

    TOKEN=$(forecurve token create ci --scope operate --expires 30d)
    """
    from ..given.durations import seconds

    body = {"name": name, "scopes": [str(one) for one in scope], "expires_in_s": seconds("--expires", expires)}
    token = service.api.create_token(body)
    return Answer(token, lambda: _print_secret(token, quiet))


@app.command("list")
@asks_service
def list_tokens(
    service: Service,
    every: Annotated[
        bool, typer.Option("--all", help="Also those of browser sessions and of runs, and login codes.")
    ] = False,
    limit: Limit = 50,
) -> Answer:
    """List tokens of the API, newest first; no secret is in it."""
    from ..showing.output import newest, print_newest

    found = newest(service.api.tokens(kind=None if every else "api", limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, "No tokens. Try: forecurve token create NAME --scope operate")
    columns = ["token", "name", "kind", "scopes", "begins", "state", "last used", "made"]
    spare = ["made", "last used", "begins", "kind"]
    return Answer(found, lambda: print_newest(found, columns, _row, spare=spare))


@app.command()
@asks_service
def revoke(service: Service, token_id: TokenId) -> Answer:
    """Make a token useless at once, and the browser sessions that it opened. Never give its secret here."""
    token = service.api.revoke_token(token_id)
    return Answer(token, f"{token['id']}  {token['name']} is revoked")


def _print_secret(token: dict[str, Any], quiet: bool) -> None:
    print(token["secret"])
    if quiet:
        return
    told = f"{token['id']}  {token['name']}  {', '.join(token['scopes'])}; {_state(token)}"
    print(f"{told}. The secret is not shown again.", file=sys.stderr)


def _row(token: dict[str, Any]) -> list[str]:
    from ..showing.output import since

    return [
        token["id"],
        token["name"],
        token["kind"],
        ", ".join(token["scopes"]),
        token["prefix"],
        _state(token),
        since(token["last_used_at"]),
        since(token["created_at"]),
    ]


def _state(token: dict[str, Any]) -> str:
    """Whether it still opens anything, and for how long."""
    from ..given.durations import until

    return "revoked" if token["revoked_at"] else until(token["expires_at"])
