"""A real PostgreSQL for each session, and a new database for each test.

    server (embedded, or JOBGATE_TEST_DATABASE_URL) ─▶ template, migrated once ─▶ a copy for each test

Every xdist worker has its own server, which the first test that needs it starts. Its files are in memory if there is
room: a new database has 350 files, and a disk would need four times the CPU time for them.
"""

import asyncio
import os
import secrets
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import pytest
import pytest_asyncio

from app.base.cancellation import TaskGroup
from app.db.installation import leases
from app.db.installation.leases import Lease
from app.db.postgres.engine import Database
from app.embedded_postgres.binaries import PostgresBinaries
from app.embedded_postgres.server import EmbeddedPostgres
from tests.support.waiting import until

EXTERNAL_SERVER = "JOBGATE_TEST_DATABASE_URL"
DEBIAN = Path("/usr/lib/postgresql")
# Nothing must survive a crash of a test's server. Its log is limited because it may be in memory.
FORGETFUL = {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB", "max_wal_size": "128MB"}
MEMORY = Path("/dev/shm")  # Linux' file system in memory
PREFIX = "jobgate-test-postgres-"
ROOM = 2 << 30  # bytes free in memory, for the servers of all workers: each needs about 200 MB
CAN_HANG = {**FORGETFUL, "max_wal_senders": "1"}  # for `writes_hang`: without senders, commits do not wait for standbys


def with_database(url: str, database: str) -> str:
    """The URL of another database of the same server, without a driver in the scheme, as asyncpg requires."""
    parts = urlsplit(url)
    plain = f"{parts.scheme.partition('+')[0]}://{parts.netloc}/{database}"
    return f"{plain}?{parts.query}" if parts.query else plain


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    """Connect without a pool."""
    connection: Any = await asyncpg.connect(url, timeout=90)
    try:
        yield connection
    finally:
        await connection.close(timeout=60)


async def count_rows(db: Database, table: str) -> int:
    async with db.read() as connection:
        return int(await connection.fetchval(f"SELECT count(*) FROM {table}"))


async def execute(url: str, statement: str) -> None:
    async with connected(url) as connection:
        await connection.execute(statement, timeout=120)


@asynccontextmanager
async def writes_hang(server_url: str) -> AsyncIterator[None]:
    """Block every commit that writes, as a disk that does not answer does; reads continue.

    A commit waits for a standby that does not exist. The server must have been started with `CAN_HANG`.
    """
    # ALTER SYSTEM also affects connections that are already open, after a reload.
    await execute(server_url, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    await execute(server_url, "SELECT pg_reload_conf()")
    await until(partial(_a_commit_hangs, server_url))  # the server applies the change some time after the call
    try:
        yield
    finally:
        await execute(server_url, "ALTER SYSTEM RESET synchronous_standby_names")
        await execute(server_url, "SELECT pg_reload_conf()")


async def _a_commit_hangs(server_url: str) -> bool:
    """Write, and return whether the commit waits for a standby."""
    async with connected(server_url) as writer, connected(server_url) as observer, TaskGroup() as group:
        writing = group.create_task(writer.execute("SELECT pg_logical_emit_message(true, 'a test', '')", timeout=60))

        async def outcome() -> bool | None:
            if writing.done():
                return False
            of_writer = "SELECT wait_event FROM pg_stat_activity WHERE pid = $1"
            return await observer.fetchval(of_writer, writer.get_server_pid()) == "SyncRep" or None

        hangs: bool = await until(outcome, lambda found: found is not None)
        writing.cancel()
    return hangs


@asynccontextmanager
async def fresh_database(server_url: str, *, template: str = "template0") -> AsyncIterator[str]:
    """The URL of a new copy of a template database. It is dropped afterwards, despite open connections."""
    name = f"jobgate_test_{secrets.token_hex(8)}"
    # Copying files takes less CPU time than writing them to the log.
    await execute(server_url, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield with_database(server_url, name)
    finally:
        await execute(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def migrated_template(server_url: str, migrate: Callable[[str], None]) -> AsyncIterator[str]:
    """Create a database, run `migrate` on it, and return its name, for `fresh_database` to copy."""
    async with fresh_database(server_url) as url:
        await asyncio.to_thread(migrate, url)
        yield urlsplit(url).path.removeprefix("/")


def debian_binaries() -> PostgresBinaries | None:
    """The directory of the newest installed PostgreSQL of the distribution, 15 or newer."""
    found = [PostgresBinaries.at(program.parent) for program in DEBIAN.glob("*/bin/postgres")]
    recent = [binaries for binaries in found if binaries.major >= 15]
    return max(recent, key=lambda binaries: binaries.major, default=None)


@contextmanager
def directory_in_memory() -> Iterator[Path | None]:
    """A directory in memory, deleted afterwards, or None if there is too little room."""
    # Test runs that were killed could not delete theirs.
    for left in MEMORY.glob(f"{PREFIX}*"):
        if not Path("/proc", left.name.split("-")[-2]).exists():
            shutil.rmtree(left, ignore_errors=True)
    if not os.access(MEMORY, os.W_OK) or shutil.disk_usage(MEMORY).free < ROOM:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=MEMORY))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def postgres_directory(tmp_path: Path) -> Iterator[Path]:
    """A directory for a separate server. Its 40 MB are deleted after the test."""
    directory = tmp_path / "postgres"
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_server_url(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The URL of the session's server, as superuser. Create no tables in it: use `database_url`."""
    external = os.environ.get(EXTERNAL_SERVER)
    if external:
        yield with_database(external, urlsplit(external).path.removeprefix("/") or "postgres")
        return
    with directory_in_memory() as in_memory:
        directory = in_memory or tmp_path_factory.mktemp("postgres")
        async with EmbeddedPostgres(directory, settings=FORGETFUL) as server:
            yield server.url
        shutil.rmtree(directory)  # pytest keeps temporary directories of three runs


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def database_template(postgres_server_url: str) -> AsyncIterator[str]:
    from app.db.postgres.migrations import migrate  # a slow import, which only tests with a database need

    async with migrated_template(postgres_server_url, migrate) as name:
        yield name


@pytest_asyncio.fixture
async def database_url(postgres_server_url: str, database_template: str) -> AsyncIterator[str]:
    """The URL of a new database at the newest revision."""
    async with fresh_database(postgres_server_url, template=database_template) as url:
        yield url


@pytest_asyncio.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    """A pool of connections to a new database at the newest revision."""
    database = await Database.open(database_url, pool_size=10)
    yield database
    await database.close()


@pytest_asyncio.fixture
async def lease(db: Database) -> Lease:
    """The lease of the controller, which the test holds."""
    held = await leases.acquire(db, leases.CONTROLLER, "test", ttl=600)
    assert held is not None
    return held


@pytest_asyncio.fixture
async def empty_database_url(postgres_server_url: str) -> AsyncIterator[str]:
    """The URL of a new empty database."""
    async with fresh_database(postgres_server_url) as url:
        yield url


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def debian_postgres(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[EmbeddedPostgres]:
    """A server of the distribution, with an older major version and another C library than the embedded one."""
    binaries = debian_binaries()
    if binaries is None:
        pytest.skip(f"there is no PostgreSQL 15 or newer in {DEBIAN}: apt-get install postgresql")
    directory = tmp_path_factory.mktemp("debian-postgres")
    async with EmbeddedPostgres(directory, binaries=binaries, settings=FORGETFUL) as server:
        yield server
    shutil.rmtree(directory)


@pytest_asyncio.fixture
async def debian_database_url(debian_postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """An empty database on the distribution's server."""
    async with fresh_database(debian_postgres.url) as url:
        yield url
