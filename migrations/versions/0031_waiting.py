"""Since when a run has evaluations that no forecast has seen; when a delivery was given up.

Revision: 0031
Follows: 0030
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("dirty_since", sa.DateTime(timezone=True)))
    op.execute("UPDATE runs SET dirty_since = dirty_at WHERE dirty_at IS NOT NULL")
    op.add_column("deliveries", sa.Column("given_up_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("deliveries", "given_up_at")
    op.drop_column("runs", "dirty_since")
