"""Changes of how many pods the live jobs of a namespace have planned; the sum of the rows is what they have.

Rows are only appended, so that no submission waits for another one, and now and then folded into one a namespace.
"""

from sqlalchemy import BigInteger, Column, Identity, Table

from app.models.base import metadata, number_column, text_column

planned_pods = Table(
    "planned_pods",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    text_column("namespace"),
    number_column("pods"),
)
