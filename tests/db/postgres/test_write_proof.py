"""Readiness proves that Postgres accepts writes: a full disk, and a disk that hangs, answer reads as ever."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from app.base.clock import SystemClock
from app.db.installation import identity as installation
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.db.postgres.migrations import migrate
from app.db.postgres.write_proof import prove_writable
from app.embedded_postgres.server import EmbeddedPostgres
from app.running.readiness import PROOF_EVERY, PROOF_WITHIN, Readiness
from tests.k8s.support import ManualClock
from tests.support.machine.disks import small_disk
from tests.support.postgres import CAN_HANG, FORGETFUL, writes_hang

WITHIN = 60.0
COUNTS_WRITES = """
    CREATE SEQUENCE writes;
    CREATE FUNCTION count_write() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN PERFORM nextval('writes'); RETURN NEW; END $$;
    CREATE TRIGGER count_write BEFORE UPDATE ON installation FOR EACH ROW EXECUTE FUNCTION count_write()
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 160) as found:
        yield found


@pytest_asyncio.fixture
async def server(postgres_directory: Path) -> AsyncIterator[EmbeddedPostgres]:
    async with EmbeddedPostgres(postgres_directory, settings=CAN_HANG) as running:
        await asyncio.to_thread(migrate, running.url)
        yield running


def fill(file: Path) -> None:
    """Write until there is no space left."""
    with suppress(OSError), file.open("wb", buffering=0) as unbuffered:
        while True:
            unbuffered.write(bytes(2**16))


async def says(readiness: Readiness) -> tuple[bool, str]:
    check = (await readiness())[0]
    assert check.name == "database"
    return check.ok, check.detail


async def test_a_full_disk_is_not_ready_although_reads_and_small_updates_succeed(disk: Path) -> None:
    async with EmbeddedPostgres(disk / "postgres", settings=FORGETFUL) as server:
        await asyncio.to_thread(migrate, server.url)
        db = await Database.open(server.url, pool_size=2)
        await prove_writable(db, WITHIN)
        filler = disk / "filler"
        fill(filler)
        async with db.read() as connection:
            await connection.execute("UPDATE installation SET id = id")
        with pytest.raises(DatabaseUnavailable, match="No space left"):
            await prove_writable(db, WITHIN)
        ready, detail = await says(Readiness(db, SystemClock(), None, asyncio.Event()))
        assert not ready
        assert "No space left" in detail
        filler.unlink()
        await prove_writable(db, WITHIN)
        await db.close()


async def test_writes_that_hang_are_not_ready_until_they_go_on(server: EmbeddedPostgres) -> None:
    db, clock = await Database.open(server.url, pool_size=2), ManualClock()
    await installation.get_or_create(db, uuid4(), clock.now())
    readiness = Readiness(db, clock, None, asyncio.Event())
    assert await says(readiness) == (True, "")
    async with writes_hang(server.url):
        async with db.read() as connection:
            assert await connection.fetchval("SELECT count(*) FROM installation") == 1
        assert (await says(readiness))[0], "a proof is good for some seconds"
        clock.seconds += PROOF_EVERY + 0.1
        ready, detail = await asyncio.wait_for(says(readiness), WITHIN)
        assert (ready, detail) == (False, f"the database has not accepted a write within {PROOF_WITHIN:g} s")
    clock.seconds += PROOF_EVERY + 0.1
    assert await says(readiness) == (True, "")
    await db.close()


async def test_concurrent_readiness_checks_share_one_write(database_url: str) -> None:
    db = await Database.open(database_url, pool_size=2)
    made = await installation.get_or_create(db, uuid4(), ManualClock().now())
    readiness = Readiness(db, ManualClock(), None, asyncio.Event())
    async with db.begin() as connection:
        await connection.execute(COUNTS_WRITES)
    assert all(checks[0].ok for checks in await asyncio.gather(*(readiness() for _ in range(50))))
    async with db.read() as connection:
        assert tuple(await connection.fetchrow("SELECT last_value, is_called FROM writes")) == (1, True)
    assert (await installation.get_or_create(db, uuid4(), ManualClock().now())).id == made.id
    await db.close()
