"""Runs that MLflow's clients report: experiments, parameters, tags; and how long such a run may be silent.

Revision: 0026
Follows: 0025
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempts", sa.Column("patience_s", sa.Float()))
    now = sa.text("now()")
    op.create_table(
        "mlflow_experiments",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("artifact_location", sa.String()),
        sa.Column("tags", JSONB(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.PrimaryKeyConstraint("id", name="pk_mlflow_experiments"),
        sa.UniqueConstraint("name", name="uq_mlflow_experiments_name"),
    )
    op.create_table(
        "mlflow_runs",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("experiment_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("user", sa.String()),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("params", JSONB(), nullable=False),
        sa.Column("tags", JSONB(), nullable=False),
        sa.Column("rule", JSONB()),
        sa.Column("left_out", JSONB(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name="fk_mlflow_runs_run_id_runs"),
        sa.ForeignKeyConstraint(
            ["experiment_id"], ["mlflow_experiments.id"], name="fk_mlflow_runs_experiment_id_mlflow_experiments"
        ),
        sa.PrimaryKeyConstraint("run_id", name="pk_mlflow_runs"),
    )
    op.create_index("ix_mlflow_runs_experiment_id", "mlflow_runs", ["experiment_id"])


def downgrade() -> None:
    op.drop_table("mlflow_runs")
    op.drop_table("mlflow_experiments")
    op.drop_column("attempts", "patience_s")
