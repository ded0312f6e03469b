"""The index of jobs whose records expire, without imported jobs, which have an index of their own.

Imported jobs ended long ago, so a search would read all of them before the first other job.
"""

from collections.abc import Sequence

from app.db.postgres.concurrent_indexes import create_index, drop_index

revision: str = "0028"
down_revision: str | None = "0027"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no"

NAME = "jobs_purgeable"
BEFORE = "ON jobs (namespace, finished_at) WHERE gone_at IS NOT NULL AND NOT pinned"


def upgrade() -> None:
    drop_index(NAME)
    create_index(NAME, f"{BEFORE} AND imported_at IS NULL")


def downgrade() -> None:
    drop_index(NAME)
    create_index(NAME, BEFORE)
