"""An index of the few events of a run that its page lists: most are evaluations and forecasts, which the chart shows.

Revision: 0023
Follows: 0022
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    told = sa.text("kind NOT IN ('evaluation', 'forecast')")
    op.create_index("ix_events_off_the_chart", "events", ["run_id", "id"], postgresql_where=told)


def downgrade() -> None:
    op.drop_index("ix_events_off_the_chart", table_name="events")
