"""Sweeps whose runs share one budget of compute.

Revision: 0030
Follows: 0029
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_POLICY, _BUDGET = "ck_sweeps_policy", "ck_sweeps_budget_compute"


def upgrade() -> None:
    op.add_column("sweeps", sa.Column("budget_compute", sa.Float()))
    op.drop_constraint(op.f(_POLICY), "sweeps")
    op.create_check_constraint(op.f(_POLICY), "sweeps", "policy IN ('advise', 'auto', 'allocate')")
    op.create_check_constraint(op.f(_BUDGET), "sweeps", "(policy = 'allocate') = (budget_compute IS NOT NULL)")
    op.add_column("runs", sa.Column("allocated", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("runs", sa.Column("goes_to", sa.Float()))
    op.add_column("comparisons", sa.Column("allocation", JSONB()))


def downgrade() -> None:
    op.drop_column("comparisons", "allocation")
    op.drop_column("runs", "goes_to")
    op.drop_column("runs", "allocated")
    op.execute("UPDATE sweeps SET policy = 'advise', budget_compute = NULL WHERE policy = 'allocate'")
    op.drop_constraint(op.f(_BUDGET), "sweeps")
    op.drop_constraint(op.f(_POLICY), "sweeps")
    op.create_check_constraint(op.f(_POLICY), "sweeps", "policy IN ('advise', 'auto')")
    op.drop_column("sweeps", "budget_compute")
