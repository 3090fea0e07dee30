"""What every page needs: who looks, the session, the clock, and the frame around the content."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from server.access.service import Identity
from server.dependencies import DbSession, Now, Reader
from server.events.reply import BEAT_EVERY_S
from server.events.service import current_cursor

from . import reads


@dataclass(frozen=True)
class Page:
    """One request for a page by somebody who may read; `cursor` is where its event stream continues from."""

    request: Request
    session: Session
    identity: Identity
    now: datetime
    cursor: int

    def render(self, template: str, **context: Any) -> HTMLResponse:
        """The page, with the frame's own facts."""
        frame: dict[str, Any] = {
            "identity": self.identity,
            "now": self.now,
            "may_operate": "operate" in self.identity.allowed,
            "may_admin": "admin" in self.identity.allowed,
            "open_alerts": reads.unseen_alerts(self.session),
            "cursor": self.cursor,
            "beat_s": BEAT_EVERY_S,
        }
        return render(self.request, template, **frame, **context)


def render(request: Request, template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A template as an answer; pages are never kept by caches, they show live state."""
    environment = request.app.state.templates
    body = environment.get_template(template).render(request=request, here=here(request), **context)
    return HTMLResponse(body, status, headers={"Cache-Control": "no-store"})


def here(request: Request) -> str:
    """Path and query of the page, without the host."""
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _page(request: Request, session: DbSession, identity: Reader, now: Now) -> Page:
    # The cursor is read first: what commits while the page is read then comes in the stream.
    return Page(request, session, identity, now, cursor=current_cursor(session))


AnyPage = Annotated[Page, Depends(_page)]
