"""A delivery knows when it was tried last, by which one tells that a clock has been set back since.

Revision: 0013
Follows: 0012
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("tried_at", sa.DateTime(timezone=True)))


def downgrade() -> None:
    op.drop_column("deliveries", "tried_at")
