"""An outage of the database is told in one line each time. With a traceback of a hundred for every request, heartbeat
and tick, an hour of it would push all that came before out of the log."""

from __future__ import annotations

import logging

from sqlalchemy.exc import DBAPIError

from server.database_faults import first_line


def away(error: BaseException | None) -> str | None:
    """Why, in one line, where the connection is what failed; None for any other error."""
    if not isinstance(error, DBAPIError) or not (error.statement is None or error.connection_invalidated):
        return None
    return first_line(error)


class OutagesInOneLine(logging.Filter):
    """Of a handler: puts the reason in the place of the traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        why = away(record.exc_info[1]) if record.exc_info else None
        if why is not None:
            message = record.getMessage()
            record.msg, record.args = (message if why in message else f"{message} ({why})"), ()
            record.exc_info = record.exc_text = None
        return True
