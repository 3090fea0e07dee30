"""The variance of an evaluation is kept where counts tell it, and no more where it was the binomial bound.

Revision: 0017
Follows: 0016
"""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("UPDATE evaluations SET variance = NULL WHERE counts IS NULL OR samples < 2")


def downgrade() -> None:
    op.execute(
        "UPDATE evaluations SET variance = reward * (1 - reward) / (prompts * coalesce(samples, 1)) "
        "WHERE variance IS NULL AND prompts > 0"
    )
