"""Bring a database to the schema of this version, or undo that. `schema_version` says whether it is due.

Alembic is synchronous and its configuration global, and callers may have an event loop running: each command runs on a
thread of its own with a loop and a connection of its own, one at a time in a process. Other processes wait for the
advisory lock that `migrations/env.py` takes.
"""

import asyncio
import threading
from collections.abc import Callable
from importlib.resources import as_file
from typing import TypeVar

import asyncpg
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.bundled import bundled
from app.db.postgres import schema_version
from app.db.postgres.engine import driver_url
from app.db.postgres.errors import translate_errors
from app.domain.errors import Conflict
from app.models import metadata

_T = TypeVar("_T")
_CONNECT_TIMEOUT = 10.0
_one_at_a_time = threading.Lock()


def migrate(url: str, revision: str = "head") -> None:
    """Run what is missing, in one transaction. Safe to call from several processes at once.

    Raises:
        DatabaseUnavailable: no server answers there, or others hold its tables.
        Conflict: a newer version has migrated it.
    """
    _run(url, lambda configuration, connection: _upgrade(configuration, connection, revision))


def downgrade(url: str, revision: str) -> None:
    """Undo migrations down to `revision`; "base" leaves nothing."""
    _run(url, lambda configuration, _: command.downgrade(configuration, revision))


def drift(url: str) -> list[str]:
    """Where the tables of a migrated database differ from `app.models`; empty when they do not."""
    return _run(url, lambda _, connection: _differences(connection))


def _upgrade(configuration: Config, connection: Connection, revision: str) -> None:
    unknown = set(MigrationContext.configure(connection).get_current_heads()) - schema_version.revisions().known
    if unknown:
        raise Conflict(schema_version.newer(unknown), code="DatabaseNewer")
    connection.rollback()  # looking has begun a transaction, and Alembic would leave it to us to commit
    command.upgrade(configuration, revision)


def _differences(connection: Connection) -> list[str]:
    context = MigrationContext.configure(connection, opts={"compare_server_default": True})
    return [repr(difference) for difference in compare_metadata(context, metadata)]


def _run(url: str, work: Callable[[Config, Connection], _T]) -> _T:
    """Run `work` in a new thread, and return its result or raise its exception."""
    results: list[_T] = []
    errors: list[BaseException] = []

    def target() -> None:
        try:
            with _one_at_a_time, translate_errors():
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
        # SQLAlchemy wraps the error of the driver twice, and `translate_errors` knows only the driver's own.
        cause = error.orig.__cause__ if error.orig else None
        raise cause or error from error
    finally:
        await engine.dispose()


def _with_configuration(connection: Connection, work: Callable[[Config, Connection], _T]) -> _T:
    with as_file(bundled("migrations")) as scripts:
        configuration = Config()
        # The parser of the configuration interpolates `%`.
        configuration.set_main_option("script_location", str(scripts).replace("%", "%%"))
        configuration.set_main_option("path_separator", "os")
        configuration.set_main_option(
            "file_template", "%%(year)d_%%(month).2d_%%(day).2d_%%(hour).2d%%(minute).2d_%%(slug)s"
        )
        configuration.attributes["connection"] = connection
        return work(configuration, connection)
