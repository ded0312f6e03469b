"""The identity of the database, the lease of the controller, and its heartbeat."""

from sqlalchemy import Column, Float, LargeBinary, Table, Text, text
from sqlalchemy.dialects.postgresql import ARRAY

from app.models.base import (
    json_column,
    metadata,
    number_column,
    optional_json_column,
    singleton_key,
    text_column,
    time_column,
    uid_column,
)

installation = Table(
    "installation",
    metadata,
    *singleton_key(),
    uid_column("id"),
    Column("key", LargeBinary, nullable=False),
    text_column("cluster_uid", nullable=True),
    number_column("cluster_epoch", default=0),
    time_column("created_at"),
    Column("marks", ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")),
)
"""The identity of this database, and the cluster that it is bound to. One row.

The credentials of the jobs' own pods are derived from `key`. `marks` are those with which the last terms of the
controller have marked the cluster, the newest first: a copy of this database has others. `cluster_epoch` is unused, but
processes of the previous version read it; a later release removes it.
"""

leases = Table(
    "leases",
    metadata,
    text_column("name", primary_key=True),
    text_column("holder"),
    number_column("epoch"),
    time_column("expires_at"),
    Column("ttl", Float),
    text_column("offered_by", nullable=True),
    time_column("offered_at", nullable=True),
    # A renewal every few seconds rewrites the same row. Half of the page is free for versions that need no index entry.
    postgresql_with={"fillfactor": "50"},
)
"""Leases. The epoch increases at each takeover. `expires_at` is a time of the database's clock, `ttl` the duration
of the lease in seconds. `offered_by` is the process that last offered to take the lease over.
"""

heartbeats = Table(
    "heartbeats",
    metadata,
    *singleton_key(),
    time_column("observed_at"),
    number_column("epoch"),
    text_column("state"),
    text_column("message"),
    number_column("queued", default=0),
    time_column("queued_since", nullable=True),
    Column("call_p50", Float),
    Column("call_p99", Float),
    # As for leases: one row that is rewritten every second.
    postgresql_with={"fillfactor": "50"},
)
"""The last contact of the controller with the cluster, its state and its load. One row."""

cluster_namespaces = Table(
    "cluster_namespaces", metadata, *singleton_key(), optional_json_column("names"), json_column("uids", "{}")
)
"""The names of all namespaces of the cluster; null while the controller does not know them. One row.

`uids` are the last known uids by name, also of deleted namespaces whose objects are stored.
"""
