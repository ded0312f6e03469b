"""Every change of how many replicas a task shall have: who, why, when, and what became of it.

`outcome` is null until that is known.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, Table, Text, text

from app.models.base import metadata, text_column, time_column, uid_column

scale_records = Table(
    "scale_records",
    metadata,
    uid_column("job_uid", primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    text_column("task"),
    Column("from_replicas", Integer, nullable=False),
    Column("to_replicas", Integer, nullable=False),
    text_column("actor"),
    text_column("reason"),
    time_column("requested_at"),
    time_column("settled_at", nullable=True),
    text_column("outcome", nullable=True),
    Column("message", Text, nullable=False, server_default=text("''")),
)

Index("scale_records_open", scale_records.c.job_uid, scale_records.c.seq, postgresql_where=text("outcome IS NULL"))
