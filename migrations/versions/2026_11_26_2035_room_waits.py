"""Keep the jobs that wait for room within the limits of live pods.

A process of the version before neither stores such a job nor sees that one waits, and would start it at once: jobs wait
only with a setting that the version before does not have.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0023"
down_revision: str | None = "0022"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "which jobs wait for room: they have room then"

UPGRADE = (
    """
    CREATE TABLE room_waits (
        job_uid UUID NOT NULL,
        id BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL,
        namespace TEXT NOT NULL,
        priority BIGINT NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE NOT NULL,
        pods BIGINT NOT NULL,
        CONSTRAINT room_waits_pkey PRIMARY KEY (job_uid)
    )
    """,
    "CREATE INDEX room_waits_in_order ON room_waits (namespace, priority DESC, created_at, id)",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    # What waits has room then, as every job of the version before.
    op.execute(
        "UPDATE jobs SET planned_pods = w.pods FROM room_waits AS w WHERE uid = w.job_uid AND finished_at IS NULL"
    )
    op.execute(
        "INSERT INTO planned_pods (namespace, pods) SELECT namespace, sum(pods) FROM room_waits GROUP BY namespace"
    )
    op.execute("DROP TABLE room_waits")
