"""Forecasts say whether their ceiling is worth saying.

Revision: 0011
Follows: 0010
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # what was forecast so far rested on a run's own data: its ceiling is known where these identify it
    op.execute(
        """
        UPDATE forecasts SET summary = summary || jsonb_build_object(
            'prior', NULL, 'ceiling_known', coalesce((summary->'identified'->>'A')::float >= 0.75, false))
        """
    )


def downgrade() -> None:
    op.execute("UPDATE forecasts SET summary = summary - 'prior' - 'ceiling_known'")
