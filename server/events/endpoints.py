"""HTTP door of the events room: what happened, and a stream of what happens."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request

from server.access.idempotency import IdempotentRoute
from server.dependencies import DbSession, Reader
from server.errors import Invalid
from server.filters import OfRun, OfSweep
from server.pagination import Limit
from server.problems import problems

from . import service
from .reply import StreamReply
from .schemas import EventsRead
from .stream import EventFeed
from .views import event_views

router = APIRouter(tags=["events"], route_class=IdempotentRoute)

NEWEST_CURSOR = 2**63 - 1

Since = Annotated[int | None, Query(ge=0, le=NEWEST_CURSOR, description="A cursor; what happened after it follows.")]


@router.get("/events", responses=problems(404))
def read_events(
    session: DbSession,
    _: Reader,
    run_id: OfRun,
    sweep_id: OfSweep,
    since: Since = 0,
    limit: Limit = 500,
) -> EventsRead:
    """Events after a cursor, oldest first. A page may be longer than `limit`: what happened at once stays together."""
    page = service.read_after(session, since or 0, run_id=run_id, sweep_id=sweep_id, limit=limit)
    return EventsRead(items=event_views(session, page.items), cursor=page.cursor)


@router.get(
    "/stream",
    response_class=StreamReply,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": "Server-sent events"}
    },
)
async def stream(
    request: Request,
    identity: Reader,
    since: Since = None,
    last_event_id: Annotated[str | None, Header(description="Sent by a browser that connects again.")] = None,
) -> StreamReply:
    """Changes as they happen: `event: change` with data `{kind, run_id, sweep_id, id}`.

    An `id:` stands at the last change of what happened at once; it is the cursor to resume from. Every 10 s comes an
    `event: beat` without an id: who hears nothing for longer has lost the connection. The stream ends when the token is
    revoked or expires.
    """
    if last_event_id is not None:
        since = _cursor(last_event_id)
    feed: EventFeed = request.app.state.feed
    return StreamReply(feed.changes(since, identity.token_id))


def _cursor(text: str) -> int:
    """Digits are counted before they are read: Python reads no number of thousands of them."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(NEWEST_CURSOR)) and int(text) <= NEWEST_CURSOR):
        raise Invalid.field("Last-Event-ID", text, "is no cursor of this stream; send the `id` of its last change")
    return int(text)
