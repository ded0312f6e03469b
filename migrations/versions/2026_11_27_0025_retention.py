"""Which jobs are pinned, indexes of what expires, the uids of what was purged, and when tables are vacuumed.

No stored job has the annotation that pins it, because the versions before refuse it.
"""

from collections.abc import Sequence

from alembic import op

from app.db.postgres.concurrent_indexes import create_index, drop_index

revision: str = "0025"
down_revision: str | None = "0024"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "the uids of purged objects: requests by them are answered 404"

# The search for the key spares other manifests the parser. As in `set_claim_names`, NUL is replaced: json of PostgreSQL
# cannot return it.
FUNCTION = r"""
CREATE OR REPLACE FUNCTION set_pinned() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    document TEXT := NEW.manifest::text;
BEGIN
    NEW.pinned := strpos(document, '"jobgate.dev/keep"') > 0 AND COALESCE(
        replace(document, '\u0000', '\ufffd')::json #>> '{metadata,annotations,jobgate.dev/keep}' = 'true', false
    );
    RETURN NEW;
END $$
"""
TRIGGER = """
CREATE OR REPLACE TRIGGER jobs_pinned BEFORE INSERT OR UPDATE OF manifest ON jobs
FOR EACH ROW EXECUTE FUNCTION set_pinned()
"""
PURGED = """
CREATE TABLE IF NOT EXISTS purged (
    uid UUID NOT NULL,
    purged_at TIMESTAMP WITH TIME ZONE NOT NULL,
    has_records BOOLEAN DEFAULT false NOT NULL,
    resource TEXT NOT NULL,
    namespace TEXT NOT NULL,
    CONSTRAINT purged_pkey PRIMARY KEY (uid)
)
"""
INDEXES_OF_PURGED = (
    "CREATE INDEX IF NOT EXISTS purged_age ON purged (purged_at)",
    "CREATE INDEX IF NOT EXISTS purged_with_records ON purged (uid) WHERE has_records",
)
INDEXES = {
    "jobs_purgeable": "ON jobs (namespace, finished_at) WHERE gone_at IS NOT NULL AND NOT pinned",
    "samples_purgeable": """ON samples (namespace, COALESCE(gone_at, finished_at))
    WHERE gone_at IS NOT NULL OR kind = 'SampleJob'::text AND finished_at IS NOT NULL AND wake_at IS NULL""",
}
# The settings of the version before; null is the default of the server.
TABLES: dict[str, str | None] = {
    "jobs": "0.05",
    "conditions": "0.05",
    "replicas": "0.05",
    "samples": "0.05",
    "job_events": "0.05",
    "status_history": None,
    "scale_records": None,
    "attempts": None,
    "attempt_logs": None,
    "attempt_events": None,
    "idempotency_keys": None,
    "sample_history": None,
    "sample_events": None,
    "kept_logs": "0.05",
    "kept_log_totals": "0.05",
    "log_chunks": None,
}
SCALE_FACTOR = "autovacuum_vacuum_scale_factor"


def upgrade() -> None:
    for statement in (PURGED, *INDEXES_OF_PURGED):
        op.execute(statement)
    # They wait for a vacuum of their table, so the lock that stops everybody comes after them.
    for table in (*TABLES, "purged"):
        op.execute(f"ALTER TABLE {table} SET ({SCALE_FACTOR} = 0.02, toast.{SCALE_FACTOR} = 0.02)")
    op.execute("ALTER TABLE jobs ADD COLUMN IF NOT EXISTS pinned BOOLEAN DEFAULT false NOT NULL")
    for statement in (FUNCTION, TRIGGER):
        op.execute(statement)
    for name, definition in INDEXES.items():
        create_index(name, definition)


def downgrade() -> None:
    for name in INDEXES:
        drop_index(name)
    for table, before in TABLES.items():
        op.execute(f"ALTER TABLE {table} RESET (toast.{SCALE_FACTOR})")
        change = f"RESET ({SCALE_FACTOR})" if before is None else f"SET ({SCALE_FACTOR} = {before})"
        op.execute(f"ALTER TABLE {table} {change}")
    op.execute("DROP TABLE IF EXISTS purged")
    op.execute("DROP TRIGGER IF EXISTS jobs_pinned ON jobs")
    op.execute("DROP FUNCTION IF EXISTS set_pinned()")
    op.execute("ALTER TABLE jobs DROP COLUMN IF EXISTS pinned")
