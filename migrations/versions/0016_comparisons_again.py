"""A comparison that failed unexpectedly is tried again a few times.

Revision: 0016
Follows: 0015
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("comparisons", sa.Column("tries", sa.Integer(), server_default="0", nullable=False))
    op.add_column("comparisons", sa.Column("again_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("comparisons", "again_at")
    op.drop_column("comparisons", "tries")
