"""What live jobs reserve in a namespace: names, and room for pods."""

from sqlalchemy import BigInteger, Column, Computed, Identity, Index, Integer, Table, Text, text
from sqlalchemy.dialects.postgresql import ExcludeConstraint

from app.models.base import flag_column, metadata, number_column, text_column, uid_column, word_column

_STEM = "COALESCE(substring(name, '^(.*[^0-9])(0|[1-9][0-9]{0,8})$'), name)"
_NUMBER = "COALESCE((substring(name, '[^0-9](0|[1-9][0-9]{0,8})$'))::integer, -1)"
_HASH = "md5(namespace || '/' || kind || '/' || stem)"
_X = f"('x' || left({_HASH}, 13))::bit(52)::bigint"
# Numbers and counts stay below 2^31 each, and whole numbers are exact below 2^53.
_Y = f"('x' || right({_HASH}, 5))::bit(20)::bigint * 4294967296 + number"
LINE = f"box(point({_X}, {_Y}), point({_X}, {_Y} + count - 1))"

names = Table(
    "names",
    metadata,
    uid_column("job_uid", primary_key=True),
    word_column("namespace"),
    word_column("kind", primary_key=True),
    word_column("name", primary_key=True),
    flag_column("released"),
    Column("count", Integer, nullable=False, server_default=text("1")),
    Column("stem", Text(collation="C"), Computed(_STEM, persisted=True), nullable=False),
    Column("number", Integer, Computed(_NUMBER, persisted=True), nullable=False),
    ExcludeConstraint((text(LINE), "&&"), name="names_apart", using="gist", where=text("NOT released AND number >= 0")),
)
"""Names in a namespace that a job uses: its own, and those of its pods, Services and ConfigMaps.

A row is `name` and the `count - 1` names that follow it by number, so that a job of 10 000 replicas has a row and not
10 000. `stem` and `number` are what `name` consists of, by the rule of `app.domain.reservations.name_ranges`. A name is
reserved until its job has ended; then it is released, and kept until the job's objects are gone, so that a successor
finds out which objects it has to wait for.

Two live jobs never have a name in common:

- `names_reserved` holds that for the first names of rows, which is all that names without a number need;
- `names_apart` holds it for numbers. A row is a line in the plane: its family (namespace, kind and stem, as 72 bits
  of their hash) tells where it lies, and its numbers how long it is. Lines that touch have a name in common. No
  operator class outside of PostgreSQL's core is needed for that, and boxes cost a third of what ranges cost.
"""

Index(
    "names_reserved", names.c.namespace, names.c.name, names.c.kind, unique=True, postgresql_where=text("NOT released")
)
Index("names_by_number", names.c.namespace, names.c.stem, names.c.kind, names.c.number)
Index("names_ranges", names.c.namespace, names.c.stem, names.c.kind, postgresql_where=text("count > 1"))

planned_pods = Table(
    "planned_pods",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    text_column("namespace"),
    number_column("pods"),
)
"""Changes of how many pods the live jobs of a namespace have planned; the sum of the rows is what they have.

Rows are only appended, so that no submission waits for another one, and now and then folded into one a namespace.
"""
