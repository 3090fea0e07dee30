"""Tags and notes of runs and sweeps.

Revision: 0027
Follows: 0026
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("runs", "sweeps"):
        op.add_column(table, sa.Column("tags", ARRAY(sa.String()), nullable=False, server_default="{}"))
        op.add_column(table, sa.Column("note", sa.String()))
    some = sa.text("tags <> '{}'")
    op.create_index("ix_runs_tags", "runs", ["tags"], postgresql_using="gin", postgresql_where=some)


def downgrade() -> None:
    op.drop_index("ix_runs_tags", table_name="runs")
    for table in ("sweeps", "runs"):
        op.drop_column(table, "note")
        op.drop_column(table, "tags")
