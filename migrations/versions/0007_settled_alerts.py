"""Where a run stood when an alert of it was resolved.

Revision: 0007
Follows: 0006
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("alerts", sa.Column("resolved_compute", sa.Float(), nullable=True))


def downgrade() -> None:
    op.drop_column("alerts", "resolved_compute")
