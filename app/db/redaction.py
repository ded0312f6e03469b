"""Stores what a redaction leaves of an object and of everything that was recorded about it.

The columns follow from `app.models`: all texts, documents and bytes of an object's tables, except those that name or
classify something. A new column is therefore covered. A row of the object itself is changed in one transaction, and the
rows of other tables in batches.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, Generic, TypeAlias
from uuid import UUID

import msgspec
from sqlalchemy import JSON, Column, LargeBinary, Table, Text

from app.db import log_removal
from app.db.feed import changes
from app.db.jobs.edits import record_change
from app.db.jobs.rows import COLUMNS as JOB_COLUMNS
from app.db.jobs.rows import STORED_JOBS, job_row
from app.db.objects.history import REDACTED
from app.db.objects.records import JOB_RECORDS, SAMPLE_RECORDS, RecordTable
from app.db.objects.resources import Row
from app.db.postgres.engine import Connection, Database
from app.db.samples.edits import record_change as record_sample_change
from app.db.samples.rows import COLUMNS as SAMPLE_COLUMNS
from app.db.samples.rows import sample_row
from app.domain.access.actors import Actor
from app.domain.errors import PreconditionFailed
from app.domain.plan import Manifest
from app.domain.redaction import Redaction, json_form
from app.models import jobs as job_tables
from app.models import samples as sample_tables

KEPT: Final = frozenset(
    {
        # names and identities
        *("uid", "namespace", "name", "kind", "api_version", "set_name", "task", "container", "pod_name", "pod_uid"),
        *("hold", "node", "pod_ip", "actor", "actor_id", "created_by", "created_by_id", "traceparent", "tracestate"),
        *("cancel_requested_by", "cancel_requested_by_id", "delete_requested_by", "delete_requested_by_id"),
        # words of the wire format
        *("phase", "ended", "outcome", "stopping", "evidence", "type", "reason"),
        # always null
        "posted",
    }
)
"""Columns that no redaction changes: other rows and objects of the cluster are found by them."""
_TEXTS_OF_CLIENTS: Final = (job_tables.scale_records.c.reason,)  # though columns of this name contain words elsewhere
_SCANNED: Final = 500  # rows of one statement, which reads their texts and returns only their keys
_CHANGED: Final = 20  # rows of one transaction: the log of an attempt has 64 KiB
# The answer to a list of objects is stored with the first of them. All are created within a fraction of this time.
_OF_ONE_REQUEST: Final = timedelta(minutes=1)

_ANSWERS: Final = """
SELECT scope, key, answer FROM idempotency_keys
WHERE created_at BETWEEN $2 AND $3 AND (job_uid = $1 OR position($4::bytea IN answer) > 0) FOR UPDATE
"""
_ANSWER: Final = "UPDATE idempotency_keys SET answer = $3 WHERE scope = $1 AND key = $2"

RedactionCursor: TypeAlias = tuple[int, tuple[int | str, ...]]
"""A table of an object's records by its number, and the key of the last row that was read."""
START: Final[RedactionCursor] = (0, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactionEntry:
    """The history row of a redaction."""

    actor: Actor
    at: datetime
    message: str


@dataclass(frozen=True, kw_only=True)
class Records:
    """The statements that redact the rows of a table with records."""

    of: RecordTable

    @property
    def table(self) -> Table:
        return self.of.table

    @property
    def owner(self) -> str:
        return self.of.owner

    @property
    def key(self) -> list[Column[Any]]:
        return [column for column in self.table.primary_key if column.name != self.owner]

    @cached_property
    def columns(self) -> list[Column[Any]]:
        return redactable_columns(self.table)

    @cached_property
    def first(self) -> str:
        return self._scan("")

    @cached_property
    def following(self) -> str:
        values = ", ".join(f"${5 + index}" for index in range(len(self.key)))
        return self._scan(f"AND ({self._names(self.key)}) > ({values})")

    @cached_property
    def lock(self) -> str:
        return f"SELECT {self._names(self.columns)} FROM {self.table.name} WHERE {self._is_row} FOR UPDATE"  # noqa: S608

    @cached_property
    def update(self) -> str:
        start = 2 + len(self.key)
        assigned = ", ".join(f"{column.name} = ${start + index}" for index, column in enumerate(self.columns))
        return f"UPDATE {self.table.name} SET {assigned} WHERE {self._is_row}"  # noqa: S608  constants

    @property
    def _is_row(self) -> str:
        return " AND ".join(
            f"{name} = ${number}" for number, name in enumerate([self.owner, *(key.name for key in self.key)], start=1)
        )

    def _scan(self, condition: str) -> str:
        """Return the statement for keys of rows, in their order, and whether the row has one of the texts."""
        found = " OR ".join(map(_contains, self.columns))
        return f"""SELECT {self._names(self.key)}, {found} AS found FROM {self.table.name},
            (SELECT $2::text[] AS texts, $3::text[] AS jsons, $4::bytea[] AS data) AS wanted
            WHERE {self.owner} = $1 {condition} ORDER BY {self._names(self.key)} LIMIT {_SCANNED}"""  # noqa: S608

    @staticmethod
    def _names(columns: Sequence[Column[Any]]) -> str:
        return ", ".join(column.name for column in columns)


@dataclass(frozen=True, kw_only=True)
class Redactable(Generic[Row]):
    """How the objects of a resource are redacted.

    `columns` are the input of `row`. `also` are further assignments of each change: a concurrent decision of the
    controller, which would write what it has read before, must be refused. `record` writes history and feed.
    """

    table: Table
    alias: str
    columns: str
    row: Callable[[Any], Row]
    resource: Callable[[Row], str]
    record: Callable[[Connection, Any, str, tuple[datetime, str, str, Actor]], Awaitable[Any]]
    records: Sequence[Records]
    also: str = ""

    @cached_property
    def texts(self) -> list[Column[Any]]:
        """The columns beside the two manifests and the labels."""
        return [
            column
            for column in redactable_columns(self.table)
            if column.name not in {"manifest", "posted_manifest", "labels"}
        ]

    @cached_property
    def lock(self) -> str:
        names = ", ".join(["version", "posted_manifest", *(column.name for column in self.texts)])
        return f"SELECT {names} FROM {self.table.name} WHERE uid = $1 FOR UPDATE"  # noqa: S608  constants

    @cached_property
    def update(self) -> str:
        assigned = "".join(f", {column.name} = ${6 + index}" for index, column in enumerate(self.texts))
        return self._update(f", manifest = $3, posted_manifest = $4, labels = $5{assigned}")

    @cached_property
    def touch(self) -> str:
        return self._update("")

    def _update(self, assigned: str) -> str:
        return f"""UPDATE {self.table.name} AS {self.alias}
            SET version = version + 1, history_count = history_count + $2::int{self.also}{assigned}
            WHERE uid = $1 RETURNING {self.alias}.history_count, {self.columns}"""  # noqa: S608  constants


def redactable_columns(table: Table) -> list[Column[Any]]:
    """Return the columns of a table in which a text of a client or of its program can be."""
    return [
        column
        for column in table.columns
        if isinstance(column.type, Text | JSON | LargeBinary)
        and (column.name not in KEPT or any(column is text for text in _TEXTS_OF_CLIENTS))
    ]


def _contains(column: Column[Any]) -> str:
    """Return the SQL condition that a column has one of the texts, in the form that its type has them in."""
    if isinstance(column.type, LargeBinary):
        return f"EXISTS (SELECT FROM unnest(wanted.data) AS n WHERE position(n IN {column.name}) > 0)"
    forms, text = ("jsons", f"{column.name}::text") if isinstance(column.type, JSON) else ("texts", column.name)
    return f"EXISTS (SELECT FROM unnest(wanted.{forms}) AS n WHERE strpos({text}, n) > 0)"


async def store(
    db: Database,
    redactable: Redactable[Row],
    row: Row,
    kept: tuple[Manifest, Manifest | None, dict[str, str]],
    redaction: Redaction,
    entry: RedactionEntry,
) -> int:
    """Store manifest, posted manifest and labels, and redact all else in the row and stored answers.

    Returns the number of rows that changed.

    Raises:
        PreconditionFailed: the object has changed since `row` was read.
    """
    async with db.begin() as connection:
        locked = await connection.fetchrow(redactable.lock, row.uid)
        if locked is None or locked["version"] != row.version:
            raise PreconditionFailed("the object has changed since it was read: repeat the request")
        texts = [redact(locked[column.name], redaction) for column in redactable.texts]
        is_same = texts == [locked[column.name] for column in redactable.texts]
        is_same = is_same and kept[:2] == (row.manifest, locked["posted_manifest"])
        answers = await _redact_answers(connection, row, redaction)
        if is_same and not answers:
            return 0
        after = await connection.fetchrow(redactable.update, row.uid, 1, *kept, *texts)
        await redactable.record(connection, after, changes.EDITED, (entry.at, REDACTED, entry.message, entry.actor))
    return 1 + answers


async def _redact_answers(connection: Connection, row: Row, redaction: Redaction) -> int:
    """Redact the first answers that are kept for repeated requests: they contain whole objects."""
    uid, changed = str(row.uid), 0
    begin, end = row.created_at - _OF_ONE_REQUEST, row.created_at + _OF_ONE_REQUEST
    for found in await connection.fetch(_ANSWERS, row.uid, begin, end, uid.encode()):
        answer = msgspec.json.decode(found["answer"])
        after = redaction.answer(answer, uid)
        if after != answer:
            await connection.execute(_ANSWER, found["scope"], found["key"], msgspec.json.encode(after))
            changed += 1
    return changed


async def remove_logs(
    db: Database, redactable: Redactable[Row], uid: UUID, entry: RedactionEntry, *, is_first: bool
) -> int:
    """Remove the whole logs of an object, any of which can have the text. Return how many had text.

    With `is_first`, `entry` is written to the history of the object if there were any.
    """
    async with db.begin() as connection:
        # The row of the object before those about it, as in every transaction.
        await connection.fetchrow(redactable.lock, uid)
        removed = await log_removal.redact(connection, uid, entry.at)
        if removed and is_first:
            after = await connection.fetchrow(redactable.touch, uid, 1)
            await redactable.record(connection, after, changes.EDITED, (entry.at, REDACTED, entry.message, entry.actor))
    return removed


async def batch(
    db: Database,
    redactable: Redactable[Row],
    uid: UUID,
    redaction: Redaction,
    cursor: RedactionCursor,
    entry: RedactionEntry | None,
) -> tuple[RedactionCursor | None, int]:
    """Redact the next records of an object.

    `entry` is written to its history if a record changes. Returns where to continue, None at the end, and the number of
    rows that changed.
    """
    number, after = cursor
    if number >= len(redactable.records):
        return None, 0
    records = redactable.records[number]
    texts = list(redaction.texts)
    arguments = (texts, [json_form(text) for text in texts], [text.encode() for text in texts])
    async with db.begin() as connection:
        rows = await connection.fetch(records.following if after else records.first, uid, *arguments, *after)
        keys = [tuple(row)[:-1] for row in rows if row["found"]]
        changed = await _redact_rows(connection, redactable, uid, records, keys[:_CHANGED], redaction, entry)
    if len(keys) > _CHANGED:
        return (number, keys[_CHANGED - 1]), changed
    return ((number, tuple(rows[-1])[:-1]) if len(rows) == _SCANNED else (number + 1, ())), changed


async def _redact_rows(
    connection: Connection,
    redactable: Redactable[Row],
    uid: UUID,
    records: Records,
    keys: Sequence[tuple[Any, ...]],
    redaction: Redaction,
    entry: RedactionEntry | None,
) -> int:
    if not keys:
        return 0
    # The row of the object before those about it, as in every transaction.
    if await connection.fetchrow(redactable.lock, uid) is None:
        return 0  # it was purged meanwhile
    changed = 0
    for key in keys:
        found = await connection.fetchrow(records.lock, uid, *key)
        values = [] if found is None else [redact(value, redaction) for value in found]
        if found is not None and values != list(found):
            await connection.execute(records.update, uid, *key, *values)
            changed += 1
    if not changed:
        return 0
    after = await connection.fetchrow(redactable.touch, uid, int(entry is not None))
    row = redactable.row(after)
    if entry is not None:
        await redactable.record(connection, after, changes.EDITED, (entry.at, REDACTED, entry.message, entry.actor))
    else:
        version = (row.namespace, row.uid, row.version)
        await changes.announce(connection, changes.EDITED, [version], resource=redactable.resource(row))
    return changed


def redact(value: Any, redaction: Redaction) -> Any:
    """Return the value of a column without the texts."""
    if isinstance(value, str):
        return redaction.text(value)
    return redaction.data(value) if isinstance(value, bytes) else redaction.record(value)


async def _record_sample(
    connection: Connection, after: Any, what: str, entry: tuple[datetime, str, str, Actor]
) -> None:
    await record_sample_change(connection, sample_row(after), what, entry)


JOBS: Final = Redactable(
    table=job_tables.jobs,
    alias="j",
    columns=JOB_COLUMNS,
    row=job_row,
    resource=lambda _: STORED_JOBS.resource,
    record=record_change,
    records=[Records(of=table) for table in JOB_RECORDS],
    also=", status_version = status_version + 1, redacted_at = clock_timestamp()",
)
SAMPLES: Final = Redactable(
    table=sample_tables.samples,
    alias="s",
    columns=SAMPLE_COLUMNS,
    row=sample_row,
    resource=lambda row: row.of_kind.resource,
    record=_record_sample,
    records=[Records(of=table) for table in SAMPLE_RECORDS],
)
