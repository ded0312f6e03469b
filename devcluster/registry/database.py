"""The objects on disk, in one SQLite file. Each change is written before it is visible, so a SIGKILL loses nothing."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Another process that holds the file is a second cluster, so waiting longer does not help.
_LOCK_SECONDS = 2.0
_SCHEMA = """
create table if not exists objects (
    resource text not null, namespace text not null, name text not null, version integer not null,
    body blob not null, primary key (resource, namespace, name)
) without rowid;
create table if not exists counters (name text primary key, value integer not null) without rowid;
"""


class DatabaseInUseError(Exception):
    """Another cluster uses the database file."""


class Row(NamedTuple):
    resource: str
    namespace: str
    name: str
    version: int
    body: bytes


class SqliteDatabase:
    """Stores each change in one transaction. The write-ahead log keeps the file consistent after a SIGKILL."""

    def __init__(self, path: Path | None) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        # With isolation_level=None, sqlite3 starts no transactions of its own. `_transaction` has explicit ones.
        self._connection = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=_LOCK_SECONDS)
        self._persistent = path is not None
        try:
            if self._persistent:
                # The exclusive lock keeps a second cluster from using the file.
                self._connection.execute("pragma locking_mode=exclusive")
                self._connection.execute("pragma journal_mode=wal")
                # A SIGKILL loses no transaction in this mode; only a power failure can.
                self._connection.execute("pragma synchronous=normal")
            self._connection.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise DatabaseInUseError(f"{path}: {error}; is another embedded cluster using it?") from error

    def rows(self) -> Iterator[Row]:
        for row in self._connection.execute("select resource, namespace, name, version, body from objects"):
            yield Row(*row)

    def version(self) -> int:
        row = self._connection.execute("select value from counters where name = 'version'").fetchone()
        return int(row[0]) if row else 0

    def put(self, row: Row) -> None:
        # The database of a cluster in memory would only be a second copy of the objects.
        if not self._persistent:
            return
        self._transaction(
            "insert or replace into objects (resource, namespace, name, version, body) values (?, ?, ?, ?, ?)",
            row,
            row.version,
        )

    def remove(self, row: Row) -> None:
        if not self._persistent:
            return
        self._transaction("delete from objects where resource = ? and namespace = ? and name = ?", row[:3], row.version)

    def _transaction(self, statement: str, values: tuple[object, ...], version: int) -> None:
        # Object and version are written together: a version must never be used twice.
        self._connection.execute("begin immediate")
        self._connection.execute(statement, values)
        self._connection.execute("insert or replace into counters values ('version', ?)", (version,))
        self._connection.execute("commit")

    def close(self) -> None:
        self._connection.close()
