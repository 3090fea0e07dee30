"""Runs without a recipe may name their task, by which they are comparable, and may come in when they are over.

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
    op.add_column("runs", sa.Column("import_digest", sa.String()))
    there_is = sa.text("import_digest IS NOT NULL")
    op.create_index("ix_runs_import_digest", "runs", ["import_digest"], unique=True, postgresql_where=there_is)


def downgrade() -> None:
    op.drop_index("ix_runs_import_digest", table_name="runs")
    op.drop_column("runs", "import_digest")
    op.drop_index("ix_runs_task", table_name="runs")
    op.drop_column("runs", "task")
