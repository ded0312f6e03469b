"""What jobs have used, by day, and what they use now. Sums are amounts times milliseconds."""

from typing import Any, Final

from sqlalchemy import BigInteger, Column, Date, Identity, Index, Numeric, Table, text
from sqlalchemy.dialects.postgresql import JSONB

from app.domain.vocabulary import Use
from app.models.base import HOT_ROWS, metadata, text_column, uid_column


def _sum_column(name: str, default: str | None = None) -> Column[Any]:
    """An integer of any size: a terabyte of memory for a day is more than 2^63."""
    return Column(name, Numeric(), nullable=False, server_default=None if default is None else text(default))


LABELS_HASH: Final = "jsonb_hash_extended(labels, 0)"
"""SQL of the number by which the index of groups finds labels."""

usage_groups = Table(
    "usage_groups",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    text_column("namespace"),
    text_column("user_id"),
    text_column("user_name"),
    text_column("queue"),
    text_column("kind"),
    Column("labels", JSONB, nullable=False),
)
"""Jobs whose usage is added up together: those that differ in none of these columns.

A group without a kind has all jobs of its namespace: most reads need no more, and it has fewer rows. `labels` has only
the labels by which the installation adds up. `user_id` is empty where only the name is known, and
`queue` where the job has none.
"""

# Not unique: what is stored for a former namespace is moved, beside groups that the moved jobs have made meanwhile.
# The labels have no limit of size that an index has.
Index(
    "usage_groups_alike",
    usage_groups.c.namespace,
    usage_groups.c.user_id,
    usage_groups.c.queue,
    usage_groups.c.kind,
    text(LABELS_HASH),
)


def _sums_table(name: str, period: str) -> Table:
    """Return a table of sums for each group, period and resource, with a column for each use."""
    return Table(
        name,
        metadata,
        Column("group_id", BigInteger, primary_key=True, autoincrement=False),
        Column(period, Date, primary_key=True),
        text_column("resource", primary_key=True),
        *(_sum_column(use, "0") for use in Use),
        postgresql_with=HOT_ROWS,
    )


usage_days = _sums_table("usage_days", "day")
"""The usage of holds and waits that have ended, by day in UTC.

The records of the jobs may be deleted: these rows stay.
"""

usage_months = _sums_table("usage_months", "month")
"""The same by month, whose first day names it. A trigger on `usage_days` adds each change of a sum here too."""

usage_rates = Table(
    "usage_rates",
    metadata,
    uid_column("job_uid", primary_key=True),
    Column("day", Date, primary_key=True),
    text_column("resource", primary_key=True),
    text_column("use", primary_key=True),
    Column("group_id", BigInteger, nullable=False),
    _sum_column("amount"),
    _sum_column("behind"),
    postgresql_with=HOT_ROWS,
)
"""The usage of jobs that goes on: `t` milliseconds after the day began, the sum of a row is amount * t - behind."""

Index("usage_rates_by_group", usage_rates.c.group_id)
