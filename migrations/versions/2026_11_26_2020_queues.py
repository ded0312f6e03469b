"""The queues of Kueue, as the controller observes them."""

from collections.abc import Sequence

from alembic import op

revision: str = "0022"
down_revision: str | None = "0021"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "no: the controller reads the queues again"

CREATE = (
    """
CREATE TABLE queues (
    namespace TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    observed_at TIMESTAMP WITH TIME ZONE NOT NULL,
    status JSONB NOT NULL,
    CONSTRAINT queues_pkey PRIMARY KEY (namespace, name)
)
""",
    """
CREATE TABLE kueue (
    singleton BOOLEAN DEFAULT true NOT NULL,
    state TEXT NOT NULL,
    message TEXT NOT NULL,
    observed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT kueue_pkey PRIMARY KEY (singleton),
    CONSTRAINT kueue_singleton CHECK (singleton)
) WITH (fillfactor = 50)
""",
)


def upgrade() -> None:
    for statement in CREATE:
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE queues, kueue")
