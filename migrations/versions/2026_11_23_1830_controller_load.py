"""Columns of the heartbeat for the queue of the controller, and for how fast the cluster answers it."""

from collections.abc import Sequence

from alembic import op

revision: str = "0011"
down_revision: str | None = "0010"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "no"
undoing_loses = "no: the controller writes its load again"

# A controller of the previous version does not write these columns.
COLUMNS = {
    "queued": "BIGINT DEFAULT 0 NOT NULL",
    "queued_since": "TIMESTAMPTZ",
    "call_p50": "DOUBLE PRECISION",
    "call_p99": "DOUBLE PRECISION",
}


def upgrade() -> None:
    for name, definition in COLUMNS.items():
        op.execute(f"ALTER TABLE heartbeats ADD COLUMN {name} {definition}")


def downgrade() -> None:
    for name in COLUMNS:
        op.execute(f"ALTER TABLE heartbeats DROP COLUMN {name}")
