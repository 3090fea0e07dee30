"""Alerts say from which compute on the run is back within its forecast.

Revision: 0021
Follows: 0020
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("alerts", sa.Column("back_since", sa.Float()))


def downgrade() -> None:
    op.drop_column("alerts", "back_since")
