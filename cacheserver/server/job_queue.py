"""The job queue of a server. It runs one job at a time in the order of arrival, and stores each result."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from cacheserver.engine.cache_engine import CacheEngine, perform
from cacheserver.errors import JobFailed
from cacheserver.options import JobResult, Progress, ResultStatus, decode
from cacheserver.server.store import FileStore, JobKey

DIED: Final = "the runtime server ended while this job was running; it may be half done: post it again"
STOPPED: Final = "the runtime server was stopped while this job was running; it may be half done: post it again"
TERMINATED: Final = "terminated on request while it was running"
TERMINATED_QUEUED: Final = "terminated on request before it began"
_END_SECONDS: Final = 20.0  # a command that hangs in the file system cannot be waited for without a limit
_RETRY_SECONDS: Final = 1.0
INTERNAL: Final = "internal error of the runtime server; see its log"

log = logging.getLogger(__name__)


class JobQueue:
    """The queued jobs and the running one. Their options are in the store, so accepted jobs survive this process.

    `before_result` runs after a job has ended by itself and before its result is saved. It updates the cache status, so
    that a reader of the result finds figures that are newer than the job.
    """

    def __init__(self, store: FileStore, engine: CacheEngine, before_result: Callable[[], Awaitable[None]]) -> None:
        self._store = store
        self._engine = engine
        self._before_result = before_result
        self._waiting: deque[JobKey] = deque()
        self._arrived = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._progress: tuple[JobKey, Progress] | None = None
        self._terminated = False

    def result(self, key: JobKey) -> JobResult | None:
        """Return the stored result of a job. While the job runs, it has the progress so far, which is not stored."""
        stored = self._store.result(key)
        if stored is None or stored.status is not ResultStatus.RUNNING or self._progress is None:
            return stored
        running, progress = self._progress
        return stored.with_progress(progress) if running == key else stored

    def recover(self) -> None:
        """Continue after a restart: queue the jobs that never started, and fail the one that was running.

        The progress of the running job is unknown, and it may not be safe to repeat it.
        """
        for key in self._store.unfinished_jobs():
            if self._store.result(key) is None:
                self.add(key)
            else:
                self._store.save_result(key, JobResult(ResultStatus.FAIL, DIED))

    def add(self, key: JobKey) -> None:
        self._waiting.append(key)
        self._arrived.set()

    async def terminate(self) -> None:
        """Record every accepted job as failed. Return when the running command has ended, or seems to hang in
        the file system.

        Raises:
            OSError: a result cannot be written; the remaining jobs stay in the queue.
        """
        # First, so that `run` starts none of them when the running job ends.
        queued, self._waiting = self._waiting, deque()
        if self._running is not None:
            self._terminated = True
            self._running.cancel()
            await asyncio.wait({self._running}, timeout=_END_SECONDS)
        while queued:
            try:
                self._store.save_result(queued[0], JobResult(ResultStatus.FAIL, TERMINATED_QUEUED))
            except OSError:
                self._waiting.extendleft(reversed(queued))
                self._arrived.set()
                raise
            queued.popleft()

    async def run(self) -> None:
        """Run the queued jobs until cancelled."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            while self._waiting:
                await self._run_one(self._waiting.popleft())

    async def _run_one(self, key: JobKey) -> None:
        self._terminated = False
        try:
            async with asyncio.TaskGroup() as group:
                # A task of its own, so that `terminate` can cancel the job and not the queue.
                self._running = group.create_task(self._perform(key))
        finally:
            self._running = self._progress = None
            if self._store.result(key) is None:  # cancelled before its first step
                with suppress(OSError):
                    self._store.save_result(key, self._interruption())

    def _interruption(self) -> JobResult:
        return JobResult(ResultStatus.FAIL, TERMINATED if self._terminated else STOPPED)

    async def _perform(self, key: JobKey) -> None:
        """Run the job and save its result. A cancellation becomes a result and does not propagate."""
        progress = Progress()
        self._progress = (key, progress)
        try:
            result = await self._result(key, progress)
        except asyncio.CancelledError:
            result = self._interruption()
        else:
            with suppress(asyncio.CancelledError):  # the job has ended; only its result is still to be saved
                await self._before_result()
        result = result.with_progress(progress)
        log.info("%s %s: %s %s", key.kind, key.name, result.status, result.message)
        # A result that is never written would leave the job running for ever: try until the disk has room again.
        while True:
            try:
                self._store.save_result(key, result)
            except OSError as error:
                log.warning("%s %s: its result cannot be written yet: %s", key.kind, key.name, error.strerror)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _result(self, key: JobKey, progress: Progress) -> JobResult:
        try:
            self._store.save_result(key, JobResult(ResultStatus.RUNNING))
            options = decode(key.kind, self._store.options(key))
            return JobResult(ResultStatus.SUCCESS, await perform(self._engine, options, key.name, progress))
        except JobFailed as error:
            return JobResult(ResultStatus.FAIL, str(error))
        except OSError as error:
            log.warning("%s %s: %s", key.kind, key.name, error)
            return JobResult(ResultStatus.FAIL, f"{error.strerror}: {error.filename}")
        except Exception:
            log.exception("%s %s failed unexpectedly", key.kind, key.name)
            return JobResult(ResultStatus.FAIL, INTERNAL)
