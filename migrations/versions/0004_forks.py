"""Runs that begin at a checkpoint of another run.

Revision: 0004
Follows: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

WHOLE = "num_nonnulls(parent_run_id, parent_checkpoint_id, parent_step) IN (0, 3)"


def upgrade() -> None:
    op.add_column("runs", sa.Column("parent_run_id", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("parent_checkpoint_id", sa.String(), nullable=True))
    op.add_column("runs", sa.Column("parent_step", sa.Integer(), nullable=True))
    op.create_foreign_key(op.f("fk_runs_parent_run_id_runs"), "runs", "runs", ["parent_run_id"], ["id"])
    op.create_index(op.f("ix_runs_parent_run_id"), "runs", ["parent_run_id"])
    op.create_check_constraint(op.f("ck_runs_parent"), "runs", WHOLE)


def downgrade() -> None:
    op.drop_constraint(op.f("ck_runs_parent"), "runs", type_="check")
    op.drop_index(op.f("ix_runs_parent_run_id"), table_name="runs")
    op.drop_constraint(op.f("fk_runs_parent_run_id_runs"), "runs", type_="foreignkey")
    for column in ("parent_step", "parent_checkpoint_id", "parent_run_id"):
        op.drop_column("runs", column)
