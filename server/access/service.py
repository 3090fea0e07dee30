"""Tokens: minting, checking, revoking. Only the hash of a secret is ever stored."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from server.errors import Unauthenticated

from .models import Token

SCOPES = ("read", "operate", "ingest", "admin")
IMPLIED = {"admin": {"read", "operate", "admin"}, "operate": {"read", "operate"}, "read": {"read"}, "ingest": {"ingest"}}
"""A scope to all that it allows. Ingest is apart: a trainer's token is good for its own run only."""


@dataclass(frozen=True)
class Identity:
    """Who is calling: the token, what it allows, and for an ingest token the one attempt it is good for."""

    token_id: str
    name: str
    kind: str
    scopes: frozenset[str]
    run_id: str | None = None
    attempt: int | None = None

    @property
    def allowed(self) -> set[str]:
        return set().union(*(IMPLIED[scope] for scope in self.scopes))


def mint(
    session: Session,
    *,
    kind: str,
    name: str,
    scopes: Iterable[str],
    now: datetime,
    lifetime: timedelta | None = None,
    run_id: str | None = None,
    attempt: int | None = None,
) -> tuple[Token, str]:
    """Create a token; the secret is returned here and never again."""
    secret = f"fc_{kind}_{secrets.token_urlsafe(32)}"
    token = Token(
        kind=kind,
        name=name,
        prefix=secret[: len(kind) + 9],
        hash=digest(secret),
        scopes=sorted(scopes),
        run_id=run_id,
        attempt=attempt,
        expires_at=now + lifetime if lifetime else None,
    )
    session.add(token)
    session.flush()
    return token, secret


def authenticate(session: Session, secret: str, now: datetime) -> Identity:
    """The identity behind a secret; Unauthenticated when it is unknown, expired or revoked."""
    token = session.scalar(select(Token).where(Token.hash == digest(secret)))
    if token is None or token.kind == "login":
        raise Unauthenticated("The token is not known here. `forecurve status` prints a login link; an administrator can mint a token.")
    if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        raise Unauthenticated(f"The token `{token.name}` ({token.prefix}...) has expired or was revoked; ask for a new one.")
    return Identity(token.id, token.name, token.kind, frozenset(token.scopes), token.run_id, token.attempt)


def redeem_login_code(session: Session, code: str, now: datetime, lifetime: timedelta) -> str:
    """Turn a one-time login code into the secret of a browser session. A code is good once."""
    used = update(Token).where(Token.hash == digest(code), Token.kind == "login", Token.revoked_at.is_(None), Token.expires_at > now)
    row = session.execute(used.values(revoked_at=now, last_used_at=now).returning(Token.name, Token.scopes)).first()
    if row is None:
        raise Unauthenticated("This login link was used already or has expired. `forecurve status` prints a fresh one.")
    _, secret = mint(session, kind="session", name=row.name, scopes=row.scopes, now=now, lifetime=lifetime)
    return secret


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
