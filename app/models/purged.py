"""What is left of objects whose records were deleted."""

from sqlalchemy import Index, Table, text

from app.models.base import EXPIRING_ROWS, flag_column, metadata, text_column, time_column, uid_column

purged = Table(
    "purged",
    metadata,
    uid_column("uid", primary_key=True),
    time_column("purged_at"),
    flag_column("has_records"),
    text_column("resource"),
    text_column("namespace"),
    postgresql_with=EXPIRING_ROWS,
)
"""The uids of purged jobs and samples, so that a request by uid learns that there was one.

`has_records`: rows about the object are still stored in other tables, and are being deleted. `resource` is the resource
of the API to which the object belonged.
"""

Index("purged_age", purged.c.purged_at)
# Objects with so many rows that one transaction does not delete all of them. Mostly there are none.
Index("purged_with_records", purged.c.uid, postgresql_where=text("has_records"))
