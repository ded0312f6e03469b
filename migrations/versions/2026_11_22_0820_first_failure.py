"""The first failure of a job, the last log lines of attempts, and which failures the history does not have yet."""

from collections.abc import Sequence

from alembic import op

revision: str = "0007"
down_revision: str | None = "0006"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "the first failures of jobs"

# Each has no value or a constant one, so that adding it rewrites no table. Failures from before have a history already,
# or none.
COLUMNS = (
    ("jobs", "first_failure", "JSONB"),
    ("attempts", "last_lines", "JSONB"),
    ("replicas", "last_lines", "JSONB"),
    ("replicas", "unreported", "BOOLEAN DEFAULT false NOT NULL"),
)


def upgrade() -> None:
    for table, column, definition in COLUMNS:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {column} {definition}")


def downgrade() -> None:
    for table, column, _ in reversed(COLUMNS):
        op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
