"""A fit that failed unexpectedly is tried again a few times.

Revision: 0014
Follows: 0013
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("refit_tries", sa.Integer(), server_default="0", nullable=False))
    op.add_column("runs", sa.Column("refit_at", sa.DateTime(timezone=True)))
    there_is = sa.text("refit_at IS NOT NULL")
    op.create_index("ix_runs_refit_at", "runs", ["refit_at"], postgresql_where=there_is)


def downgrade() -> None:
    op.drop_index("ix_runs_refit_at", table_name="runs")
    op.drop_column("runs", "refit_at")
    op.drop_column("runs", "refit_tries")
