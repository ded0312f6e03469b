"""Follows the log of one run of a container until all of it is kept.

open what is kept ──▶ read from there ──▶ chunks ──▶ store, index ──▶ complete
        ▲                   │ the stream ended, an error, another process was faster
        └───────────────────┘
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

import structlog

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import TaskGroup, rounds
from app.db import kept_logs
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.kept_logs.cutting import LogChunk
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason
from app.domain.kept_logs.runs import ContainerRun, runs_of
from app.k8s.codec import POD as POD_CODEC
from app.k8s.errors import KubeBadRequest, KubeError, KubeNotFound
from app.k8s.logs import SMALL_BUFFER, read_log
from app.k8s.resources import POD
from app.log_store import StoreUnavailable
from app.loops.logs import metrics
from app.loops.logs.context import LogContext
from app.loops.logs.slots import ReadTurn
from app.loops.logs.writer import ChunkWriter, Overtaken

log = structlog.get_logger(__name__)

_BACKOFF: Final = ExponentialBackoff(first=0.2, longest=30.0)  # seconds
# Seconds between the opening of a log and the check that it is that of the run: the status of a pod reaches the API
# server a moment after its node, which chooses the run, knows it.
_CHECK_AFTER: Final = 1.0
_LONGEST_WAIT: Final = 15.0  # seconds without text after which a follower checks whether its turn is over
_REFUSALS: Final = 6  # answers that there is no such log, after which it is lost


class OtherRun(Exception):  # noqa: N818 - what the container did
    """The container was restarted, so what was read can be the log of its next run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedPod:
    """The pod of an attempt."""

    namespace: str
    name: str
    uid: str


class LogFollower:
    """Keeps one log.

    `observe` returns the present state of the run, or why the cluster does not have its log any more.
    """

    def __init__(
        self, context: LogContext, pod: FollowedPod, key: LogKey, observe: Callable[[], ContainerRun | GapReason]
    ) -> None:
        self._context = context
        self._pod = pod
        self._key = key
        self._observe = observe
        self.changed = asyncio.Event()
        """Set when the pod has changed."""
        self.has_ended = False
        """Whether the log is final."""
        self._refusals = 0  # consecutive answers that there is no such log
        self._is_read = False  # whether the writer has got the log to its end
        # The read that is in progress.
        self._opened_at = 0.0
        self._is_checked = False

    async def run(self) -> None:
        """Keep the log. Returns when it is final."""
        failures = 0
        for _ in rounds():
            await self._context.store.wait()
            try:
                if await self._keep():
                    self.has_ended = True
                    return
                failures = 0
            except (KubeError, DatabaseUnavailable, StoreUnavailable) as error:
                failures = _BACKOFF.count(failures)
                self._note(error)
            except (Overtaken, OtherRun):
                failures = 1
            await self._wait(_BACKOFF.delay(failures))

    def _note(self, error: Exception) -> None:
        if isinstance(error, KubeError):
            metrics.READ_ERRORS.inc()
        if isinstance(error, KubeNotFound | KubeBadRequest):
            self._refusals += 1
        log.info("log.not_read", pod=self._pod.name, container=self._key.container, error=str(error))

    async def _wait(self, seconds: float) -> None:
        """Wait until the pod changes, but not longer than this."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.changed.wait()

    async def _keep(self) -> bool:
        """Keep what comes of the log, after what is kept. Return whether it is final."""
        db, key = self._context.db, self._key
        run = self._observe()
        started_at = run.started_at if isinstance(run, ContainerRun) else None
        now = self._context.clock.now()
        async with self._context.transactions:
            kept = await kept_logs.open_log(db, key, self._pod.namespace, now, started_at=started_at)
            if kept.is_final:
                return True
            totals = await kept_logs.totals(db, self._pod.namespace, key.job_uid)
        writer, self._is_read = ChunkWriter(self._context, kept, totals), False
        try:
            await self._follow(writer)
        finally:
            writer.close()
        return True

    async def _follow(self, writer: ChunkWriter) -> None:
        """Read the log until it is final."""
        vain = 0
        while not writer.is_final:
            self.changed.clear()
            run = self._observe()
            if isinstance(run, ContainerRun) and self._refusals >= _REFUSALS and not run.is_running:
                run = GapReason.POD_GONE
            if isinstance(run, GapReason):
                await writer.finish(None if self._is_read else run)
                return
            received = await self._read(run, writer)
            if writer.is_final or not self._is_read:
                continue
            if not run.is_running:
                await self._check(run)
                await writer.finish()
                return
            # The stream ends with the container, a moment before the cluster reports that.
            vain = 0 if received else vain + 1
            await self._wait(_BACKOFF.delay(1 + vain))

    async def _read(self, run: ContainerRun, writer: ChunkWriter) -> int:
        """Read the log of the run, as long as it comes and others do not wait. Return how many bytes came."""
        self._is_read = False
        async with self._context.slots.take() as turn:
            self._opened_at, self._is_checked = self._context.clock.monotonic(), run.is_last
            writer.begin()
            pieces = read_log(
                self._context.api,
                self._pod.namespace,
                self._pod.name,
                run.container,
                previous=run.is_previous,
                since_time=writer.since,
                timestamps=True,
                # What a redaction passes over ends where the log ends now.
                follow=run.is_running and not writer.passes_over,
                buffer=SMALL_BUFFER,
            )
            waiting: asyncio.Queue[bytes | KubeError | None] = asyncio.Queue(1)
            failure: Exception | None = None
            received = 0
            async with TaskGroup() as group:
                pump = group.create_task(_pump(pieces, waiting))
                try:
                    received = await self._copy(run, waiting, writer, turn)
                except Exception as error:  # noqa: BLE001 - it is raised below, because the group would wrap it
                    failure = error
                pump.cancel()
            if failure is not None:
                raise failure
            return received

    async def _copy(
        self, run: ContainerRun, waiting: asyncio.Queue[bytes | KubeError | None], writer: ChunkWriter, turn: ReadTurn
    ) -> int:
        received = 0
        while not writer.is_final:
            piece = await _next_of(waiting, min(writer.patience, turn.left or _LONGEST_WAIT))
            if isinstance(piece, KubeError):
                # The pod can be gone a moment later.
                await self._flush(run, writer)
                raise piece
            if piece is None:
                if writer.passes_over:
                    await self._check(run)
                    await writer.keep_rest()
                self._is_read = True
                break
            if piece:
                self._refusals = 0
                received += len(piece)
                await self._write(run, writer, writer.feed(piece))
            if writer.is_due or turn.is_over:
                await self._flush(run, writer)
            if turn.is_over:
                break
        return received

    async def _flush(self, run: ContainerRun, writer: ChunkWriter) -> None:
        if writer.has_text and not writer.is_final:
            await self._check(run)
            await writer.flush()

    async def _write(self, run: ContainerRun, writer: ChunkWriter, chunks: Sequence[LogChunk]) -> None:
        if chunks:
            await self._check(run)
            await writer.write(chunks)

    async def _check(self, run: ContainerRun) -> None:
        """Check that what was read is the log of the run.

        Raises:
            OtherRun: it can be that of another one.
        """
        if self._is_checked:
            return
        await asyncio.sleep(max(0.0, self._opened_at + _CHECK_AFTER - self._context.clock.monotonic()))
        try:
            pod = await self._context.api.get(POD, self._pod.name, self._pod.namespace, codec=POD_CODEC)
        except KubeNotFound:
            return
        runs = {(found.container_id, found.is_previous) for found in runs_of(pod)}
        if pod.metadata.uid == self._pod.uid and (run.container_id, run.is_previous) not in runs:
            raise OtherRun
        self._is_checked = True


async def _pump(pieces: AsyncGenerator[bytes, None], waiting: asyncio.Queue[bytes | KubeError | None]) -> None:
    """Pass on the pieces, and then how the log ended: None at its end, or an error."""
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                await waiting.put(piece)
    except KubeError as error:
        await waiting.put(error)
    else:
        await waiting.put(None)


async def _next_of(waiting: asyncio.Queue[bytes | KubeError | None], seconds: float) -> bytes | KubeError | None:
    """Return the next piece; an empty one if none comes within this time."""
    try:
        async with asyncio.timeout(seconds):
            return await waiting.get()
    except TimeoutError:
        return b""
