"""Run by Alembic for every command, with a connection that `app.db.postgres.migrations` has put into the configuration.

Each migration is a transaction of its own, or several: an index of a large table is built outside of one, so that
writes go on. Two starting processes may migrate at once: the second waits for the first.
"""

import time
from collections.abc import Collection
from typing import Any, cast

from alembic import context
from sqlalchemy import Connection, text

from app.db.postgres.schema_version import COMPATIBILITY_TABLE, REVISION_TABLE, read_migrations, revision_of
from app.models import metadata

# Arbitrary, but the same in every version: migrations of all versions wait for each other.
MIGRATION_LOCK = 7_210_113_355_028_441
# While a migration waits for a table, all later requests queue behind it. It must give up soon, and is repeated.
LOCK_TIMEOUT = "1s"
# A migration that hangs must not keep its locks forever.
STATEMENT_TIMEOUT = "10min"
VERSION_TABLE = "CREATE TABLE IF NOT EXISTS {table} (version_num VARCHAR(32) CONSTRAINT {table}_pkc PRIMARY KEY)"


def run(connection: Connection) -> None:
    _wait_for_others(connection)
    connection.execute(text(f"SET lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"SET statement_timeout = '{STATEMENT_TIMEOUT}'"))
    _adopt_revision(connection)
    # Alembic believes a transaction that is open here to be somebody else's, and would never commit.
    connection.commit()
    context.configure(
        connection=connection,
        target_metadata=metadata,
        compare_server_default=True,
        version_table=REVISION_TABLE,
        transaction_per_migration=True,
        on_version_apply=cast("Any", _record_compatibility),  # it takes keywords, which the type does not say
    )
    with context.begin_transaction():
        context.run_migrations()


def _wait_for_others(connection: Connection) -> None:
    """Take the lock, which ends with the session.

    A statement that waits for the lock has a snapshot, and the build of an index without locks waits for the end of
    all snapshots. So this asks again and again.
    """
    while not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": MIGRATION_LOCK}).scalar():
        connection.commit()
        time.sleep(0.1)


def _adopt_revision(connection: Connection) -> None:
    """Store the revision where this version looks for it, if a program up to revision 0023 has migrated."""
    stored, compatible = (_read(connection, table) for table in (REVISION_TABLE, COMPATIBILITY_TABLE))
    _replace(connection, REVISION_TABLE, revision_of(stored, compatible, read_migrations()))


def _read(connection: Connection, table: str) -> frozenset[str]:
    """Return what a table of revisions holds. It is created if it does not exist."""
    connection.execute(text(VERSION_TABLE.format(table=table)))
    return frozenset(connection.scalars(text(f"SELECT version_num FROM {table}")))  # noqa: S608  a constant


def _record_compatibility(*, heads: Collection[str], **_: object) -> None:
    """Store, in the transaction of each migration, the oldest revision whose programs can use the schema after it."""
    migrations, connection = read_migrations(), context.get_bind()
    _replace(connection, COMPATIBILITY_TABLE, {migrations[revision].compatible_with for revision in heads})


def _replace(connection: Connection, table: str, revisions: Collection[str]) -> None:
    connection.execute(text(f"DELETE FROM {table}"))  # noqa: S608  a constant
    for revision in revisions:
        connection.execute(text(f"INSERT INTO {table} VALUES (:revision)"), {"revision": revision})  # noqa: S608


if context.is_offline_mode():
    raise SystemExit("migrations run against a database: use `jobgate migrate`")
run(context.config.attributes["connection"])
