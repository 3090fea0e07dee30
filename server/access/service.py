"""Tokens: minting, checking, revoking. Only the hash of a secret is ever stored."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, or_, select, text, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from server.database import transaction
from server.errors import Forbidden, NotFound, Unauthenticated
from server.events.service import record
from server.pagination import newest_first

from .models import Token
from .tries import Unknown, let_in, limited

log = logging.getLogger(__name__)

IMPLIED = {
    "admin": {"read", "operate", "admin"},
    "operate": {"read", "operate"},
    "read": {"read"},
    "ingest": {"ingest"},
}
"""A scope to all that it allows. Ingest is apart: a trainer's token is good for its own run only."""

LOGIN_LIFETIME = timedelta(minutes=15)
SESSION_LIFETIME = timedelta(days=30)

_USED_EVERY = timedelta(minutes=1)
"""`last_used_at` is kept this exact, so that reading writes nothing most of the time."""

_USED = "used"
"""In a session's info: the token whose use is to be noted, and when it was."""

_FIRST_ADMIN_LOCK = 0x666F7263


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
    parent_id: str | None = None,
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
        parent_id=parent_id,
        created_at=now,
        expires_at=now + lifetime if lifetime else None,
    )
    session.add(token)
    session.flush()
    let_in(session, token.hash)
    return token, secret


def authenticate(session: Session, secret: str, now: datetime) -> Identity:
    """The identity behind a secret; Unauthenticated when it is unknown, expired or revoked, or not to be tried now."""
    token = _checked(session, select(Token).where(Token.hash == digest(secret)), secret, now)
    if _is_use_news(token, now):
        session.info[_USED] = token.id, now
    return _identity(token)


def note_use(sessions: sessionmaker[Session], over: Session) -> None:
    """Note that a token was used by the session of a request that is `over`.

    In a transaction of its own: a request would hold the token's row, and be a writer for whom readers of events wait,
    to its end. Another request that notes it just now, or revokes the token, is not waited for.
    """
    if _USED not in over.info:
        return
    token_id, now = over.info[_USED]
    free = select(Token.id).where(Token.id == token_id).with_for_update(key_share=True, skip_locked=True)
    try:
        with transaction(sessions) as session:
            session.execute(update(Token).where(Token.id.in_(free)).values(last_used_at=now))
    except SQLAlchemyError:  # the request itself is done, and is not to be said to have failed
        log.warning("the use of token %s could not be noted", token_id, exc_info=True)


def living(now: datetime) -> ColumnElement[bool]:
    """Of rows of tokens: neither revoked nor expired."""
    return and_(Token.revoked_at.is_(None), or_(Token.expires_at.is_(None), Token.expires_at > now))


def still_living(session: Session, token_ids: Iterable[str], now: datetime) -> set[str]:
    """Those of the tokens that are neither revoked nor expired."""
    return set(session.scalars(select(Token.id).where(Token.id.in_(token_ids), living(now))))


def open_session(session: Session, secret: str, now: datetime) -> tuple[str, timedelta]:
    """Exchange an API token for a browser session with the same scopes: its secret, and how long it lasts.

    It ends with the token at the latest. Forbidden for any other kind of token, so that no session prolongs itself.
    """
    # Locked as `revoke` locks it: a session is there for it to revoke too, or is refused.
    query = select(Token).where(Token.hash == digest(secret)).with_for_update(key_share=True)
    token = _checked(session, query, secret, now)
    if token.kind != "api":
        raise Forbidden(f"Pages open with a token of the API; `{token.name}` is of kind `{token.kind}`.")
    identity = _identity(token)
    if "read" not in identity.allowed:
        raise Forbidden(f"The token `{token.name}` may not read pages; ask for one with scope `read`.")
    if _is_use_news(token, now):
        token.last_used_at = now
    lifetime = min(SESSION_LIFETIME, token.expires_at - now) if token.expires_at else SESSION_LIFETIME
    _, opened = mint(
        session, kind="session", name=token.name, scopes=token.scopes, now=now, lifetime=lifetime, parent_id=token.id
    )
    return opened, lifetime


def redeem_login_code(session: Session, code: str, now: datetime) -> str:
    """Turn a one-time login code into the secret of a browser session. A code is good once."""
    used = update(Token).where(
        Token.hash == digest(code), Token.kind == "login", Token.revoked_at.is_(None), Token.expires_at > now
    )
    used = used.values(revoked_at=now, last_used_at=now)
    with limited(session, digest(code), now):
        row = session.execute(used.returning(Token.name, Token.scopes)).first()
        if row is None:
            raise Unknown("This login link was used already or has expired. `forecurve status` prints a fresh one.")
    _, secret = mint(session, kind="session", name=row.name, scopes=row.scopes, now=now, lifetime=SESSION_LIFETIME)
    return secret


def create_token(
    session: Session, *, name: str, scopes: Iterable[str], lifetime: timedelta | None, actor: str, now: datetime
) -> tuple[Token, str]:
    """A token for the API, with its event; the secret is returned here and never again."""
    token, secret = mint(session, kind="api", name=name, scopes=set(scopes), now=now, lifetime=lifetime)
    record(session, "token.created", actor=actor, token=token.id, name=name, scopes=token.scopes)
    return token, secret


def list_tokens(
    session: Session, *, kind: str | None, cursor: str | None, limit: int
) -> tuple[Sequence[Token], str | None]:
    """One page of tokens, of one kind or of every kind, newest first."""
    query = select(Token) if kind is None else select(Token).where(Token.kind == kind)
    return newest_first(session, query, Token.id, cursor, limit)


def revoke(session: Session, token_id: str, *, actor: str, now: datetime) -> Token:
    """Make a token useless from now on, and the browser sessions that it opened."""
    token = session.get(Token, token_id, with_for_update={"key_share": True})
    if token is None:
        raise NotFound.field("token_id", token_id, "no such token; `GET /v1/tokens` lists them")
    if token.revoked_at is None:
        token.revoked_at = now
        opened = update(Token).where(Token.parent_id == token.id, Token.revoked_at.is_(None))
        session.execute(opened.values(revoked_at=now))
        record(session, "token.revoked", actor=actor, token=token.id, name=token.name)
        session.flush()
    return token


def ensure_admin(session: Session, now: datetime) -> str | None:
    """Mint the first administrator's token; None when there is one that works."""
    session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _FIRST_ADMIN_LOCK})
    admins = select(Token.id).where(Token.kind == "api", Token.scopes.any_() == "admin", living(now))
    if session.scalar(admins.limit(1)) is not None:
        return None
    _, secret = create_token(session, name="admin", scopes=["admin"], lifetime=None, actor="bootstrap", now=now)
    return secret


def mint_login_code(session: Session, now: datetime) -> str:
    """A code for a login link: good once, for a quarter of an hour, to open a browser session of the admin."""
    _, secret = mint(session, kind="login", name="admin", scopes=("admin",), now=now, lifetime=LOGIN_LIFETIME)
    return secret


def _checked(session: Session, query: Select[Token], secret: str, now: datetime) -> Token:
    with limited(session, digest(secret), now):
        token = session.scalar(query)
        if token is None:
            way_out = "`forecurve status` prints a login link; an administrator can mint a token"
            raise Unknown(f"The token is not known here. {way_out}.")
    if token.kind == "login":  # no guess, and its link stays good
        raise Unauthenticated("This is the code of a login link and no token; open the link itself in a browser.")
    if token.revoked_at is not None or (token.expires_at is not None and token.expires_at <= now):
        raise Unauthenticated(
            f"The token `{token.name}` ({token.prefix}...) has expired or was revoked; ask for a new one."
        )
    return token


def _identity(token: Token) -> Identity:
    return Identity(token.id, token.name, token.kind, frozenset(token.scopes), token.run_id, token.attempt)


def _is_use_news(token: Token, now: datetime) -> bool:
    """An ingest token's use shows in its run's heartbeats."""
    return token.kind != "ingest" and (token.last_used_at is None or now - token.last_used_at > _USED_EVERY)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
