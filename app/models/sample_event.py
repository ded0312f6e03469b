"""What the controller has told of a sample by upstream's event names, numbered from 1 without gaps."""

from sqlalchemy import BigInteger, Column, Table

from app.models.base import metadata, text_column, time_column, uid_column

sample_events = Table(
    "sample_events",
    metadata,
    uid_column("uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    text_column("type"),
    text_column("reason"),
    text_column("message"),
)
