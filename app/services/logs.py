"""A container's log: read through from the cluster while its pod is there, from Postgres afterwards.

This is the one service that may speak to the cluster, and only through a `LogReader`.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from typing_extensions import override

from app.db.engine import Database
from app.db.jobs import evidence, names
from app.domain.errors import NotFound, Unavailable
from app.domain.status.records import Attempt
from app.k8s.api import KubeApi
from app.k8s.errors import KubeBadRequest, KubeError, KubeNotFound, KubeStatusError
from app.k8s.logs import read_log
from app.services.reading import ReplicaStory


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """Which part of a log is wanted. `tail_lines` None is all there is."""

    namespace: str
    pod: str
    container: str
    follow: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False


class LogReader(Protocol):
    """The way to logs of running pods."""

    def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """The log in pieces.

        Raises:
            NotFound: there is no such pod or its container has not started.
            Unavailable: the cluster does not answer.
        """
        ...


class ClusterLogs(LogReader):
    """Reads through the Kubernetes API."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        pieces = read_log(
            self._api,
            request.namespace,
            request.pod,
            request.container,
            tail_lines=request.tail_lines,
            since_time=request.since,
            timestamps=request.timestamps,
            follow=request.follow,
        )
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except (KubeNotFound, KubeBadRequest) as error:
            raise NotFound(f"the cluster has no such log: {error.message}", code="NoLog") from error
        except KubeStatusError as error:
            raise Unavailable(f"the cluster refuses to show the log: {error.message}", code="ClusterDenied") from error
        except KubeError as error:
            raise Unavailable(f"the cluster does not answer: {error}", code="ClusterUnreachable") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    """A log about to be sent. `live` says where it comes from; `truncated` that there was more before it."""

    live: bool
    truncated: bool
    pieces: AsyncGenerator[bytes, None]


class Logs:
    """Chooses between the two sources. `reader` is None where this process knows no cluster."""

    def __init__(self, db: Database, reader: LogReader | None) -> None:
        self._db = db
        self._reader = reader

    async def open(self, uid: UUID, story: ReplicaStory, number: int, request: LogRequest) -> LogStream:
        """The log of an attempt's container.

        Raises:
            NotFound: nothing is known of it.
            Unavailable: only the cluster has it, and the cluster cannot be asked.
        """
        current = story.stored.replica.attempt
        refusal: NotFound | Unavailable | None = None
        if number == current.number and current.pod_uid is not None:
            try:
                return await self._live(uid, request)
            except (NotFound, Unavailable) as error:
                refusal = error
        stored = await evidence.log(self._db, uid, story.stored.replica.key, number, request.container)
        if stored is not None:
            tail = _last_lines(stored.tail, request.tail_lines)
            cut = stored.truncated or len(tail) < len(stored.tail)
            return LogStream(live=False, truncated=cut, pieces=_once(tail))
        raise refusal or _nothing_kept(story, number, current)

    async def _live(self, uid: UUID, request: LogRequest) -> LogStream:
        """What can go wrong does so before the first byte of the answer is sent."""
        if self._reader is None:
            raise Unavailable("this process has no connection to the cluster", code="NoCluster")
        if await names.pod_is_taken_over(self._db, request.namespace, request.pod, uid):
            raise NotFound("the pod's name is another job's by now, and no log of this one was kept", code="NoLog")
        if request.follow:
            # A followed container may be silent for long: a short read tells whether there is anything to follow.
            await _first(self._reader.read(replace(request, follow=False, tail_lines=1)), keep=False)
            return LogStream(live=True, truncated=False, pieces=self._reader.read(request))
        pieces = self._reader.read(request)
        return LogStream(live=True, truncated=False, pieces=_resumed(await _first(pieces), pieces))


async def _first(pieces: AsyncGenerator[bytes, None], *, keep: bool = True) -> bytes:
    """The first piece; unless it is kept, the stream is closed after it."""
    done = False
    try:
        piece = await anext(pieces, b"")
        done = keep
    finally:
        if not done:
            await pieces.aclose()
    return piece


async def _resumed(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


async def _once(piece: bytes) -> AsyncGenerator[bytes, None]:
    yield piece


def _last_lines(text: bytes, count: int | None) -> bytes:
    if count is None:
        return text
    lines = text.splitlines(keepends=True)
    return b"".join(lines[-count:]) if count else b""


def _nothing_kept(story: ReplicaStory, number: int, current: Attempt) -> NotFound:
    key = story.stored.replica.key
    if number == current.number:
        return NotFound(f"{key} has not started: there is no log yet", code="NoLog")
    return NotFound(f"no log of attempt {number} of {key} was kept", code="NoLog")
