"""Why the newest evaluations of a run could not be fitted.

Revision: 0010
Follows: 0009
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("unfitted", sa.String(), nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "unfitted")
