"""Spell the phases, outcomes and evidence of replicas in CamelCase, as Kubernetes spells phases.

Processes of the version before write and read the former spelling: stop them before this migration.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0005"
down_revision: str | None = "0004"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "and reads: stop every process, it rewrites all jobs"
undoing_loses = "no"

ATTEMPTS = "UPDATE {table} SET phase = {spell}(phase), outcome = {spell}(outcome), evidence = {spell}(evidence)"
# The keys of the aggregate are phases. Braces are doubled, because the text is a format string.
AGGREGATES = """
UPDATE jobs SET status = jsonb_set(status, '{{aggregate}}', (
    SELECT jsonb_object_agg({spell}(phase), count) FROM jsonb_each(status -> 'aggregate') AS counts (phase, count)
))
WHERE status -> 'aggregate' <> '{{}}'
"""
# In the text of jsonb, a quotation mark inside a string has a backslash before it: only a field can match.
OUTCOME = """
UPDATE jobs SET status = replace(status::text, '"outcome": "{before}"', '"outcome": "{after}"')::jsonb
WHERE status::text LIKE '%"outcome": "{before}"%'
"""
OUTCOMES = ("succeeded", "failed", "disrupted", "stopped")


def upgrade() -> None:
    _spell("initcap", [(outcome, outcome.capitalize()) for outcome in OUTCOMES])


def downgrade() -> None:
    _spell("lower", [(outcome.capitalize(), outcome) for outcome in OUTCOMES])


def _spell(function: str, outcomes: Sequence[tuple[str, str]]) -> None:
    for table in ("replicas", "attempts"):
        op.execute(ATTEMPTS.format(table=table, spell=function))
    op.execute(AGGREGATES.format(spell=function))
    for before, after in outcomes:
        op.execute(OUTCOME.format(before=before, after=after))
