"""The marks of the terms of the controller, which tell this database from a copy of it."""

from collections.abc import Sequence

from alembic import op

revision: str = "0034"
down_revision: str | None = "0033"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no: the next term of the controller marks the cluster anew"


def upgrade() -> None:
    op.execute("ALTER TABLE installation ADD COLUMN IF NOT EXISTS marks TEXT[] NOT NULL DEFAULT '{}'::text[]")


def downgrade() -> None:
    op.execute("ALTER TABLE installation DROP COLUMN IF EXISTS marks")
