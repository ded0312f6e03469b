"""The time of the installation, which a step of the database's clock does not move, and the duration of a lease."""

from collections.abc import Sequence

from alembic import op

revision: str = "0014"
down_revision: str | None = "0013"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "how far the time of the installation is ahead of the database's clock"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE timekeeping (
            singleton BOOLEAN DEFAULT true NOT NULL,
            ahead DOUBLE PRECISION DEFAULT 0 NOT NULL,
            reached_at TIMESTAMPTZ,
            fault TEXT NOT NULL,
            CONSTRAINT timekeeping_pkey PRIMARY KEY (singleton),
            CONSTRAINT timekeeping_singleton CHECK (singleton)
        ) WITH (fillfactor = 50)
    """)
    # A controller of the previous version does not write it.
    op.execute("ALTER TABLE leases ADD COLUMN ttl DOUBLE PRECISION")


def downgrade() -> None:
    op.execute("ALTER TABLE leases DROP COLUMN ttl")
    op.execute("DROP TABLE timekeeping")
