"""The side of jobgate: a durable embedded PostgreSQL, and `jobgate serve` as separate processes."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg

from app.base.clock import SystemClock
from app.db.installation import tokens
from app.db.postgres import migrations
from app.db.postgres.engine import Database
from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed, Target

_READY = "jobgate is ready at http://127.0.0.1:"
_START_SECONDS = 150.0  # on a busy machine, importing the program takes long
_STOP_SECONDS = 15.0  # then the process is killed: its database is deleted anyway


async def new_database(postgres: EmbeddedPostgres, name: str) -> str:
    """Create an empty database with the schema, and return its URL."""
    connection: Any = await asyncpg.connect(postgres.url, timeout=10)
    try:
        await connection.execute(f"CREATE DATABASE {name}", timeout=30)
    finally:
        await connection.close(timeout=10)
    url = postgres.url.replace("/jobgate?", f"/{name}?", 1)
    await asyncio.to_thread(migrations.migrate, url)
    return url


async def durability(url: str) -> str:
    """The settings of PostgreSQL that determine its durability."""
    connection: Any = await asyncpg.connect(url, timeout=10)
    try:
        settings = ("server_version", "fsync", "synchronous_commit", "full_page_writes")
        return ", ".join([f"{name} {await connection.fetchval(f'SHOW {name}')}" for name in settings])
    finally:
        await connection.close(timeout=10)


async def new_token(url: str, name: str = "bench") -> str:
    db = await Database.open(url, pool_size=2)
    try:
        _, secret = await tokens.create(db, name=name, role="submitter", namespaces=["*"], now=SystemClock().now())
        return secret
    finally:
        await db.close()


@asynccontextmanager
async def gateway(
    url: str,
    directory: Path,
    postgres: EmbeddedPostgres,
    *,
    role: str,
    kubeconfig: Path | None = None,
    token: str = "",
    workers: int | None = 1,
    settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Target]:
    """Run `jobgate serve` in one role, with tokens.

    Args:
        workers: None for the default of `jobgate serve`. With 1, the figures are those of one process.
        settings: environment variables; without JOBGATE_PORT, the port is a free one.
    """
    # Settings of the shell must not change the figures.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JOBGATE_")}
    environment |= {"JOBGATE_DATABASE_URL": url, "JOBGATE_LOG_LEVEL": "warning", "JOBGATE_LOG_FORMAT": "text"}
    # Without a controller no job ends, so the submissions of a run add up.
    environment |= {"JOBGATE_MAX_LIVE_PODS": "100000000", "JOBGATE_MAX_LIVE_PODS_PER_NAMESPACE": "100000000"}
    environment |= {"JOBGATE_PORT": "0"} | ({} if workers is None else {"JOBGATE_WORKERS": str(workers)})
    environment |= settings or {}
    if kubeconfig is not None:
        environment["JOBGATE_KUBECONFIG"] = str(kubeconfig)
    with (directory / f"gateway-{role}.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "app.cli", "serve", "--role", role),
            env=environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
        )
    try:
        bound = await _port(process, role)
        assert postgres.pid is not None
        pids = {"jobgate": process.pid, "postgres": postgres.pid}
        yield Target(name="jobgate", port=bound, tls=False, token=token, pids=pids)
    finally:
        if process.returncode is None:
            process.terminate()
            try:
                async with asyncio.timeout(_STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()


async def _port(process: asyncio.subprocess.Process, role: str) -> int:
    assert process.stdout is not None
    line = ""
    try:
        async with asyncio.timeout(_START_SECONDS):
            line = (await process.stdout.readline()).decode()
    except TimeoutError:
        pass
    if not line.startswith(_READY):
        raise MeasurementFailed(f"jobgate did not start in the role {role}: {line!r}")
    return int(line.removeprefix(_READY))
