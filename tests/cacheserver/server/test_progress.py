"""The progress of a job in its result."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.domain.cache.vocabulary import JobType
from cacheserver.errors import JobFailed
from cacheserver.options import JobResult, Progress, ResultStatus, RmrRequest
from cacheserver.server.job_queue import TERMINATED, JobQueue
from cacheserver.server.store import FileStore, JobKey
from tests.support.waiting import until

FIRST, SECOND = JobKey(JobType.RMR, "first"), JobKey(JobType.RMR, "second")
HALF = Progress(files_done=3)


class Engine:
    """An engine that removes three files, and then waits for the test."""

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.fails = False

    async def do_rmr_job(self, options: RmrRequest, progress: Progress) -> str:
        assert options == RmrRequest()
        progress.add(files=3)
        await self.goes_on.wait()
        if self.fails:
            raise JobFailed("no space")
        progress.add()
        return "done"


class Server:
    def __init__(self, store: FileStore) -> None:
        self.store, self.engine = store, Engine()
        engine: Any = self.engine
        self.queue = JobQueue(store, engine, self._before_result)

    async def _before_result(self) -> None:
        pass

    def post(self, key: JobKey) -> None:
        self.store.save_options(key, b"{}")
        self.queue.add(key)

    async def result(self, key: JobKey, status: ResultStatus) -> JobResult:
        return await until(
            lambda: self.queue.result(key), lambda found: found.status is status, what=f"{key} is {status}"
        )


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    with closing(FileStore(tmp_path / "runtime")) as store:
        server = Server(store)
        running = asyncio.get_running_loop().create_task(server.queue.run())
        yield server
        running.cancel()
        await asyncio.wait({running})


async def test_a_running_job_has_its_progress_and_a_waiting_one_has_none(server: Server) -> None:
    server.post(FIRST)
    server.post(SECOND)
    assert (await server.result(FIRST, ResultStatus.RUNNING)).progress == HALF
    assert server.store.result(FIRST) == JobResult(ResultStatus.RUNNING), "the disk is not written for each file"
    assert server.queue.result(SECOND) is None


async def test_an_ended_job_keeps_its_progress(server: Server) -> None:
    server.post(FIRST)
    server.engine.goes_on.set()
    ended = await server.result(FIRST, ResultStatus.SUCCESS)
    assert ended == JobResult(ResultStatus.SUCCESS, "done", Progress(files_done=4)) == server.store.result(FIRST)


async def test_a_failed_and_an_interrupted_job_say_how_far_they_came(server: Server) -> None:
    server.engine.fails = True
    server.post(FIRST)
    await server.result(FIRST, ResultStatus.RUNNING)
    await server.queue.terminate()
    assert server.queue.result(FIRST) == JobResult(ResultStatus.FAIL, TERMINATED, HALF)
    server.engine.goes_on.set()
    server.post(SECOND)
    assert await server.result(SECOND, ResultStatus.FAIL) == JobResult(ResultStatus.FAIL, "no space", HALF)


async def test_the_progress_of_a_job_that_died_with_its_server_is_unknown(server: Server) -> None:
    server.post(FIRST)
    await server.result(FIRST, ResultStatus.RUNNING)
    engine: Any = server.engine
    later = JobQueue(server.store, engine, server._before_result)
    later.recover()
    died = later.result(FIRST)
    assert died is not None
    assert (died.status, died.progress) == (ResultStatus.FAIL, JobResult(ResultStatus.FAIL).progress)
