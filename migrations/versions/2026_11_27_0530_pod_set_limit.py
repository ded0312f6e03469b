"""A column for the number of pod sets that the Kueue of the cluster accepts in a Workload.

A process of the version before neither reads nor writes it.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0033"
down_revision: str | None = "0032"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no"


def upgrade() -> None:
    op.execute("ALTER TABLE kueue ADD COLUMN IF NOT EXISTS most_pod_sets BIGINT")


def downgrade() -> None:
    op.execute("ALTER TABLE kueue DROP COLUMN IF EXISTS most_pod_sets")
