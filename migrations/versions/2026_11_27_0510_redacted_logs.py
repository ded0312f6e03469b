"""When a job was last redacted, and which logs pass over what their nodes have since then.

What a container has printed before a redaction is not kept after it.
"""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision: str = "0031"
down_revision: str | None = "0030"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "which logs must not be written because of a redaction: repeat recent redactions"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("redacted_at", sa.TIMESTAMP(timezone=True)))
    op.add_column("kept_logs", sa.Column("passes_over", sa.Boolean, server_default=sa.text("false"), nullable=False))


def downgrade() -> None:
    op.drop_column("kept_logs", "passes_over")
    op.drop_column("jobs", "redacted_at")
