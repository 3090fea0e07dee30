"""Indexes for what is asked at every tick, refit or page; and one less, which no query used.

Revision: 0006
Follows: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_outbox_published", "outbox", ["published_at"], postgresql_where=sa.text("published_at IS NOT NULL")
    )
    op.create_index(
        "ix_deliveries_pending", "deliveries", ["not_before"], postgresql_where=sa.text("status = 'pending'")
    )
    op.create_index(op.f("ix_attempts_created_at"), "attempts", ["created_at"])
    op.create_index("ix_recommendations_run_id_id", "recommendations", ["run_id", "id"])
    op.create_index("ix_alerts_run_id_id", "alerts", ["run_id", "id"])
    op.create_index(op.f("ix_tokens_run_id"), "tokens", ["run_id"])
    op.create_index(op.f("ix_runs_recipe_id"), "runs", ["recipe_id"])
    # hash: a task is an object of any length, and only asked for as a whole
    op.create_index("ix_recipes_task", "recipes", [sa.text("(body['task'])")], postgresql_using="hash")
    op.drop_index("ix_evaluations_run_id_compute", table_name="evaluations")


def downgrade() -> None:
    op.create_index("ix_evaluations_run_id_compute", "evaluations", ["run_id", "compute"])
    op.drop_index("ix_recipes_task", table_name="recipes")
    op.drop_index(op.f("ix_runs_recipe_id"), table_name="runs")
    op.drop_index(op.f("ix_tokens_run_id"), table_name="tokens")
    op.drop_index("ix_alerts_run_id_id", table_name="alerts")
    op.drop_index("ix_recommendations_run_id_id", table_name="recommendations")
    op.drop_index(op.f("ix_attempts_created_at"), table_name="attempts")
    op.drop_index("ix_deliveries_pending", table_name="deliveries")
    op.drop_index("ix_outbox_published", table_name="outbox")
