"""An index of the groups of usage by all that jobs of a group have in common, in place of namespace and user.

A tenant may have thousands of groups of one user, and each end of an attempt finds one of them.
"""

from collections.abc import Sequence

from app.db.postgres.concurrent_indexes import create_index, drop_index

revision: str = "0030"
down_revision: str | None = "0029"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no"


def upgrade() -> None:
    create_index(
        "usage_groups_alike",
        "ON usage_groups (namespace, user_id, queue, kind, jsonb_hash_extended(labels, 0))",
    )
    drop_index("usage_groups_by_namespace")


def downgrade() -> None:
    create_index("usage_groups_by_namespace", "ON usage_groups (namespace, user_id)")
    drop_index("usage_groups_alike")
