"""What live jobs reserve in a namespace: names, and room for pods; and the jobs that wait for room."""

from sqlalchemy import BigInteger, Column, Computed, Identity, Index, Integer, Table, Text, desc, text
from sqlalchemy.dialects.postgresql import ExcludeConstraint

from app.models.base import flag_column, metadata, number_column, text_column, time_column, uid_column, word_column

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
"""Names that a job uses in its namespace: its own, and those of its pods, Services and ConfigMaps.

A row stands for `name` and the `count - 1` names that follow it by number, so the names of 10 000 replicas are one row.
`name` consists of `stem` and `number`, by the rule of `app.domain.reservations.name_ranges`. A name is reserved until
its job ends. Then it is released, but stored until the objects of the job are gone, so that the next job with this name
can wait for their removal.

Two live jobs never share a name:

- `names_reserved` enforces this for the first name of each row, and so for names without a number.
- `names_apart` enforces it for numbered names. A row is a line in the plane. Its family (namespace, kind and stem, as
  72 bits of their hash) is its position, and its numbers are its extent. Lines that touch share a name. This needs only
  operator classes of PostgreSQL's core, and boxes cost a third of ranges.
"""

Index(
    "names_reserved", names.c.namespace, names.c.name, names.c.kind, unique=True, postgresql_where=text("NOT released")
)
# These two find the rows that share a name with a range: those that begin inside it, and the few ranges that reach into
# it.
Index("names_by_number", names.c.namespace, names.c.stem, names.c.kind, names.c.number)
Index("names_ranges", names.c.namespace, names.c.stem, names.c.kind, postgresql_where=text("count > 1"))

planned_pods = Table(
    "planned_pods",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    text_column("namespace"),
    number_column("pods"),
)
"""Changes of the number of pods that live jobs plan in a namespace. The sum of the rows is the current number.

Transactions only append rows, so submissions do not wait for each other. A reader folds many rows into one.
"""

room_waits = Table(
    "room_waits",
    metadata,
    uid_column("job_uid", primary_key=True),
    Column("id", BigInteger, Identity(always=True), nullable=False),
    text_column("namespace"),
    number_column("priority"),
    time_column("created_at"),
    number_column("pods"),
)
"""Live jobs that wait for room for their pods. `jobs.planned_pods` of such a job is 0 until it has room.

`created_at` is the time of its submission. `id` is the order of jobs that were submitted at the same time.
"""

Index(
    "room_waits_in_order",
    room_waits.c.namespace,
    desc(room_waits.c.priority),
    room_waits.c.created_at,
    room_waits.c.id,
)
