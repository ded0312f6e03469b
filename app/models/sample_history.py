"""A sample's story, one line a row, numbered from 1 without gaps."""

from sqlalchemy import BigInteger, Column, Table

from app.models.base import metadata, text_column, time_column, uid_column

sample_history = Table(
    "sample_history",
    metadata,
    uid_column("uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    text_column("phase"),
    text_column("reason"),
    text_column("message"),
    text_column("actor"),
)
