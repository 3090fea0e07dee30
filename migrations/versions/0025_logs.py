"""What the jobs of attempts printed.

Revision: 0025
Follows: 0024
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "attempt_logs",
        sa.Column("attempt_id", sa.String(), nullable=False),
        sa.Column("first", sa.Integer(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("unfinished", sa.String(), nullable=False, server_default=""),
        sa.Column("whole", sa.Boolean(), nullable=False),
        sa.Column("read_at", sa.DateTime(timezone=True)),
        sa.Column("took_s", sa.Float(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name="fk_attempt_logs_attempt_id_attempts"),
        sa.PrimaryKeyConstraint("attempt_id", name="pk_attempt_logs"),
    )


def downgrade() -> None:
    op.drop_table("attempt_logs")
