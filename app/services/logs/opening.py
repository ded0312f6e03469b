"""Opens a log: what is kept of it with its rest, or else that of the cluster, or else the part that was stored."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar
from uuid import UUID

from app.db.jobs import evidence
from app.db.postgres.engine import Database
from app.db.reservations import names
from app.domain.errors import NotFound, Unavailable
from app.domain.kept_logs.cutting import LogChunk, LogCutter
from app.domain.kept_logs.records import KeptLog, KeptLogState
from app.services.logs.containers import LogReader, LogRequest, attempt_of, name_accepted, no_log
from app.services.logs.kept import KeptReader
from app.services.logs.matching import Searches
from app.services.logs.selecting import ChunkLines, LineSelection
from app.services.logs.whole import LogPart, OpenLive, RestSources, WholeLog, lines_of, live_chunks, untimed_lines
from app.services.reading.jobs import ReplicaHistory

_T = TypeVar("_T")


class _Run(NamedTuple):
    """A run of a container: what is kept of it, and whether the cluster may have its log."""

    kept: KeptLog | None
    is_newest: bool
    has_pod: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    """An open log.

    Args:
        source: where it comes from: `live`, `stored`, `kept`, or `kept, live` and `kept, stored`.
        truncated: whether earlier lines are missing.
        parts: the content: text, or lines with their places and times.
        kept: what is kept of it, if anything.
        missing: what is missing of the whole log, in words.
    """

    source: str
    truncated: bool
    parts: AsyncGenerator[bytes | LogPart, None]
    kept: KeptLog | None = None
    missing: str = ""

    @property
    def is_live(self) -> bool:
        """Whether its end comes from the cluster."""
        return self.source.endswith("live")


class Logs:
    """Opens logs. `reader` is None in a process without a cluster, and `kept` in one without an object store."""

    def __init__(self, db: Database, reader: LogReader | None, kept: KeptReader | None = None) -> None:
        self._db = db
        self._reader = reader
        self._kept = kept
        self._searches = Searches()

    async def open(self, uid: UUID, story: ReplicaHistory, number: int, request: LogRequest) -> LogStream:
        """Open the log of a container of the attempt `number`.

        Raises:
            NotFound: there is no log.
            Unavailable: only the cluster can have the log, and it does not answer.
        """
        run = await self._choose_run(uid, story, number, request)
        if run.kept is not None:
            return await self._open_kept(uid, request, run)
        if request.run is not None and not run.is_newest:
            raise NotFound(f"no log of run {request.run} of the container is kept", code="NoLog")
        return await self._open_unkept(uid, story, number, request)

    async def _open_unkept(self, uid: UUID, story: ReplicaHistory, number: int, request: LogRequest) -> LogStream:
        refusal: NotFound | Unavailable | None = None
        # The pod of an earlier attempt is gone. A pod with its name belongs to a later attempt.
        if _has_pod(story, number):
            try:
                return await self._live(uid, request)
            except (NotFound, Unavailable) as error:
                # The pod may have been released a moment ago. Then its log is stored.
                refusal = error
        if request.previous:
            message = "the log before a restart in place is not kept, and exists only while the pod does"
            raise refusal or NotFound(message, code="NoLog")
        stored = await evidence.log(self._db, uid, story.stored.replica.key, number, request.container)
        if stored is not None:
            tail = _last_lines(stored.tail, request.tail_lines)
            cut = stored.truncated or len(tail) < len(stored.tail)
            parts = (
                _once(tail)
                if request.is_plain
                else self._select(_once(ChunkLines(untimed_lines(tail))), request.selection)
            )
            return LogStream(source="stored", truncated=cut, parts=parts)
        if isinstance(refusal, Unavailable):
            message = f"{refusal.message}{name_accepted(story, number, request.container, same_attempt=False)}"
            raise Unavailable(message, code=refusal.code)
        raise no_log(story, number, request.container, refusal)

    async def _choose_run(self, uid: UUID, story: ReplicaHistory, number: int, request: LogRequest) -> "_Run":
        """Return the requested run of the container."""
        attempt = attempt_of(story, number)
        containers = () if attempt is None else attempt.containers
        newest = max((each.restart_count for each in containers if each.name == request.container), default=0)
        kept: Mapping[int, KeptLog] = {}
        if self._kept is not None:
            found = await self._kept.of_attempt(uid, story.stored.replica.key, number, request.container)
            kept = {each.run: each for each in found}
            # The controller stores a restart a moment after the log of the next run has begun.
            newest = max(newest, *kept, 0)
        wanted = request.run if request.run is not None else newest - request.previous
        # The cluster has the logs of the last two runs.
        has_pod = self._reader is not None and _has_pod(story, number) and 0 <= newest - wanted < 2
        return _Run(kept.get(wanted), is_newest=wanted == newest, has_pod=has_pod)

    async def _open_kept(self, uid: UUID, request: LogRequest, run: "_Run") -> LogStream:
        assert self._kept is not None
        assert run.kept is not None
        kept = await self._kept.read(run.kept.key) or run.kept
        has_rest = kept.state is not KeptLogState.COMPLETE
        wanted = replace(request, previous=not run.is_newest, tail_lines=None, timestamps=True)

        async def read_stored() -> evidence.Log | None:
            if not run.is_newest:
                return None
            return await evidence.log(self._db, uid, kept.key.replica, kept.attempt, kept.container)

        def open_rest(*, follow: bool) -> OpenLive | None:
            if not (has_rest and run.has_pod):
                return None
            return lambda since: self._read_pod(uid, replace(wanted, since=since, follow=follow))

        whole = WholeLog(
            self._kept,
            kept,
            RestSources(follow=open_rest(follow=request.follow), read=open_rest(follow=False), stored=read_stored),
        )
        parts = self._searches.filter(whole.parts(request.selection, request.tail_lines), request.selection.pattern)
        rest = ", live" if run.has_pod else ", stored"
        return LogStream(
            source=f"kept{rest if has_rest else ''}",
            truncated=False,
            # Errors of the first part occur before the answer starts. The first line of a followed log may take hours.
            parts=parts if request.follow else await _begin(parts),
            kept=kept,
            missing=await self._kept.missing(kept),
        )

    async def _live(self, uid: UUID, request: LogRequest) -> LogStream:
        """Open the log in the cluster, and read its first piece, so that errors occur before the answer starts."""
        if request.follow:
            # The first piece of a followed log may take hours. A short read without `follow` finds errors at once.
            async with aclosing(self._read_pod(uid, replace(request, follow=False, tail_lines=1))) as pieces:
                await anext(pieces, None)
        if request.is_plain:
            pieces = self._read_pod(uid, request)
            return LogStream(source="live", truncated=False, parts=pieces if request.follow else await _begin(pieces))
        timed = replace(request, timestamps=True)
        selection = request.selection
        chunks = live_chunks(LogCutter(), lambda _: self._read_pod(uid, timed), is_exact=selection.is_exact)
        parts = self._select(_lines(chunks if request.follow else await _begin(chunks)), selection)
        return LogStream(source="live", truncated=False, parts=parts)

    async def _read_pod(self, uid: UUID, request: LogRequest) -> AsyncGenerator[bytes, None]:
        if self._reader is None:
            raise Unavailable("this process has no connection to the cluster", code="NoCluster")
        if await names.pod_is_taken_over(self._db, request.namespace, request.pod, uid):
            raise NotFound(
                "a pod of this name would belong to another job, and no log of this job was stored", code="NoLog"
            )
        async with aclosing(self._reader.read(request)) as pieces:
            async for piece in pieces:
                yield piece

    def _select(
        self, chunks: AsyncGenerator[ChunkLines, None], selection: LineSelection
    ) -> AsyncGenerator[LogPart, None]:
        return self._searches.filter(_parts(chunks, selection), selection.pattern)


def _has_pod(story: ReplicaHistory, number: int) -> bool:
    """Return whether the cluster may have the logs of this attempt."""
    current = story.stored.replica.attempt
    return number == current.number and current.pod_uid is not None


async def _parts(chunks: AsyncGenerator[ChunkLines, None], selection: LineSelection) -> AsyncGenerator[LogPart, None]:
    async with aclosing(chunks):
        async for lines in chunks:
            for part in lines.select(selection):
                yield part
            if selection.end is not None and lines.end >= selection.end:
                return


async def _lines(chunks: AsyncGenerator[LogChunk, None]) -> AsyncGenerator[ChunkLines, None]:
    async with aclosing(chunks):
        async for chunk in chunks:
            yield ChunkLines(lines_of(chunk))


async def _begin(parts: AsyncGenerator[_T, None]) -> AsyncGenerator[_T, None]:
    """Return the same parts, of which the first one is read already."""
    first: list[_T] = []
    done = False
    try:
        async for part in parts:
            first.append(part)
            break
        done = True
    finally:
        if not done:
            await parts.aclose()
    return _continue(first, parts)


async def _continue(first: list[_T], rest: AsyncGenerator[_T, None]) -> AsyncGenerator[_T, None]:
    async with aclosing(rest):
        while first:
            yield first.pop()
        async for part in rest:
            yield part


async def _once(part: _T) -> AsyncGenerator[_T, None]:
    yield part


def _last_lines(text: bytes, count: int | None) -> bytes:
    if count is None:
        return text
    lines = text.splitlines(keepends=True)
    # The slice [-0:] would be all lines.
    return b"".join(lines[-count:]) if count else b""
