"""A run is not paused: it is stopped, and a fork goes on from its checkpoint.

Revision: 0008
Follows: 0007
"""

from __future__ import annotations

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BEFORE = {
    "desired_state": ("run", "pause", "stop", "cancel"),
    "status": (
        "queued", "launching", "running", "suspect", "stopping", "pausing", "paused", "preempted", "lost", "stopped",
        "succeeded", "failed",
    ),
}  # fmt: skip
GONE = {"pause", "pausing", "paused"}


def upgrade() -> None:
    for column, values in BEFORE.items():
        _allow(column, [value for value in values if value not in GONE])


def downgrade() -> None:
    for column, values in BEFORE.items():
        _allow(column, values)


def _allow(column: str, values: tuple[str, ...] | list[str]) -> None:
    name = op.f(f"ck_runs_{column}")
    op.drop_constraint(name, "runs", type_="check")
    op.create_check_constraint(name, "runs", f"{column} IN ({', '.join(repr(value) for value in values)})")
