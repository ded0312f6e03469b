"""The runs of the autoscaler."""

from sqlalchemy import BigInteger, Column, Float, Identity, Table
from sqlalchemy.dialects.postgresql import JSONB

from app.models.base import flag_column, json_column, metadata, text_column, time_column

autoscaler_runs = Table(
    "autoscaler_runs",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    time_column("at"),
    flag_column("enabled"),
    Column("max_load", Float, nullable=False),
    Column("period_seconds", Float, nullable=False),
    Column("freeze_seconds", Float, nullable=False),
    text_column("error"),
    flag_column("changed"),
    Column("inventory", JSONB, nullable=True),
    json_column("pending", "[]"),
    json_column("jobs", "[]"),
    json_column("decisions", "[]"),
)
"""The runs of the autoscaler: what each one observed, decided and changed.

`inventory` is null if the cluster could not be read; `error` says why. `changed`: the run changed the size of a job.
"""
