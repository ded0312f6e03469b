"""The identity of the database, the lease of the controller, and its heartbeat."""

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
"""Who this database is, and which cluster it belongs to. One row.

`key` is what the credentials of the jobs' own pods are derived from. Nothing uses
`cluster_epoch` any more; the version before reads it, so the column goes in a later release.
"""

leases = Table(
    "leases",
    metadata,
    text_column("name", primary_key=True),
    text_column("holder"),
    number_column("epoch"),
    time_column("expires_at"),
    postgresql_with={"fillfactor": "50"},
)
"""Who may act. The epoch rises with every takeover; expiry is by the database's clock alone."""

heartbeats = Table(
    "heartbeats",
    metadata,
    *singleton_key(),
    time_column("observed_at"),
    number_column("epoch"),
    text_column("state"),
    text_column("message"),
    postgresql_with={"fillfactor": "50"},
)
"""When the controller last had contact with the cluster, and how it was. One row."""
