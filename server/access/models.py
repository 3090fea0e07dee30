"""Tables of access: tokens (only their hash is kept) and idempotency keys."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, LargeBinary, func
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column
from sqlalchemy.types import Text

from server.database import Base, new_id


class Token(Base):
    """A bearer token, a browser session or a one-time login code; `hash` is the sha256 of the secret."""

    __tablename__ = "tokens"
    __table_args__ = (CheckConstraint("kind IN ('api', 'session', 'login', 'ingest')", name="kind"),)

    id: Mapped[str] = mapped_column(primary_key=True, default=lambda: new_id("tok"))
    kind: Mapped[str]
    name: Mapped[str]
    prefix: Mapped[str]  # first characters of the secret, for people to tell tokens apart
    hash: Mapped[str] = mapped_column(unique=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(Text))  # read, operate, ingest, admin
    run_id: Mapped[str | None] = mapped_column(
        ForeignKey("runs.id"), index=True
    )  # an ingest token is good for one attempt of one run
    attempt: Mapped[int | None]
    parent_id: Mapped[str | None] = mapped_column(
        ForeignKey("tokens.id"), index=True
    )  # of a session: the API token that opened it, with which it ends
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class IdempotencyKey(Base):
    """The answer to a POST that carried `Idempotency-Key`, to be given again."""

    __tablename__ = "idempotency_keys"

    token_id: Mapped[str] = mapped_column(ForeignKey("tokens.id"), primary_key=True)
    key: Mapped[str] = mapped_column(primary_key=True)
    request_hash: Mapped[str]
    status: Mapped[int]
    body: Mapped[bytes] = mapped_column(LargeBinary)
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
