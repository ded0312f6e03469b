"""A column for the uids of namespaces: objects of a namespace that is created again do not belong to the new one."""

from collections.abc import Sequence

from alembic import op

revision: str = "0017"
down_revision: str | None = "0016"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "the uids of namespaces"


def upgrade() -> None:
    op.execute("ALTER TABLE cluster_namespaces ADD COLUMN uids JSONB NOT NULL DEFAULT '{}'::jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE cluster_namespaces DROP COLUMN uids")
