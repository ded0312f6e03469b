"""The last words of a container of an ended attempt: bytes, as the container wrote them."""

from sqlalchemy import Column, LargeBinary, Table

from app.models.base import attempt_key, flag_column, metadata, text_column

attempt_logs = Table(
    "attempt_logs",
    metadata,
    *attempt_key(),
    text_column("container", primary_key=True),
    Column("tail", LargeBinary, nullable=False),
    flag_column("truncated"),
)
