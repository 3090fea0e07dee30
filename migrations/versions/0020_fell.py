"""Alerts say which attempt they are about; that of a run that fell before its forecast was frozen is of kind `fell`.

Those that are there are of the newest attempt that was evaluated, as far as one can tell.

Revision: 0020
Follows: 0019
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_NEWEST = "(SELECT max(attempt) FROM evaluations WHERE evaluations.run_id = alerts.run_id)"


def upgrade() -> None:
    op.add_column("alerts", sa.Column("attempt", sa.Integer()))
    op.add_column("alerts", sa.Column("resolved_attempt", sa.Integer()))
    op.execute("UPDATE alerts SET kind = 'fell' WHERE kind = 'collapsed'")
    op.execute(f"UPDATE alerts SET attempt = {_NEWEST} WHERE kind IN ('below_forecast', 'fell')")
    op.execute(f"UPDATE alerts SET resolved_attempt = {_NEWEST} WHERE resolved_compute IS NOT NULL")


def downgrade() -> None:
    op.execute("UPDATE alerts SET kind = 'collapsed' WHERE kind = 'fell'")
    op.drop_column("alerts", "resolved_attempt")
    op.drop_column("alerts", "attempt")
