"""Who this database is, and which cluster it belongs to. One row.

`key` is what the credentials of the jobs' own pods are derived from. Nothing uses
`cluster_epoch` any more; the version before reads it, so the column goes in a later release.
"""

from sqlalchemy import Column, LargeBinary, Table

from app.models.base import metadata, number_column, singleton_key, text_column, time_column, uid_column

installation = Table(
    "installation",
    metadata,
    *singleton_key(),
    uid_column("id"),
    Column("key", LargeBinary, nullable=False),
    text_column("cluster_uid", nullable=True),
    number_column("cluster_epoch", default=0),
    time_column("created_at"),
)
