"""The feed of changes."""

from sqlalchemy import BigInteger, Column, Identity, Index, Table, Text, text

from app.models.base import EXPIRING_ROWS, metadata, number_column, singleton_key, text_column, time_column, uid_column

feed = Table(
    "feed",
    metadata,
    *singleton_key(),
    number_column("epoch"),
    number_column("first", default=1),
    number_column("last", default=0),
)
"""The bounds of the feed: the numbers of the first stored entry and of the last numbered one. One row."""

job_events = Table(
    "job_events",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    number_column("seq", nullable=True),
    time_column("at"),
    text_column("type"),
    text_column("namespace"),
    uid_column("job_uid"),
    number_column("version"),
    Column("resource", Text, nullable=False, server_default=text("'jobs'")),
    # Every entry is updated once, when it gets its number. This leaves one dead row version for each.
    postgresql_with=EXPIRING_ROWS,
)
"""The entries of the feed. `seq` is null until the publisher has numbered the committed entry.

`resource` is the resource of the API to which the object with the uid `job_uid` belongs.
"""

# No number is used twice, whatever the publishers do.
Index("job_events_seq", job_events.c.seq, unique=True, postgresql_where=text("seq IS NOT NULL"))
# The backlog of the publisher: its size does not depend on the size of the feed.
Index("job_events_unnumbered", job_events.c.id, postgresql_where=text("seq IS NULL"))
