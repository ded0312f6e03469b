"""A rank of a job and its current attempt."""

from sqlalchemy import Column, Integer, Table

from app.models.base import HOT_ROWS, attempt_fields, flag_column, metadata, replica_key, text_column, time_column

replicas = Table(
    "replicas",
    metadata,
    *replica_key(),
    text_column("pod_name", nullable=True),
    Column("attempt", Integer, nullable=False),
    *attempt_fields(),
    Column("restarts", Integer, nullable=False),
    Column("disruptions", Integer, nullable=False),
    time_column("retry_at", nullable=True),
    flag_column("settled"),
    flag_column("leaving"),
    postgresql_with=HOT_ROWS,
)
