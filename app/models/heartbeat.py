"""When the controller last had contact with the cluster, and how it was. One row."""

from sqlalchemy import Table

from app.models.base import metadata, number_column, singleton_key, text_column, time_column

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
