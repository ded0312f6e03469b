"""Count the pods that live jobs have planned, so that their number can be limited.

A job's aggregate sums to the number of its replicas; jobs of processes of the version before count as none.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0004"
down_revision: str | None = "0003"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "of jobs, while it counts the pods of live jobs"
undoing_loses = "the number of planned pods"

UPGRADE = (
    # Processes of the version before do not name the column, so it needs a default.
    "ALTER TABLE jobs ADD COLUMN planned_pods BIGINT DEFAULT 0 NOT NULL",
    """
    CREATE TABLE planned_pods (
        id BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL,
        namespace TEXT NOT NULL,
        pods BIGINT NOT NULL,
        CONSTRAINT planned_pods_pkey PRIMARY KEY (id)
    )
    """,
    """
    UPDATE jobs AS j
    SET planned_pods = (SELECT COALESCE(sum(bucket.value::bigint), 0)
                        FROM jsonb_each_text(COALESCE(j.status -> 'aggregate', '{}')) AS bucket)
    WHERE finished_at IS NULL
    """,
    """
    INSERT INTO planned_pods (namespace, pods)
    SELECT namespace, sum(planned_pods) FROM jobs WHERE finished_at IS NULL
    GROUP BY namespace HAVING sum(planned_pods) > 0
    """,
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE planned_pods")
    op.execute("ALTER TABLE jobs DROP COLUMN planned_pods")
