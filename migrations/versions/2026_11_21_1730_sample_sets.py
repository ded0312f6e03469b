"""SampleSets and SampleJobs: one table for both, their history and events, and their place in the feed."""

from collections.abc import Sequence

from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "SampleSets, SampleJobs and their history"

SCHEMA = (
    """
    CREATE TABLE sample_events (
        uid UUID NOT NULL,
        seq BIGINT NOT NULL,
        at TIMESTAMP WITH TIME ZONE NOT NULL,
        type TEXT NOT NULL,
        reason TEXT NOT NULL,
        message TEXT NOT NULL,
        CONSTRAINT sample_events_pkey PRIMARY KEY (uid, seq)
    )
    """,
    """
    CREATE TABLE sample_history (
        uid UUID NOT NULL,
        seq BIGINT NOT NULL,
        at TIMESTAMP WITH TIME ZONE NOT NULL,
        phase TEXT NOT NULL,
        reason TEXT NOT NULL,
        message TEXT NOT NULL,
        actor TEXT NOT NULL,
        CONSTRAINT sample_history_pkey PRIMARY KEY (uid, seq)
    )
    """,
    """
    CREATE TABLE samples (
        uid UUID NOT NULL,
        kind TEXT COLLATE "C" NOT NULL,
        namespace TEXT COLLATE "C" NOT NULL,
        name TEXT COLLATE "C" NOT NULL,
        api_version TEXT NOT NULL,
        labels JSONB DEFAULT '{}' NOT NULL,
        manifest JSON NOT NULL,
        set_name TEXT COLLATE "C" NOT NULL,
        generation BIGINT DEFAULT 1 NOT NULL,
        version BIGINT DEFAULT 1 NOT NULL,
        intent_version BIGINT DEFAULT 1 NOT NULL,
        intent_at TIMESTAMP WITH TIME ZONE,
        observed_generation BIGINT DEFAULT 0 NOT NULL,
        history_count BIGINT DEFAULT 0 NOT NULL,
        event_count BIGINT DEFAULT 0 NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        created_by TEXT NOT NULL,
        delete_requested_at TIMESTAMP WITH TIME ZONE,
        delete_requested_by TEXT,
        gone_at TIMESTAMP WITH TIME ZONE,
        phase TEXT NOT NULL,
        reason TEXT NOT NULL,
        message TEXT NOT NULL,
        record JSONB DEFAULT '{}' NOT NULL,
        observed_at TIMESTAMP WITH TIME ZONE,
        cache_observed_at TIMESTAMP WITH TIME ZONE,
        wake_at TIMESTAMP WITH TIME ZONE,
        CONSTRAINT samples_pkey PRIMARY KEY (uid)
    )
    WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05)
    """,
    "CREATE INDEX samples_by_name ON samples (kind, namespace, name, created_at DESC, uid DESC)",
    # Decides between concurrent submissions of one name.
    "CREATE UNIQUE INDEX samples_name ON samples (kind, namespace, name) WHERE gone_at IS NULL",
    "CREATE INDEX samples_newest ON samples (kind, created_at DESC, uid DESC)",
    "CREATE INDEX samples_newest_in_namespace ON samples (kind, namespace, created_at DESC, uid DESC)",
    "CREATE INDEX samples_of_set ON samples (namespace, set_name) WHERE gone_at IS NULL",
    "CREATE INDEX samples_pending_intent ON samples (intent_at) WHERE intent_at IS NOT NULL",
    "CREATE INDEX samples_wake ON samples (wake_at) WHERE wake_at IS NOT NULL",
    # A constant default is kept in the catalogue: no row is rewritten, and older versions need not name the column.
    "ALTER TABLE job_events ADD COLUMN resource TEXT DEFAULT 'jobs' NOT NULL",
)

TABLES = ("sample_events", "sample_history", "samples")


def upgrade() -> None:
    for statement in SCHEMA:
        op.execute(statement)


def downgrade() -> None:
    op.execute("ALTER TABLE job_events DROP COLUMN resource")
    for table in TABLES:
        op.execute(f"DROP TABLE {table}")
