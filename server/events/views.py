"""Events as they are read: with the names by which people know who did it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.access.models import Token

from .models import Event
from .schemas import EventRead


def event_views(session: Session, events: Sequence[Event]) -> list[EventRead]:
    names = names_of_tokens(session, (event.actor for event in events))
    return [
        EventRead.model_validate(event).model_copy(update={"actor_name": names.get(event.actor)}) for event in events
    ]


def names_of_tokens(session: Session, actors: Iterable[str]) -> dict[str, str]:
    """Of those actors that are tokens: people know theirs by name. A token that was forgotten has none."""
    tokens = select(Token.id, Token.name).where(Token.id.in_(set(actors)))
    return {row.id: row.name for row in session.execute(tokens)}
