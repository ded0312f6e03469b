"""Store the names of replicas as ranges: a row for `a-worker-0` and the names that follow it by number.

Processes of the version before write rows of one name each, as `count` and the generated columns say of them. Their
names and those of newer processes stay apart.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0003"
down_revision: str | None = "0002"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "of jobs, while it rewrites the names of live jobs"
undoing_loses = "no"

# The expressions of `app.models.reservations` at this revision. A migration does not import what may change later.
STEM = "COALESCE(substring(name, '^(.*[^0-9])(0|[1-9][0-9]{0,8})$'), name)"
NUMBER = "COALESCE((substring(name, '[^0-9](0|[1-9][0-9]{0,8})$'))::integer, -1)"
HASH = "md5(namespace || '/' || kind || '/' || stem)"
X = f"('x' || left({HASH}, 13))::bit(52)::bigint"
Y = f"('x' || right({HASH}, 5))::bit(20)::bigint * 4294967296 + number"

# Every name, the numbered ones by runs without a gap: within such a run, number minus place is the same.
RUNS = f"""
CREATE TEMPORARY TABLE name_runs ON COMMIT DROP AS
SELECT job_uid, namespace, kind, released, CASE WHEN min(number) < 0 THEN stem ELSE stem || min(number) END AS name,
       count(*)::integer AS count
FROM (
    SELECT *, number - row_number() OVER (PARTITION BY job_uid, kind, released, stem ORDER BY number) AS run
    FROM (SELECT *, {STEM} AS stem, {NUMBER} AS number FROM names) AS n
) AS numbered
GROUP BY job_uid, namespace, kind, released, stem, run
"""  # noqa: S608  expressions of our own

UPGRADE = (
    # No name may be reserved between the copy and the new constraint.
    "LOCK TABLE names IN ACCESS EXCLUSIVE MODE",
    RUNS,
    # Before the new columns, which PostgreSQL computes for every row.
    "TRUNCATE names",
    # Released names are found by stem and number now.
    "DROP INDEX names_released",
    "ALTER TABLE names ADD COLUMN count INTEGER DEFAULT 1 NOT NULL",
    f'ALTER TABLE names ADD COLUMN stem TEXT COLLATE "C" GENERATED ALWAYS AS ({STEM}) STORED NOT NULL',
    f"ALTER TABLE names ADD COLUMN number INTEGER GENERATED ALWAYS AS ({NUMBER}) STORED NOT NULL",
    """
    INSERT INTO names (job_uid, namespace, kind, released, name, count)
    SELECT job_uid, namespace, kind, released, name, count FROM name_runs
    """,
    f"""
    ALTER TABLE names ADD CONSTRAINT names_apart
    EXCLUDE USING gist (box(point({X}, {Y}), point({X}, {Y} + count - 1)) WITH &&) WHERE (NOT released AND number >= 0)
    """,
    "CREATE INDEX names_by_number ON names (namespace, stem, kind, number)",
    "CREATE INDEX names_ranges ON names (namespace, stem, kind) WHERE count > 1",
    "DROP TABLE name_runs",
)

DOWNGRADE = (
    "LOCK TABLE names IN ACCESS EXCLUSIVE MODE",
    "ALTER TABLE names DROP CONSTRAINT names_apart",
    """
    INSERT INTO names (job_uid, namespace, kind, name, released)
    SELECT job_uid, namespace, kind, stem || following, released
    FROM names, generate_series(number + 1, number + count - 1) AS following
    """,
    "ALTER TABLE names DROP COLUMN stem, DROP COLUMN number, DROP COLUMN count",
    "CREATE INDEX names_released ON names (namespace, name, kind) WHERE released",
)


def upgrade() -> None:
    for statement in UPGRADE:
        op.execute(statement)


def downgrade() -> None:
    for statement in DOWNGRADE:
        op.execute(statement)
