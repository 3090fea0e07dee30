"""Attempts that are not held against their run, and why a run is to stop.

Revision: 0008
Follows: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("excused_attempts", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("desired_reason", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "desired_reason")
    op.drop_column("runs", "excused_attempts")
