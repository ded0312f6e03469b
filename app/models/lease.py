"""Who may act. The epoch rises with every takeover; expiry is by the database's clock alone."""

from sqlalchemy import Table

from app.models.base import metadata, number_column, text_column, time_column

leases = Table(
    "leases",
    metadata,
    text_column("name", primary_key=True),
    text_column("holder"),
    number_column("epoch"),
    time_column("expires_at"),
    postgresql_with={"fillfactor": "50"},
)
