"""The alert of a run that fell before its forecast was frozen is of kind `fell`: it may have fallen gradually.

Revision: 0020
Follows: 0019
"""

from __future__ import annotations

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE alerts SET kind = 'fell' WHERE kind = 'collapsed'")


def downgrade() -> None:
    op.execute("UPDATE alerts SET kind = 'collapsed' WHERE kind = 'fell'")
