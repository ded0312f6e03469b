"""How far the feed has been numbered (`last`), and from where on it is kept (`first`). One row."""

from sqlalchemy import Table

from app.models.base import metadata, number_column, singleton_key

feed = Table(
    "feed",
    metadata,
    *singleton_key(),
    number_column("epoch"),
    number_column("first", default=1),
    number_column("last", default=0),
)
