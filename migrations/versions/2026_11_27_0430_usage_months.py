"""The sums of usage by month, which a trigger adds to with those by day, so that a long time is read from few rows.

A trigger does so for every process, also of the version before. The sums that exist are added up a few groups at a
time, each time under a lock of the sums by day that lasts some hundredths of a second.
"""

from collections.abc import Sequence
from typing import Final

from alembic import op
from sqlalchemy import text

revision: str = "0029"
down_revision: str | None = "0028"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "of usage, for less than 1 s at a time, while it adds up the sums of some groups"
undoing_loses = "no: the sums by day have all of it"

ROWS_AT_ONCE: Final = 20_000
"""The sums by day that are added up under one lock."""

TABLE: Final = """
CREATE TABLE IF NOT EXISTS usage_months (
    group_id BIGINT NOT NULL,
    month DATE NOT NULL,
    resource TEXT NOT NULL,
    useful NUMERIC DEFAULT 0 NOT NULL,
    repeated NUMERIC DEFAULT 0 NOT NULL,
    disrupted NUMERIC DEFAULT 0 NOT NULL,
    idle NUMERIC DEFAULT 0 NOT NULL,
    queued NUMERIC DEFAULT 0 NOT NULL,
    CONSTRAINT usage_months_pkey PRIMARY KEY (group_id, month, resource)
) WITH (fillfactor=80, autovacuum_vacuum_scale_factor=0.02, toast.autovacuum_vacuum_scale_factor=0.02)
"""
# OLD is null when a row is inserted, and NEW when it is deleted.
FUNCTION: Final = """
CREATE OR REPLACE FUNCTION add_to_usage_months() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    cell usage_days := COALESCE(NEW, OLD);
BEGIN
    INSERT INTO usage_months AS m (group_id, month, resource, useful, repeated, disrupted, idle, queued)
    VALUES (
        cell.group_id, date_trunc('month', cell.day::timestamp)::date, cell.resource,
        COALESCE(NEW.useful, 0) - COALESCE(OLD.useful, 0), COALESCE(NEW.repeated, 0) - COALESCE(OLD.repeated, 0),
        COALESCE(NEW.disrupted, 0) - COALESCE(OLD.disrupted, 0), COALESCE(NEW.idle, 0) - COALESCE(OLD.idle, 0),
        COALESCE(NEW.queued, 0) - COALESCE(OLD.queued, 0)
    )
    ON CONFLICT (group_id, month, resource) DO UPDATE
    SET useful = m.useful + excluded.useful, repeated = m.repeated + excluded.repeated,
        disrupted = m.disrupted + excluded.disrupted, idle = m.idle + excluded.idle,
        queued = m.queued + excluded.queued;
    RETURN NULL;
END $$
"""
TRIGGER: Final = """
CREATE OR REPLACE TRIGGER usage_days_months AFTER INSERT OR UPDATE OR DELETE ON usage_days
FOR EACH ROW EXECUTE FUNCTION add_to_usage_months()
"""
LOCK: Final = "LOCK TABLE usage_days IN SHARE ROW EXCLUSIVE MODE"
LAST_OF_NEXT: Final = f"""
SELECT max(group_id) FROM (
    SELECT group_id FROM usage_days WHERE group_id > :after ORDER BY group_id LIMIT {ROWS_AT_ONCE}
) AS following
"""  # noqa: S608  a constant
FORGET: Final = "DELETE FROM usage_months WHERE group_id > :after AND group_id <= :last"
ADD_UP: Final = """
INSERT INTO usage_months (group_id, month, resource, useful, repeated, disrupted, idle, queued)
SELECT group_id, date_trunc('month', day::timestamp)::date, resource, sum(useful), sum(repeated), sum(disrupted),
       sum(idle), sum(queued)
FROM usage_days WHERE group_id > :after AND group_id <= :last GROUP BY 1, 2, 3
"""


def upgrade() -> None:
    op.execute(TABLE)
    op.execute(FUNCTION)
    op.execute(TRIGGER)
    # Each step commits, so that the lock lasts for one of them. A step may be repeated: it replaces what it wrote.
    with op.get_context().autocommit_block():
        connection, after = op.get_bind(), -1
        while (last := connection.execute(text(LAST_OF_NEXT), {"after": after}).scalar()) is not None:
            _add_up(after, last)
            after = last


def _add_up(after: int, last: int) -> None:
    """Replace the sums of these groups. With the lock, no trigger adds to them meanwhile."""
    bounds = {"after": after, "last": last}
    op.execute("BEGIN")
    try:
        op.execute(LOCK)
        for statement in (FORGET, ADD_UP):
            op.get_bind().execute(text(statement), bounds)
    except BaseException:
        op.execute("ROLLBACK")
        raise
    op.execute("COMMIT")


def downgrade() -> None:
    op.execute("DROP TRIGGER usage_days_months ON usage_days")
    op.execute("DROP FUNCTION add_to_usage_months()")
    op.execute("DROP TABLE usage_months")
