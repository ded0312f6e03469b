"""Names in a namespace that a job uses: its own, and those of its pods, Services and ConfigMaps.

Until its job has ended a name is reserved; then it is released, and kept until the job's objects are gone, so that a
successor finds out whose leftovers it has to wait for.
"""

from sqlalchemy import Index, Table, text

from app.models.base import flag_column, metadata, uid_column, word_column

names = Table(
    "names",
    metadata,
    uid_column("job_uid", primary_key=True),
    word_column("namespace"),
    word_column("kind", primary_key=True),
    word_column("name", primary_key=True),
    flag_column("released"),
)

Index(
    "names_reserved", names.c.namespace, names.c.name, names.c.kind, unique=True, postgresql_where=text("NOT released")
)
Index("names_released", names.c.namespace, names.c.name, names.c.kind, postgresql_where=text("released"))
