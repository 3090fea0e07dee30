"""`Idempotency-Key`: the same POST sent again gives the first answer again and changes nothing.

The key is claimed by an insert in the request's own transaction, and the answer is written beside it before that
transaction commits: work and answer are stored together or not at all. A duplicate that arrives meanwhile waits at
the unique index for the first to commit, and then finds its answer. Errors roll back, so they are not remembered.

An answer may hold a secret that is shown once, so it is stored encrypted with a key that only the caller can give:
it is derived from the caller's own token, of which the database has but the hash.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from cryptography.fernet import Fernet
from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from server.errors import Conflict, Invalid

from .models import IdempotencyKey

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
LONGEST = 200


@dataclass
class Claim:
    """A key that came with a request. `session`, `token_id` and `cipher` are known once the caller is."""

    key: str
    request_hash: str
    session: Session | None = None
    token_id: str = ""
    cipher: Fernet | None = None


class Replay(Exception):
    """The request was answered before; this is that answer."""

    def __init__(self, status: int, body: bytes):
        self.response = Response(body, status, headers={REPLAYED: "true"}, media_type="application/json")


class IdempotentRoute(APIRoute):
    """A route whose POSTs honour `Idempotency-Key`. Routers take it as their `route_class`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            key = request.headers.get(HEADER)
            if request.method != "POST" or key is None:
                return await handle(request)
            claim = Claim(_checked(key), _hash(request, await request.body()))
            request.state.idempotency = claim
            try:
                response = await handle(request)
            except Replay as replay:
                return replay.response
            await run_in_threadpool(_remember, claim, response)  # before the request's transaction commits
            return response

        return handler


def claim_key(request: Request, session: Session, token_id: str, secret: str) -> None:
    """Claim the request's key for the caller, or raise Replay with the first answer. Does nothing without a key.

    Raises:
        Conflict: the key was used for another request.
    """
    claim: Claim | None = getattr(request.state, "idempotency", None)
    if claim is None:
        return
    claim.session, claim.token_id, claim.cipher = session, token_id, _cipher(secret)
    values = {"token_id": token_id, "key": claim.key, "request_hash": claim.request_hash, "status": 0, "body": b""}
    fresh = insert(IdempotencyKey).values(**values).on_conflict_do_nothing().returning(IdempotencyKey.key)
    if session.scalar(fresh) is not None:
        return
    same = IdempotencyKey.token_id == token_id, IdempotencyKey.key == claim.key
    stored = session.scalars(select(IdempotencyKey).where(*same)).one()
    if stored.request_hash != claim.request_hash:
        message = "was used for another request; use a new key for new work"
        raise Conflict.field(HEADER, claim.key, message)
    raise Replay(stored.status, claim.cipher.decrypt(stored.body))


def _remember(claim: Claim, response: Response) -> None:
    if claim.session is None or claim.cipher is None:  # the endpoint does not ask who is calling
        return
    same = IdempotencyKey.token_id == claim.token_id, IdempotencyKey.key == claim.key
    answer = {"status": response.status_code, "body": claim.cipher.encrypt(bytes(response.body))}
    claim.session.execute(update(IdempotencyKey).where(*same).values(**answer))


def _checked(key: str) -> str:
    if not 1 <= len(key) <= LONGEST or not (key.isascii() and key.isprintable()):
        raise Invalid.field(HEADER, key, f"must have 1 to {LONGEST} printable ASCII characters, e.g. a UUID")
    return key


def _hash(request: Request, body: bytes) -> str:
    line = f"{request.method} {request.url.path}?{request.url.query}\n".encode()
    return hashlib.sha256(line + body).hexdigest()


def _cipher(secret: str) -> Fernet:
    key = hashlib.sha256(b"forecurve idempotency\n" + secret.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(key))
