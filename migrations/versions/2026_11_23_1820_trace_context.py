"""Columns of jobs for the trace context of the request that submitted a job."""

from collections.abc import Sequence

from alembic import op

revision: str = "0010"
down_revision: str | None = "0009"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "the trace contexts of jobs"

# They are null in existing rows, so that adding them rewrites no table.
COLUMNS = ("traceparent", "tracestate")


def upgrade() -> None:
    for column in COLUMNS:
        op.execute(f"ALTER TABLE jobs ADD COLUMN {column} TEXT")


def downgrade() -> None:
    for column in reversed(COLUMNS):
        op.execute(f"ALTER TABLE jobs DROP COLUMN {column}")
