"""`python -m server.access.bootstrap`: what the owner of the service gets to log in with, as one JSON object.

`{"admin_token": "fc_api_...", "login_url": "http://.../login?code=..."}`; `admin_token` is null unless this is the
first time, and the login link is good once, for a quarter of an hour. `forecurve up` runs it at its start; on
containers a person does, so that neither is kept in a log.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from urllib.parse import quote

from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session, sessionmaker

import server.models  # noqa: F401 - every table must be known before the first flush
from server.database import make_engine, make_sessions, transaction
from server.database_faults import in_words
from server.settings import Settings, get_settings

from .service import ensure_admin, mint_login_code


def bootstrap(sessions: sessionmaker[Session], settings: Settings, now: datetime) -> dict[str, str | None]:
    """The first administrator's token, once, and a fresh login link."""
    with transaction(sessions) as session:
        secret = ensure_admin(session, now)
        code = mint_login_code(session, now)
    return {"admin_token": secret, "login_url": f"{settings.public_url.rstrip('/')}/login?code={quote(code)}"}


def main() -> None:
    settings = get_settings()
    engine = make_engine(settings.database_url)
    try:
        print(json.dumps(bootstrap(make_sessions(engine), settings, datetime.now(UTC))))
    except DBAPIError as error:
        if told := in_words(error):
            raise SystemExit(told) from None
        raise
    finally:
        engine.dispose()


if __name__ == "__main__":
    main()
