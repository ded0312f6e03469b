"""The first answer to a request that may be repeated."""

from sqlalchemy import Column, Index, LargeBinary, Table

from app.models.base import metadata, text_column, time_column, uid_column

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    text_column("scope", primary_key=True),
    text_column("key", primary_key=True),
    text_column("fingerprint"),
    uid_column("job_uid"),
    Column("answer", LargeBinary, nullable=False),
    time_column("created_at"),
)

Index("idempotency_keys_age", idempotency_keys.c.created_at)
