"""A limit of the pinned jobs of a namespace: the trigger that derives which jobs are pinned refuses more.

The limit is a setting of the session, which programs of earlier versions do not make.
"""

from collections.abc import Sequence

from alembic import op

from app.db.postgres.concurrent_indexes import create_index, drop_index

revision: str = "0032"
down_revision: str | None = "0031"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

compatible_with = "0023"
blocks_writes = "no"
undoing_loses = "no"

FUNCTION_BEFORE = r"""
CREATE OR REPLACE FUNCTION set_pinned() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    document TEXT := NEW.manifest::text;
BEGIN
    NEW.pinned := strpos(document, '"jobgate.dev/keep"') > 0 AND COALESCE(
        replace(document, '\u0000', '\ufffd')::json #>> '{metadata,annotations,jobgate.dev/keep}' = 'true', false
    );
    RETURN NEW;
END $$
"""
# The lock lets two requests not count at the same time. Rows of the same statement before this one are counted, too.
FUNCTION = r"""
CREATE OR REPLACE FUNCTION set_pinned() RETURNS TRIGGER LANGUAGE plpgsql AS $$
DECLARE
    document TEXT := NEW.manifest::text;
    most BIGINT := NULLIF(current_setting('jobgate.max_kept_jobs', true), '')::bigint;
BEGIN
    NEW.pinned := strpos(document, '"jobgate.dev/keep"') > 0 AND COALESCE(
        replace(document, '\u0000', '\ufffd')::json #>> '{metadata,annotations,jobgate.dev/keep}' = 'true', false
    );
    IF most > 0 AND NEW.pinned AND NOT COALESCE(OLD.pinned, false) THEN
        PERFORM pg_advisory_xact_lock(hashtextextended('kept jobs of ' || NEW.namespace, 0));
        IF most <= (
            SELECT count(*) FROM (SELECT FROM jobs WHERE namespace = NEW.namespace AND pinned LIMIT most) AS kept
        ) THEN
            RAISE check_violation USING MESSAGE = NEW.namespace, DETAIL = most, CONSTRAINT = 'most_kept_jobs';
        END IF;
    END IF;
    RETURN NEW;
END $$
"""


def upgrade() -> None:
    op.execute(FUNCTION)
    create_index("jobs_pinned", "ON jobs (namespace) WHERE pinned")


def downgrade() -> None:
    drop_index("jobs_pinned")
    op.execute(FUNCTION_BEFORE)
