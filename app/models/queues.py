"""The queues of Kueue, as the controller observes them."""

from sqlalchemy import Column, Table
from sqlalchemy.dialects.postgresql import JSONB

from app.models.base import metadata, number_column, singleton_key, text_column, time_column, word_column

queues = Table(
    "queues",
    metadata,
    word_column("namespace", primary_key=True),
    word_column("name", primary_key=True),
    time_column("observed_at"),
    Column("status", JSONB, nullable=False),
)
"""The LocalQueues of the namespaces that are served. `observed_at` is the time of the last change of `status`."""

kueue = Table(
    "kueue",
    metadata,
    *singleton_key(),
    text_column("state"),
    text_column("message"),
    time_column("observed_at", nullable=True),
    number_column("most_pod_sets", nullable=True),
    # One row that is rewritten every few seconds.
    postgresql_with={"fillfactor": "50"},
)
"""What the controller knows of Kueue, and up to when the rows of `queues` were true. One row."""
