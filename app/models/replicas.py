"""Replicas, their ended attempts, and the evidence of these."""

from sqlalchemy import Column, Integer, LargeBinary, Table

from app.models.base import (
    EXPIRING_ROWS,
    HOT_ROWS,
    attempt_fields,
    attempt_key,
    flag_column,
    json_column,
    metadata,
    replica_key,
    text_column,
    time_column,
)

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
    flag_column("unreported"),
    postgresql_with=HOT_ROWS,
)
"""Replicas and their current attempts."""

attempts = Table("attempts", metadata, *attempt_key(), *attempt_fields(), postgresql_with=EXPIRING_ROWS)
"""Ended attempts. The row of a replica describes only its current attempt."""

attempt_logs = Table(
    "attempt_logs",
    metadata,
    *attempt_key(),
    text_column("container", primary_key=True),
    Column("tail", LargeBinary, nullable=False),
    flag_column("truncated"),
    postgresql_with=EXPIRING_ROWS,
)
"""The ends of the logs of ended attempts, one row for each container, as bytes."""

attempt_events = Table(
    "attempt_events", metadata, *attempt_key(), json_column("events", "[]"), postgresql_with=EXPIRING_ROWS
)
"""The last Kubernetes Events about the pods of ended attempts."""
