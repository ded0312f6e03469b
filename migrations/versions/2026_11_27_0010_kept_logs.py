"""The index of whole logs, whose text is in the object store."""

from collections.abc import Sequence

from alembic import op

revision: str = "0024"
down_revision: str | None = "0023"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "which whole logs are kept: their objects stay in the log store, and nothing finds them"

KEY = """
    job_uid UUID NOT NULL,
    task TEXT NOT NULL,
    rank INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    container TEXT NOT NULL,
    run INTEGER NOT NULL
"""
CREATE = (
    f"""
CREATE TABLE kept_logs ({KEY},
    namespace TEXT NOT NULL,
    state TEXT NOT NULL,
    text_bytes BIGINT DEFAULT 0 NOT NULL,
    lines BIGINT DEFAULT 0 NOT NULL,
    stored_bytes BIGINT DEFAULT 0 NOT NULL,
    first_at TIMESTAMP WITH TIME ZONE,
    last_at TIMESTAMP WITH TIME ZONE,
    position BYTEA,
    version BIGINT DEFAULT 0 NOT NULL,
    note TEXT,
    updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT kept_logs_pkey PRIMARY KEY (job_uid, task, rank, attempt, container, run)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)
""",
    "CREATE INDEX kept_logs_by_age ON kept_logs (namespace, finished_at) WHERE finished_at IS NOT NULL",
    "CREATE INDEX kept_logs_following ON kept_logs (job_uid) WHERE finished_at IS NULL",
    f"""
CREATE TABLE log_chunks ({KEY},
    start BIGINT NOT NULL,
    length INTEGER NOT NULL,
    first_line BIGINT NOT NULL,
    lines INTEGER NOT NULL,
    first_at TIMESTAMP WITH TIME ZONE,
    last_at TIMESTAMP WITH TIME ZONE,
    stored_bytes INTEGER NOT NULL,
    object_name TEXT,
    gap TEXT,
    CONSTRAINT log_chunks_pkey PRIMARY KEY (job_uid, task, rank, attempt, container, run, start, length)
)
""",
    """
CREATE TABLE kept_log_totals (
    namespace TEXT NOT NULL,
    job_uid UUID NOT NULL,
    text_bytes BIGINT NOT NULL,
    stored_bytes BIGINT NOT NULL,
    CONSTRAINT kept_log_totals_pkey PRIMARY KEY (namespace, job_uid)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)
""",
    """
CREATE TABLE log_deletions (
    object_name TEXT COLLATE "C" NOT NULL,
    requested_at TIMESTAMP WITH TIME ZONE NOT NULL,
    CONSTRAINT log_deletions_pkey PRIMARY KEY (object_name)
)
""",
    """
CREATE TABLE log_keepers (
    id TEXT COLLATE "C" NOT NULL,
    expires_at TIMESTAMP WITH TIME ZONE NOT NULL,
    store_error TEXT,
    CONSTRAINT log_keepers_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50)
""",
)


def upgrade() -> None:
    for statement in CREATE:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE kept_logs, log_chunks, kept_log_totals, log_deletions, log_keepers")
