"""Indexes for the filters of lists, and the column `ended`, on which two of them are.

The column makes PostgreSQL rewrite the table of jobs, under a lock that stops reads and writes: about a minute for a
million jobs. A process of the version before would read lists by slower indexes.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0009"
down_revision: str | None = "0008"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "and reads of jobs: about a minute for a million jobs"
undoing_loses = "no"

ENDED = (
    "CASE WHEN phase = ANY (ARRAY['Cancelled'::text, 'Failed'::text, 'Succeeded'::text, 'TimedOut'::text]) THEN phase "
    "ELSE ''::text END"
)
# Columns before the order of lists, and whether deleted jobs are left out.
LISTS = {
    "jobs_listed": ("", True),
    "jobs_listed_by_namespace": ("namespace, ", True),
    "jobs_listed_by_kind": ("kind, ended, ", True),
    "jobs_listed_by_namespace_and_kind": ("namespace, kind, ended, ", True),
    "jobs_newest": ("", False),
    "jobs_newest_in_namespace": ("namespace, ", False),
}
REPLACED = ("jobs_newest", "jobs_newest_in_namespace")
OTHERS = {
    "jobs_labels": "ON jobs USING gin (labels)",
    "jobs_finished": "ON jobs (finished_at) WHERE finished_at IS NOT NULL",
    "samples_by_set": "ON samples (kind, set_name, namespace, created_at DESC, uid DESC)",
}


def upgrade() -> None:
    for name in REPLACED:
        op.execute(f"DROP INDEX {name}")
    op.execute(f"ALTER TABLE jobs ADD COLUMN ended TEXT GENERATED ALWAYS AS ({ENDED}) STORED NOT NULL")
    for name, (columns, only_present) in LISTS.items():
        present = "deleted_at IS NULL AND " if only_present else ""
        predicate = f"{present}strpos(kind, '/{name}') <> 1"
        op.execute(f"CREATE INDEX {name} ON jobs ({columns}created_at DESC, uid DESC) WHERE {predicate}")
    for name, definition in OTHERS.items():
        op.execute(f"CREATE INDEX {name} {definition}")


def downgrade() -> None:
    for name in (*LISTS, *OTHERS):
        op.execute(f"DROP INDEX {name}")
    op.execute("ALTER TABLE jobs DROP COLUMN ended")
    for name in REPLACED:
        op.execute(f"CREATE INDEX {name} ON jobs ({LISTS[name][0]}created_at DESC, uid DESC)")
