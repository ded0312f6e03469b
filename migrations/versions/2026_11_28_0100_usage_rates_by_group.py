"""An index of what jobs use now by their group, so that a page of usage reads no rates of other teams."""

from collections.abc import Sequence

from app.db.postgres.concurrent_indexes import create_index, drop_index

revision: str = "0035"
down_revision: str | None = "0034"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no"


def upgrade() -> None:
    create_index("usage_rates_by_group", "ON usage_rates (group_id)")


def downgrade() -> None:
    drop_index("usage_rates_by_group")
