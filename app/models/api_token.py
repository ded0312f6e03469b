"""Bearer tokens. Only the hash of a secret is kept."""

from sqlalchemy import ARRAY, Column, LargeBinary, Table, Text

from app.models.base import metadata, text_column, time_column

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
