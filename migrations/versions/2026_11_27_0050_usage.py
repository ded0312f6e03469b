"""Keep what jobs use: holds of attempts, sums by day, and rates of what goes on.

Columns without a default block no writes for longer than it takes to change the catalogue. A process of the version
before neither writes nor reads them: what it ends is not counted.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0026"
down_revision: str | None = "0025"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "what jobs have used"

UPGRADE = (
    "ALTER TABLE replicas ADD COLUMN hold JSONB",
    "ALTER TABLE attempts ADD COLUMN hold JSONB",
    """
    CREATE TABLE usage_groups (
        id BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL,
        namespace TEXT NOT NULL,
        user_id TEXT NOT NULL,
        user_name TEXT NOT NULL,
        queue TEXT NOT NULL,
        kind TEXT NOT NULL,
        labels JSONB NOT NULL,
        CONSTRAINT usage_groups_pkey PRIMARY KEY (id)
    )
    """,
    "CREATE INDEX usage_groups_by_namespace ON usage_groups (namespace, user_id)",
    """
    CREATE TABLE usage_days (
        group_id BIGINT NOT NULL,
        day DATE NOT NULL,
        resource TEXT NOT NULL,
        useful NUMERIC DEFAULT 0 NOT NULL,
        repeated NUMERIC DEFAULT 0 NOT NULL,
        disrupted NUMERIC DEFAULT 0 NOT NULL,
        idle NUMERIC DEFAULT 0 NOT NULL,
        queued NUMERIC DEFAULT 0 NOT NULL,
        CONSTRAINT usage_days_pkey PRIMARY KEY (group_id, day, resource)
    ) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
    """,
    """
    CREATE TABLE usage_rates (
        job_uid UUID NOT NULL,
        day DATE NOT NULL,
        resource TEXT NOT NULL,
        use TEXT NOT NULL,
        group_id BIGINT NOT NULL,
        amount NUMERIC NOT NULL,
        behind NUMERIC NOT NULL,
        CONSTRAINT usage_rates_pkey PRIMARY KEY (job_uid, day, resource, use)
    ) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.05)
    """,
)
DOWNGRADE = (
    "DROP TABLE usage_rates",
    "DROP TABLE usage_days",
    "DROP TABLE usage_groups",
    "ALTER TABLE attempts DROP COLUMN hold",
    "ALTER TABLE replicas DROP COLUMN hold",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.execute(statement)
