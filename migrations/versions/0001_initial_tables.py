"""Initial tables.

Revision: 0001
Follows: nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from server.database import TransactionId

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("min_level", sa.String(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind IN ('slack', 'webhook')", name=op.f("ck_channels_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_channels")),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("transaction", TransactionId(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("sweep_id", sa.String(), nullable=True),
        sa.Column("actor", sa.String(), nullable=False),
        sa.Column("from_state", sa.String(), nullable=True),
        sa.Column("to_state", sa.String(), nullable=True),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("evidence", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    op.create_index("ix_events_run_id_id", "events", ["run_id", "id"], unique=False)
    op.create_index("ix_events_run_id_transaction_id", "events", ["run_id", "transaction", "id"], unique=False)
    op.create_index("ix_events_sweep_id_transaction_id", "events", ["sweep_id", "transaction", "id"], unique=False)
    op.create_index("ix_events_transaction_id", "events", ["transaction", "id"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("task", sa.String(), nullable=False),
        sa.Column("args", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_due", "outbox", ["not_before"], unique=False, postgresql_where=sa.text("published_at IS NULL")
    )
    op.create_table(
        "recipes",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("body", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recipes")),
        sa.UniqueConstraint("digest", "name", name=op.f("uq_recipes_digest_name")),
    )
    op.create_table(
        "sweeps",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("base_recipe_id", sa.String(), nullable=False),
        sa.Column("design", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("plan_hash", sa.String(), nullable=False),
        sa.Column("policy", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("policy IN ('advise', 'auto')", name=op.f("ck_sweeps_policy")),
        sa.ForeignKeyConstraint(["base_recipe_id"], ["recipes.id"], name=op.f("fk_sweeps_base_recipe_id_recipes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweeps")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("sweep_id", sa.String(), nullable=True),
        sa.Column("recipe_id", sa.String(), nullable=True),
        sa.Column("arm", sa.String(), nullable=True),
        sa.Column("changes", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("is_control", sa.Boolean(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=True),
        sa.Column("executor", sa.String(), nullable=False),
        sa.Column("compute_unit", sa.String(), nullable=False),
        sa.Column("budget_compute", sa.Double(), nullable=True),
        sa.Column("desired_state", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("last_step", sa.Integer(), nullable=True),
        sa.Column("last_compute", sa.Double(), nullable=True),
        sa.Column("last_reward", sa.Double(), nullable=True),
        sa.Column("dirty_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fit_lease", sa.String(), nullable=True),
        sa.Column("fit_lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("forecast_id", sa.String(), nullable=True),
        sa.Column("frozen_forecast_id", sa.String(), nullable=True),
        sa.CheckConstraint("desired_state IN ('run', 'pause', 'stop', 'cancel')", name=op.f("ck_runs_desired_state")),
        sa.CheckConstraint("executor IN ('ray', 'external')", name=op.f("ck_runs_executor")),
        sa.CheckConstraint(
            "status IN ('queued', 'launching', 'running', 'suspect', 'stopping', 'pausing', 'paused', 'preempted', 'lost', 'stopped', 'succeeded', 'failed')",  # noqa: E501
            name=op.f("ck_runs_status"),
        ),
        sa.ForeignKeyConstraint(["recipe_id"], ["recipes.id"], name=op.f("fk_runs_recipe_id_recipes")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweeps.id"], name=op.f("fk_runs_sweep_id_sweeps")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_index(
        "ix_runs_active",
        "runs",
        ["status"],
        unique=False,
        postgresql_where=sa.text("status NOT IN ('stopped', 'succeeded', 'failed')"),
    )
    op.create_index(
        "ix_runs_dirty", "runs", ["dirty_at"], unique=False, postgresql_where=sa.text("dirty_at IS NOT NULL")
    )
    op.create_index(op.f("ix_runs_sweep_id"), "runs", ["sweep_id"], unique=False)
    op.create_table(
        "alerts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("title", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("since_compute", sa.Double(), nullable=True),
        sa.Column("at_compute", sa.Double(), nullable=True),
        sa.Column("evidence", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("acknowledged_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("level IN ('WARN', 'ALERT')", name=op.f("ck_alerts_level")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_alerts_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_alerts")),
    )
    op.create_index(
        "uq_alerts_open", "alerts", ["run_id", "kind"], unique=True, postgresql_where=sa.text("resolved_at IS NULL")
    )
    op.create_table(
        "attempts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("external_ref", sa.String(), nullable=True),
        sa.Column("observed", sa.String(), nullable=True),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unreachable_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("outcome_reason", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("log_tail", sa.String(), nullable=True),
        sa.Column("last_heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("progress", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("stop_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stop_forced_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_attempts_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("run_id", "number", name=op.f("uq_attempts_run_id_number")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("compute", sa.Double(), nullable=True),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_checkpoints_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_checkpoints")),
        sa.UniqueConstraint("run_id", "attempt", "step", name=op.f("uq_checkpoints_run_id_attempt_step")),
    )
    op.create_table(
        "evaluations",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("compute", sa.Double(), nullable=False),
        sa.Column("reward", sa.Double(), nullable=False),
        sa.Column("prompts", sa.Integer(), nullable=True),
        sa.Column("samples", sa.Integer(), nullable=True),
        sa.Column("counts", postgresql.ARRAY(sa.SmallInteger()), nullable=True),
        sa.Column("variance", sa.Double(), nullable=True),
        sa.Column("details", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluations_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "attempt", "step", name=op.f("pk_evaluations")),
    )
    op.create_index("ix_evaluations_run_id_compute", "evaluations", ["run_id", "compute"], unique=False)
    op.create_table(
        "forecasts",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("at_compute", sa.Double(), nullable=False),
        sa.Column("at_step", sa.Integer(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("summary", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("band", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("state", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_forecasts_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_forecasts")),
    )
    op.create_index("ix_forecasts_run_id_created_at", "forecasts", ["run_id", "created_at"], unique=False)
    op.create_table(
        "ingest_batches",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_ingest_batches_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "attempt", "seq", name=op.f("pk_ingest_batches")),
    )
    op.create_table(
        "metric_points",
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("step", sa.Integer(), nullable=False),
        sa.Column("compute", sa.Double(), nullable=True),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_metric_points_run_id_runs")),
        sa.PrimaryKeyConstraint("run_id", "metric", "attempt", "step", name=op.f("pk_metric_points")),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("prefix", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("scopes", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("run_id", sa.String(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("kind IN ('api', 'session', 'login', 'ingest')", name=op.f("ck_tokens_kind")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_tokens_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_table(
        "deliveries",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("alert_id", sa.String(), nullable=False),
        sa.Column("channel_id", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("lease", sa.String(), nullable=True),
        sa.Column("lease_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("response_text", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("status IN ('pending', 'delivered', 'failed')", name=op.f("ck_deliveries_status")),
        sa.ForeignKeyConstraint(["alert_id"], ["alerts.id"], name=op.f("fk_deliveries_alert_id_alerts")),
        sa.ForeignKeyConstraint(["channel_id"], ["channels.id"], name=op.f("fk_deliveries_channel_id_channels")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("alert_id", "channel_id", "level", name=op.f("uq_deliveries_alert_id_channel_id_level")),
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("request_hash", sa.String(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["token_id"], ["tokens.id"], name=op.f("fk_idempotency_keys_token_id_tokens")),
        sa.PrimaryKeyConstraint("token_id", "key", name=op.f("pk_idempotency_keys")),
    )
    op.create_table(
        "recommendations",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("forecast_id", sa.String(), nullable=False),
        sa.Column("action", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("numbers", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("decided_by", sa.String(), nullable=True),
        sa.Column("decided_reason", sa.String(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "action IN ('stop', 'continue', 'scale', 'undecided')", name=op.f("ck_recommendations_action")
        ),
        sa.CheckConstraint(
            "status IN ('open', 'accepted', 'dismissed', 'superseded')", name=op.f("ck_recommendations_status")
        ),
        sa.ForeignKeyConstraint(
            ["forecast_id"], ["forecasts.id"], name=op.f("fk_recommendations_forecast_id_forecasts")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_recommendations_run_id_runs")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recommendations")),
    )
    op.create_index(
        "uq_recommendations_open",
        "recommendations",
        ["run_id"],
        unique=True,
        postgresql_where=sa.text("status = 'open'"),
    )


def downgrade() -> None:
    op.drop_index("uq_recommendations_open", table_name="recommendations", postgresql_where=sa.text("status = 'open'"))
    op.drop_table("recommendations")
    op.drop_table("idempotency_keys")
    op.drop_table("deliveries")
    op.drop_table("tokens")
    op.drop_table("metric_points")
    op.drop_table("ingest_batches")
    op.drop_index("ix_forecasts_run_id_created_at", table_name="forecasts")
    op.drop_table("forecasts")
    op.drop_index("ix_evaluations_run_id_compute", table_name="evaluations")
    op.drop_table("evaluations")
    op.drop_table("checkpoints")
    op.drop_table("attempts")
    op.drop_index("uq_alerts_open", table_name="alerts", postgresql_where=sa.text("resolved_at IS NULL"))
    op.drop_table("alerts")
    op.drop_index(op.f("ix_runs_sweep_id"), table_name="runs")
    op.drop_index("ix_runs_dirty", table_name="runs", postgresql_where=sa.text("dirty_at IS NOT NULL"))
    op.drop_index(
        "ix_runs_active",
        table_name="runs",
        postgresql_where=sa.text("status NOT IN ('stopped', 'succeeded', 'failed')"),
    )
    op.drop_table("runs")
    op.drop_table("sweeps")
    op.drop_table("recipes")
    op.drop_index("ix_outbox_due", table_name="outbox", postgresql_where=sa.text("published_at IS NULL"))
    op.drop_table("outbox")
    op.drop_index("ix_events_transaction_id", table_name="events")
    op.drop_index("ix_events_sweep_id_transaction_id", table_name="events")
    op.drop_index("ix_events_run_id_id", table_name="events")
    op.drop_index("ix_events_run_id_transaction_id", table_name="events")
    op.drop_table("events")
    op.drop_table("channels")
