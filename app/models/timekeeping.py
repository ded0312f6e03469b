"""The time of the installation."""

from sqlalchemy import Column, Float, Table, text

from app.models.base import metadata, singleton_key, text_column, time_column

timekeeping = Table(
    "timekeeping",
    metadata,
    *singleton_key(),
    Column("ahead", Float, nullable=False, server_default=text("0")),
    time_column("reached_at", nullable=True),
    text_column("fault"),
    # As for leases: one row that is rewritten every few seconds.
    postgresql_with={"fillfactor": "50"},
)
"""How far the time of the installation is ahead of the database's clock, in seconds; how far it had come when the
holder of the controller's lease last recorded it; and which clock is wrong, if one is. One row.
"""
