"""What the access room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from forecurve.recipes import Name
from server.bodies import Body

Scope = Literal["read", "operate", "admin"]


def _some(scopes: list[Scope]) -> list[Scope]:
    if not scopes:
        raise ValueError("choose at least one of read, operate and admin; without any the token opens nothing")
    return scopes


Kind = Literal["api", "session", "login", "ingest"]
Scopes = Annotated[list[Scope], AfterValidator(_some), Field(json_schema_extra={"minItems": 1})]


class TokenCreate(Body):
    """A token for the API. `operate` may also read, `admin` may do everything but report for a run."""

    name: Annotated[Name, Field(max_length=100)]
    scopes: Scopes
    expires_in_s: int | None = Field(
        None, ge=1, le=10 * 366 * 86400, strict=True, description="It never expires by default."
    )


class TokenRead(BaseModel):
    """A token without its secret, of which only the hash is kept."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    kind: Kind
    name: str
    prefix: str = Field(description="The first characters of the secret.")
    scopes: list[str]
    run_id: str | None
    attempt: int | None
    parent_id: str | None = Field(description="Of a browser session: the API token that opened it, with which it ends.")
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


class TokenCreated(TokenRead):
    """A new token; the secret is shown this once."""

    secret: str


class Me(BaseModel):
    """The token in use."""

    id: str
    name: str
    kind: Literal["api", "session", "ingest"]
    scopes: list[str]
    allowed: list[str] = Field(description="All that the scopes allow.")
    run_id: str | None
    attempt: int | None
