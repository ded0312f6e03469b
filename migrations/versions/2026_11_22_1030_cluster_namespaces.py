"""The namespaces of the cluster, as the controller observes them."""

from collections.abc import Sequence

from alembic import op

revision: str = "0008"
down_revision: str | None = "0007"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "no: the controller reads the namespaces again"

CREATE = """
CREATE TABLE cluster_namespaces (
    singleton BOOLEAN DEFAULT true NOT NULL,
    names JSONB,
    CONSTRAINT cluster_namespaces_pkey PRIMARY KEY (singleton),
    CONSTRAINT singleton CHECK (singleton)
)
"""


def upgrade() -> None:
    op.execute(CREATE)


def downgrade() -> None:
    op.execute("DROP TABLE cluster_namespaces")
