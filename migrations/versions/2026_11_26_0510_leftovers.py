"""An index of the ended jobs of which replicas still run.

Its creation stops writes of jobs, but no reads: about a second for a million jobs on an idle machine.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0018"
down_revision: str | None = "0017"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "of jobs: about a second for a million jobs"
undoing_loses = "no"


def upgrade() -> None:
    op.execute("CREATE INDEX jobs_with_leftovers ON jobs (uid) WHERE NOT quiet AND ended <> ''")


def downgrade() -> None:
    op.execute("DROP INDEX jobs_with_leftovers")
