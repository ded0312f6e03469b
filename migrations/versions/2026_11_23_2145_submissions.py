"""The manifests of jobs and samples as they were posted, and the trace context of samples."""

from collections.abc import Sequence

from alembic import op

revision: str = "0012"
down_revision: str | None = "0011"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "the posted manifests, and the trace contexts of samples"

# Existing rows have null, so adding the columns rewrites no table. A process of the version before does not write them.
COLUMNS = {
    "jobs": {"posted": "JSON"},
    "samples": {"posted": "JSON", "traceparent": "TEXT", "tracestate": "TEXT"},
}


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for name, definition in columns.items():
            op.execute(f"ALTER TABLE {table} ADD COLUMN {name} {definition}")


def downgrade() -> None:
    for table, columns in COLUMNS.items():
        for name in columns:
            op.execute(f"ALTER TABLE {table} DROP COLUMN {name}")
