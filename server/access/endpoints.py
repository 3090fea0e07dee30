"""HTTP door of the access room."""

from __future__ import annotations

from datetime import timedelta

from fastapi import APIRouter

from server.dependencies import Admin, Caller, DbSession, Now
from server.pagination import Cursor, Limit, Page
from server.problems import problems

from . import service
from .idempotency import IdempotentRoute
from .schemas import Kind, Me, TokenCreate, TokenCreated, TokenRead

router = APIRouter(tags=["access"], route_class=IdempotentRoute)


@router.get("/me")
def read_me(identity: Caller) -> Me:
    """The token in use, whatever its scopes."""
    return Me(
        id=identity.token_id,
        name=identity.name,
        kind=identity.kind,
        scopes=sorted(identity.scopes),
        allowed=sorted(identity.allowed),
        run_id=identity.run_id,
        attempt=identity.attempt,
    )


@router.post("/tokens", status_code=201)
def create_token(body: TokenCreate, session: DbSession, identity: Admin, now: Now) -> TokenCreated:
    """Mint a token. Its secret is in this answer and nowhere else."""
    lifetime = timedelta(seconds=body.expires_in_s) if body.expires_in_s else None
    token, secret = service.create_token(
        session, name=body.name, scopes=body.scopes, lifetime=lifetime, actor=identity.token_id, now=now
    )
    return TokenCreated(**TokenRead.model_validate(token).model_dump(), secret=secret)


@router.get("/tokens")
def list_tokens(
    session: DbSession, _: Admin, kind: Kind | None = None, cursor: Cursor = None, limit: Limit = 50
) -> Page[TokenRead]:
    """Tokens, newest first: every one of the API there was; those of browser sessions and runs, and login codes, until
    two days after their end."""
    rows, following = service.list_tokens(session, kind=kind, cursor=cursor, limit=limit)
    return Page(items=[TokenRead.model_validate(row) for row in rows], next_cursor=following)


@router.delete("/tokens/{token_id:id}", responses=problems(404))
def revoke_token(token_id: str, session: DbSession, identity: Admin, now: Now) -> TokenRead:
    """Revoke a token at once. A second time changes nothing."""
    return TokenRead.model_validate(service.revoke(session, token_id, actor=identity.token_id, now=now))
