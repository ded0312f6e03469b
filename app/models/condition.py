"""The conditions of a job, in the order in which its status lists them."""

from sqlalchemy import Column, SmallInteger, Table

from app.models.base import HOT_ROWS, metadata, number_column, text_column, time_column, uid_column

conditions = Table(
    "conditions",
    metadata,
    uid_column("job_uid", primary_key=True),
    text_column("type", primary_key=True),
    Column("position", SmallInteger, nullable=False),
    text_column("status"),
    text_column("reason"),
    text_column("message"),
    time_column("last_transition_at"),
    number_column("observed_generation"),
    postgresql_with=HOT_ROWS,
)
