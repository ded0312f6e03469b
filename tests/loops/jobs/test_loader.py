"""Jobs of the queue are loaded in batches, the next one while one is in work, in bounded memory."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio

from app.base.cancellation import TaskGroup
from app.base.clock import SystemClock
from app.db.jobs import controller
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.access.namespaces import EVERY_NAMESPACE
from app.domain.reservations.pod_limits import DEFAULT_LIMITS
from app.loops.jobs.loader import BATCH, LoadedJobs, Loader
from app.loops.jobs.memory_budget import BATCH_BYTES, reconcile_bytes
from app.loops.workqueue import WorkQueue
from tests.db.factories import new_job, submitted


class Loading:
    """A loader on PostgreSQL. `ended` and `paused` are the uids that it reports."""

    def __init__(self, db: Database, limit: int = BATCH_BYTES) -> None:
        self.db = db
        self.queue = WorkQueue(SystemClock())
        self.ended: list[str] = []
        self.paused: list[str] = []
        self.loader = Loader(
            db,
            EVERY_NAMESPACE,
            DEFAULT_LIMITS,
            SystemClock(),
            self.queue,
            quiet=self.ended.append,
            pause=self._pause,
            limit=limit,
        )

    async def _pause(self, keys: Sequence[str], _: DatabaseUnavailable) -> None:
        self.paused += keys
        for key in keys:
            self.queue.add(key)
            self.queue.done(key)

    async def submit(self, count: int) -> list[UUID]:
        uids = [uid for _ in range(count) for uid in await submitted(self.db, new_job(f"job-{uuid4()}"))]
        for uid in uids:
            self.queue.add(str(uid))
        return uids


@pytest_asyncio.fixture
async def db(database_url: str) -> AsyncIterator[Database]:
    db = await Database.open(database_url)
    yield db
    await db.close()


async def test_queued_jobs_are_loaded_together(db: Database) -> None:
    loading = Loading(db)
    uids = await loading.submit(3)
    batch = await loading.loader.next()
    assert list(batch.jobs) == list(batch.sizes) == uids
    assert batch.memory == sum(map(reconcile_bytes, batch.sizes.values()))
    assert {uid: job.uid for uid, job in batch.jobs.items()} == {uid: uid for uid in uids}


async def test_a_job_that_does_not_exist_is_given_back_and_the_loader_waits_for_others(db: Database) -> None:
    loading = Loading(db)
    missing = str(uuid4())
    loading.queue.add(missing)
    async with TaskGroup() as group:
        following = group.create_task(loading.loader.next())
        while not loading.ended:
            await asyncio.sleep(0)
        (uid,) = await loading.submit(1)
    assert loading.ended == [missing]
    assert list(following.result().jobs) == [uid]
    loading.queue.add(missing)
    assert missing in loading.queue, "its worker is done"


@pytest.mark.parametrize(("queued", "full"), [(BATCH - 1, False), (BATCH, True)])
async def test_a_full_batch_is_known(db: Database, queued: int, *, full: bool) -> None:
    loading = Loading(db)
    for _ in range(queued):
        loading.queue.add(str(uuid4()))
    assert loading.loader.has_full_batch is full


async def test_a_batch_waits_for_the_memory_of_the_one_before(db: Database) -> None:
    (size,) = (await controller.read_sizes(db, await submitted(db, new_job()))).values()
    loading = Loading(db, limit=2 * reconcile_bytes(size))
    uids = await loading.submit(3)
    first = await loading.loader.next()
    assert loading.loader.has_full_batch, "the third job does not fit, whatever else is queued"
    async with TaskGroup() as group:
        following = group.create_task(loading.loader.next())
        for _ in range(3):
            await asyncio.sleep(0)
        assert db.connections_in_use == 0, "nothing is loaded"
        assert not following.done()
        loading.loader.release(first)
    assert [list(batch.jobs) for batch in (first, following.result())] == [uids[:2], uids[2:]]


async def test_a_job_beyond_the_limit_is_loaded_alone(db: Database) -> None:
    loading = Loading(db, limit=1)
    uids = await loading.submit(2)
    batches: list[LoadedJobs] = []
    for _ in uids:
        batches.append(await loading.loader.next())
        loading.loader.release(batches[-1])
    assert [list(batch.jobs) for batch in batches] == [[uid] for uid in uids]


@pytest.mark.parametrize("step", ["read_sizes", "load"])
async def test_jobs_that_postgres_does_not_answer_for_come_again(
    db: Database, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = getattr(controller, step)

    async def fail_once(*_: Any) -> Any:
        monkeypatch.setattr(controller, step, read)
        raise DatabaseUnavailable("no server answers")

    monkeypatch.setattr(controller, step, fail_once)
    loading = Loading(db)
    uids = await loading.submit(2)
    batch = await loading.loader.next()
    assert loading.paused == [str(uid) for uid in uids]
    assert list(batch.jobs) == uids
