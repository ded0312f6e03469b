"""A job's story, one line a row, numbered from 1 without gaps."""

from sqlalchemy import BigInteger, Column, Integer, Table

from app.models.base import metadata, text_column, time_column, uid_column

status_history = Table(
    "status_history",
    metadata,
    uid_column("job_uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    time_column("at"),
    text_column("phase"),
    text_column("reason"),
    text_column("message"),
    text_column("actor"),
    text_column("task", nullable=True),
    Column("rank", Integer, nullable=True),
    Column("attempt", Integer, nullable=True),
)
