"""An index of the ended jobs whose objects are in the cluster, by the time of their end.

Its creation stops writes of jobs, but no reads: about a second for a million jobs on an idle machine.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0021"
down_revision: str | None = "0020"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "of jobs: about a second for a million jobs"
undoing_loses = "no"


def upgrade() -> None:
    op.execute(
        "CREATE INDEX jobs_with_kept_objects ON jobs (finished_at) WHERE quiet AND gone_at IS NULL AND wake_at IS NULL"
    )


def downgrade() -> None:
    op.execute("DROP INDEX jobs_with_kept_objects")
