"""The conditions, the begin and the end of SampleSets and SampleJobs, as jobs have them.

Stored rows get what can be told of them: a SampleJob's begin and end are those of its history. The conditions of a
SampleSet, and of a SampleJob that has not ended, follow with the controller's next pass.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

COLUMNS = ("conditions", "started_at", "finished_at")


def upgrade() -> None:
    op.execute("ALTER TABLE samples ADD COLUMN conditions JSONB DEFAULT '[]' NOT NULL")
    op.execute("ALTER TABLE samples ADD COLUMN started_at TIMESTAMP WITH TIME ZONE")
    op.execute("ALTER TABLE samples ADD COLUMN finished_at TIMESTAMP WITH TIME ZONE")
    op.execute(
        """
        UPDATE samples AS s
        SET started_at = (SELECT min(at) FROM sample_history AS h WHERE h.uid = s.uid AND h.phase <> ''),
            finished_at = ended.at,
            conditions = jsonb_build_array(
                jsonb_build_object('type', 'Running', 'status', 'False', 'reason', s.phase, 'message', s.message,
                                   'last_transition_at', ended.at, 'observed_generation', s.observed_generation),
                jsonb_build_object('type', 'Completed',
                                   'status', CASE s.phase WHEN 'Succeeded' THEN 'True' ELSE 'False' END,
                                   'reason', s.phase, 'message', s.message,
                                   'last_transition_at', ended.at, 'observed_generation', s.observed_generation),
                jsonb_build_object('type', 'Failed',
                                   'status', CASE s.phase WHEN 'Failed' THEN 'True' ELSE 'False' END,
                                   'reason', s.phase, 'message', s.message,
                                   'last_transition_at', ended.at, 'observed_generation', s.observed_generation))
        FROM (SELECT h.uid, h.phase, max(h.at) AS at FROM sample_history AS h
              WHERE h.reason NOT IN ('Edited', 'DeleteRequested') GROUP BY h.uid, h.phase) AS ended
        WHERE s.kind = 'SampleJob' AND s.phase IN ('Succeeded', 'Failed') AND ended.uid = s.uid
          AND ended.phase = s.phase
        """
    )


def downgrade() -> None:
    for column in reversed(COLUMNS):
        op.execute(f"ALTER TABLE samples DROP COLUMN {column}")
