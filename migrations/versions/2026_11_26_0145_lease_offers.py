"""Offers to take the lease of the controller over."""

from collections.abc import Sequence

from alembic import op

revision: str = "0015"
down_revision: str | None = "0014"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "no"


def upgrade() -> None:
    op.execute("ALTER TABLE leases ADD COLUMN offered_by TEXT, ADD COLUMN offered_at TIMESTAMPTZ")


def downgrade() -> None:
    op.execute("ALTER TABLE leases DROP COLUMN offered_at, DROP COLUMN offered_by")
