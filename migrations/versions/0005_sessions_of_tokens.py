"""Browser sessions know the API token that opened them.

Revision: 0005
Follows: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("tokens", sa.Column("parent_id", sa.String(), nullable=True))
    op.create_foreign_key(op.f("fk_tokens_parent_id_tokens"), "tokens", "tokens", ["parent_id"], ["id"])
    op.create_index(op.f("ix_tokens_parent_id"), "tokens", ["parent_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_tokens_parent_id"), table_name="tokens")
    op.drop_constraint(op.f("fk_tokens_parent_id_tokens"), "tokens", type_="foreignkey")
    op.drop_column("tokens", "parent_id")
