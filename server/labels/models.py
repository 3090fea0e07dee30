"""The columns of whatever carries labels."""

from __future__ import annotations

from sqlalchemy import String
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column


class Labels:
    """Mixed into a table: tags in the order in which they were given, each once; and a note."""

    tags: Mapped[list[str]] = mapped_column(ARRAY(String), default=list, server_default="{}")
    note: Mapped[str | None]
