"""Columns for the identity of actors, and an index of jobs by the identity of their creator.

All migrations share a transaction, which locks the tables until its end. So reads and writes of jobs wait while the
index is created: about a second for a million jobs on an idle machine.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0016"
down_revision: str | None = "0015"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "and reads of jobs: about a second for a million jobs"
undoing_loses = "the identities of actors"

# They are null in existing rows, so that adding them rewrites no table.
COLUMNS = (
    ("jobs", "created_by_id"),
    ("jobs", "cancel_requested_by_id"),
    ("status_history", "actor_id"),
    ("scale_records", "actor_id"),
    ("samples", "created_by_id"),
    ("samples", "delete_requested_by_id"),
    ("sample_history", "actor_id"),
)


def upgrade() -> None:
    for table, column in COLUMNS:
        op.execute(f"ALTER TABLE {table} ADD COLUMN {column} TEXT")
    op.execute(
        "CREATE INDEX jobs_listed_by_creator ON jobs (created_by_id, created_at DESC, uid DESC) "
        "WHERE deleted_at IS NULL AND strpos(kind, '/jobs_listed_by_creator') <> 1"
    )


def downgrade() -> None:
    op.execute("DROP INDEX jobs_listed_by_creator")
    for table, column in reversed(COLUMNS):
        op.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
