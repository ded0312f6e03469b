"""Who may send requests, and the stored answers to requests that may be repeated."""

from sqlalchemy import ARRAY, Column, Index, LargeBinary, Table, Text

from app.models.base import EXPIRING_ROWS, metadata, text_column, time_column, uid_column

api_tokens = Table(
    "api_tokens",
    metadata,
    text_column("id", primary_key=True),
    text_column("name"),
    Column("secret_hash", LargeBinary, nullable=False),
    text_column("role"),
    Column("namespaces", ARRAY(Text), nullable=False),
    time_column("created_at"),
    time_column("revoked_at", nullable=True),
    time_column("last_used_at", nullable=True),
)
"""API tokens. Only the hashes of their secrets are stored."""

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    text_column("scope", primary_key=True),
    text_column("key", primary_key=True),
    text_column("fingerprint"),
    uid_column("job_uid"),
    Column("answer", LargeBinary, nullable=False),
    time_column("created_at"),
    postgresql_with=EXPIRING_ROWS,
)
"""The first answers to requests that have an idempotency key."""

# The sweeper deletes keys by age.
Index("idempotency_keys_age", idempotency_keys.c.created_at)
