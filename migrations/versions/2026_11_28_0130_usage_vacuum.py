"""Vacuum what jobs use by day, and what they use now, as often as the other tables whose rows change."""

from collections.abc import Sequence
from typing import Final

from alembic import op

revision: str = "0036"
down_revision: str | None = "0035"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no"

TABLES: Final = ("usage_days", "usage_rates")
SCALE_FACTOR: Final = "autovacuum_vacuum_scale_factor"


def upgrade() -> None:
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} SET ({SCALE_FACTOR} = 0.02, toast.{SCALE_FACTOR} = 0.02)")


def downgrade() -> None:
    for table in TABLES:
        op.execute(f"ALTER TABLE {table} RESET (toast.{SCALE_FACTOR})")
        op.execute(f"ALTER TABLE {table} SET ({SCALE_FACTOR} = 0.05)")
