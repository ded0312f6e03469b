"""A column for the time at which a job was imported, and an index of imported jobs by that time.

A process of the version before deletes an imported job as any other, with a reconcile that finds no object of it.
"""

from collections.abc import Sequence

from alembic import op

from app.db.postgres.concurrent_indexes import create_index, drop_index

revision: str = "0027"
down_revision: str | None = "0026"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "which jobs were imported: they look like jobs that ran here"


def upgrade() -> None:
    op.execute("ALTER TABLE jobs ADD COLUMN IF NOT EXISTS imported_at TIMESTAMP WITH TIME ZONE")
    create_index("jobs_imported", "ON jobs (namespace, imported_at) WHERE imported_at IS NOT NULL AND NOT pinned")


def downgrade() -> None:
    drop_index("jobs_imported")
    op.execute("ALTER TABLE jobs DROP COLUMN IF EXISTS imported_at")
