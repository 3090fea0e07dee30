"""A delivery may be a test of its channel, and then it is of no alert.

Revision: 0012
Follows: 0011
"""

from __future__ import annotations

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("deliveries", "alert_id", nullable=True)


def downgrade() -> None:
    op.execute("DELETE FROM deliveries WHERE alert_id IS NULL")
    op.alter_column("deliveries", "alert_id", nullable=False)
