"""Attempts are looked after from when they ended, so that is what their index is of.

Revision: 0018
Follows: 0017
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index(op.f("ix_attempts_created_at"), table_name="attempts")
    op.create_index("ix_attempts_last_at", "attempts", [sa.text("(coalesce(ended_at, created_at))")])


def downgrade() -> None:
    op.drop_index("ix_attempts_last_at", table_name="attempts")
    op.create_index(op.f("ix_attempts_created_at"), "attempts", ["created_at"])
