"""Bring a database to the schema of this version, or undo that. `schema_version` determines whether it is needed.

Alembic is synchronous and its configuration global, and callers may have an event loop running: each command runs on a
thread of its own with a loop and a connection of its own, one at a time in a process. Other processes wait for the
advisory lock that `migrations/env.py` takes.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from importlib.resources import as_file
from typing import TypeVar

import asyncpg
import structlog
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.bundled import bundled_directory
from app.db.postgres import schema_version
from app.db.postgres.engine import driver_url
from app.db.postgres.errors import TranslatedErrors
from app.db.postgres.schema_version import COMPATIBILITY_TABLE, REVISION_TABLE
from app.domain.errors import Conflict
from app.models import metadata

log = structlog.get_logger(__name__)

_T = TypeVar("_T")
_CONNECT_TIMEOUT = 10.0
_one_at_a_time = threading.Lock()


# Another client holds a lock for longer than a migration waits at once. Together about five minutes.
_LOCK_TRIES = 100
_LOCK_PAUSE = 2.0
# As models have them: those of the table that stores its long values begin with `toast.`.
_STORAGE = """
SELECT t.relname, COALESCE(t.reloptions, '{}') || ARRAY(SELECT 'toast.' || each FROM unnest(long.reloptions) AS each)
FROM pg_class AS t LEFT JOIN pg_class AS long ON long.oid = t.reltoastrelid
WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace ORDER BY t.relname
"""


def migrate(url: str, revision: str = "head") -> None:
    """Run what is missing, each migration in a transaction. Safe to call from several processes at once.

    Nothing happens if a newer version has migrated the database, and this version can use it.

    Raises:
        DatabaseUnavailable: no server answers there, or others hold its tables.
        Conflict: a newer version has migrated it, and this version cannot use it.
    """
    _run(url, lambda configuration, connection: _upgrade(configuration, connection, revision))


def downgrade(url: str, revision: str) -> None:
    """Undo migrations down to `revision`; "base" leaves nothing.

    Raises:
        DatabaseUnavailable: no server answers there, or others hold its tables.
    """
    _run(url, lambda configuration, _: _retry_while_locked(lambda: command.downgrade(configuration, revision)))


def drift(url: str) -> list[str]:
    """Return where the tables of a migrated database differ from `app.models`, a line for each difference."""
    return _run(url, lambda _, connection: _differences(connection))


def _upgrade(configuration: Config, connection: Connection, revision: str) -> None:
    known = schema_version.revisions().known
    compatible = _stored(connection, COMPATIBILITY_TABLE)
    unknown = (_stored(connection, REVISION_TABLE) or compatible) - known
    connection.rollback()  # the reads have begun a transaction, and Alembic does not commit one that it has not begun
    if not unknown:
        _retry_while_locked(lambda: command.upgrade(configuration, revision))
    elif not schema_version.is_compatible(compatible, known):
        raise Conflict(schema_version.newer(unknown, compatible), code="DatabaseNewer")


def _stored(connection: Connection, table: str) -> set[str]:
    return set(MigrationContext.configure(connection, opts={"version_table": table}).get_current_heads())


def _retry_while_locked(work: Callable[[], None]) -> None:
    """Repeat the work while other clients hold the locks that it needs. It gives up soon, so that others need not wait.

    Every migration is a transaction, so a repetition begins with the one that failed.
    """
    for left in range(_LOCK_TRIES - 1, -1, -1):
        try:
            work()
        except DBAPIError as error:
            if not left or not isinstance(_cause(error), asyncpg.LockNotAvailableError | asyncpg.DeadlockDetectedError):
                raise
            log.info("migration.waits", error=str(_cause(error)), tries_left=left)
            time.sleep(_LOCK_PAUSE)
        else:
            return


def _differences(connection: Connection) -> list[str]:
    options = {
        "compare_server_default": True,
        "version_table": REVISION_TABLE,
        "include_name": lambda name, type_, _: (type_, name) != ("table", COMPATIBILITY_TABLE),
    }
    context = MigrationContext.configure(connection, opts=options)
    return [*map(repr, compare_metadata(context, metadata)), *_differences_of_storage(connection)]


def _differences_of_storage(connection: Connection) -> Iterator[str]:
    """Yield the tables whose storage parameters, such as when they are vacuumed, are others: Alembic compares none."""
    for name, stored in connection.execute(text(_STORAGE)):
        table = metadata.tables.get(name)
        options = table.dialect_options["postgresql"]["with"] if table is not None else None
        wanted = sorted(f"{key}={value}" for key, value in (options or {}).items())
        if sorted(stored) != wanted:
            yield f"table {name} has {sorted(stored)}, not {wanted}"


def _run(url: str, work: Callable[[Config, Connection], _T]) -> _T:
    """Run `work` in a new thread, and return its result or raise its exception."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            with _one_at_a_time, TranslatedErrors():
                results.append(asyncio.run(_connect_and_work(url, work)))
        except BaseException as error:  # noqa: BLE001  it is raised again on the caller's thread
            errors.append(error)

    thread = threading.Thread(target=target, name="migrations")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


async def _connect_and_work(url: str, work: Callable[[Config, Connection], _T]) -> _T:
    # SQLAlchemy never sees the URL: it reads sockets and options differently from the driver.
    engine = create_async_engine(
        "postgresql+asyncpg://",
        poolclass=NullPool,
        async_creator=lambda: asyncpg.connect(
            driver_url(url), timeout=_CONNECT_TIMEOUT, server_settings={"application_name": "jobgate migrate"}
        ),
    )
    try:
        async with engine.connect() as connection:
            return await connection.run_sync(_with_configuration, work)
    except DBAPIError as error:
        raise _cause(error) from error
    finally:
        await engine.dispose()


def _cause(error: DBAPIError) -> BaseException:
    """Return the error of the driver, which SQLAlchemy wraps twice. `TranslatedErrors` knows only the driver's own."""
    return (error.orig.__cause__ if error.orig else None) or error


def _with_configuration(connection: Connection, work: Callable[[Config, Connection], _T]) -> _T:
    with as_file(bundled_directory("migrations")) as scripts:
        configuration = Config()
        # The parser of the configuration interpolates `%`.
        configuration.set_main_option("script_location", str(scripts).replace("%", "%%"))
        configuration.set_main_option("path_separator", "os")
        configuration.set_main_option(
            "file_template", "%%(year)d_%%(month).2d_%%(day).2d_%%(hour).2d%%(minute).2d_%%(slug)s"
        )
        configuration.attributes["connection"] = connection
        return work(configuration, connection)
