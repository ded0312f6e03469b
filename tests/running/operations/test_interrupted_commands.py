"""A signal ends `export`, `import` and `purge` after their present batch, and the same command continues."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from subprocess import CompletedProcess

import pytest

from app.db.postgres.engine import Database
from app.db.purge import OBJECTS
from app.exports.exporter import JOBS_AT_ONCE
from app.running.operations.interruptions import INTERRUPTED, finish_or_abandon
from tests.api.conftest import gateway
from tests.exports.ended_jobs import ended_job, exported, remove, stored
from tests.running.operations.test_purging import store
from tests.support.gateways.forked_commands import started
from tests.support.gateways.gateway import Gateway
from tests.support.postgres import count_rows
from tests.support.waiting import until

__all__ = ["gateway"]

JOBS = JOBS_AT_ONCE + 30
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'attempts'::regclass"
# Longer than the test waits for a command that has been told to end.
PATIENT = {"JOBGATE_DATABASE_TIMEOUT": "300"}
CONTINUES = "run the same command again, and it continues\n"


@asynccontextmanager
async def held(db: Database) -> AsyncIterator[None]:
    """Let each command wait that reads or writes attempts."""
    async with db.begin() as connection:
        await connection.execute("LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE")
        yield


async def run(command: Sequence[str], db: Database, home: Path, signal: Signals | None) -> "CompletedProcess[str]":
    """Run a command to its end. A signal comes in its first batch."""
    with started(*command, home=home, JOBGATE_DATABASE_URL=db.url, **PATIENT) as process:
        if signal is not None:
            async with held(db):
                await until(lambda: _waiting(db), what="the command is in its first batch", within=120)
                os.kill(process.pid, signal)
        return await asyncio.to_thread(process.ended)


async def _waiting(db: Database) -> int:
    async with db.read() as connection:
        return int(await connection.fetchval(WAITING))


@pytest.mark.parametrize("signal", [SIGTERM, SIGINT])
async def test_an_export_keeps_what_it_has_and_continues(db: Database, tmp_path: Path, signal: Signals) -> None:
    await store(db, "team", "Failed", JOBS)
    command = ("export", "--to", str(tmp_path / "export"))
    ran = await run(command, db, tmp_path, signal)
    assert ran.returncode == INTERRUPTED, ran.stderr
    assert ran.stdout == (
        f"segment 1: {JOBS_AT_ONCE} jobs\ninterrupted after 1 segments, {JOBS_AT_ONCE} jobs added: {CONTINUES}"
    )
    again = await run(command, db, tmp_path, None)
    assert again.returncode == 0
    assert again.stdout.endswith("the export is complete: 2 segments, 30 jobs added\n")


@pytest.mark.parametrize("signal", [SIGTERM, SIGINT])
async def test_an_import_keeps_what_it_has_and_continues(gateway: Gateway, tmp_path: Path, signal: Signals) -> None:
    uids = [await ended_job(gateway, name) for name in ("one", "two", "three")]
    before = await stored(gateway.db, *uids)
    await exported(gateway.db, tmp_path / "export")
    await remove(gateway.db, *uids)
    command = ("import", str(tmp_path / "export"))
    ran = await run(command, gateway.db, tmp_path, signal)
    assert ran.returncode == INTERRUPTED, ran.stderr
    assert ran.stdout == f"imported 1 jobs; 0 were present\ninterrupted: {CONTINUES}"
    again = await run(command, gateway.db, tmp_path, None)
    assert again.returncode == 0
    assert again.stdout.endswith("imported 2 jobs; 1 were present\n")
    assert await stored(gateway.db, *uids) == before


@pytest.mark.parametrize("signal", [SIGTERM, SIGINT])
async def test_a_purge_says_what_it_has_deleted(db: Database, tmp_path: Path, signal: Signals) -> None:
    await store(db, "team", "Failed", JOBS)
    command = ("purge", "--before", "0d")
    ran = await run(command, db, tmp_path, signal)
    assert ran.returncode == INTERRUPTED, ran.stderr
    assert ran.stdout.endswith(f"deleted: {OBJECTS} jobs; not complete: run the command again\n")
    assert await count_rows(db, "jobs") == JOBS - OBJECTS
    again = await run(command, db, tmp_path, None)
    assert again.stdout.endswith(f"deleted: {JOBS - OBJECTS} jobs\n")


async def test_a_store_that_does_not_answer_keeps_no_command_from_its_end(db: Database, tmp_path: Path) -> None:
    await store(db, "team", "Failed", 1)
    connections: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _, writer: connections.append(writer), "127.0.0.1", 0)
    endpoint = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
    access = {"AWS_ENDPOINT": endpoint, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "r"}
    access |= {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}
    async with silent:
        given = access | {"JOBGATE_DATABASE_URL": db.url}
        with started("export", "--to", "s3://bucket/export", home=tmp_path, **given) as process:
            await until(lambda: connections, what="the command asks the store", within=120)
            os.kill(process.pid, SIGTERM)
            ran = await asyncio.to_thread(process.ended)
        for writer in connections:
            writer.close()
    assert (ran.returncode, ran.stdout) == (INTERRUPTED, f"interrupted after 0 segments, 0 jobs added: {CONTINUES}")


async def test_work_that_does_not_end_is_cancelled_after_the_grace() -> None:
    stop, ended = asyncio.Event(), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    stop.set()
    await finish_or_abandon(work(), stop, grace=0.01)
    assert ended == ["cancelled"]


async def test_an_error_of_the_work_is_not_hidden() -> None:
    async def work() -> None:
        raise TimeoutError("of the work")

    with pytest.raises(ExceptionGroup) as raised:
        await finish_or_abandon(work(), asyncio.Event())
    assert [str(error) for error in raised.value.exceptions] == ["of the work"]
