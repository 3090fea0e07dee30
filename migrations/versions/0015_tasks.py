"""Runs without a recipe may name their task, by which they are comparable with one another.

Revision: 0015
Follows: 0014
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("task", sa.String()))
    op.create_index("ix_runs_task", "runs", ["task"], postgresql_where=sa.text("task IS NOT NULL"))


def downgrade() -> None:
    op.drop_index("ix_runs_task", table_name="runs")
    op.drop_column("runs", "task")
