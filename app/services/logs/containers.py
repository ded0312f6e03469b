"""Logs of containers: from the cluster while the pod exists, and from Postgres afterwards.

Besides `cluster_dry_run`, this is the only service that calls the cluster, and it only reads logs there.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID

from typing_extensions import override

from app.db.jobs import evidence, names
from app.db.postgres.engine import Database
from app.domain.errors import NotFound, Unavailable
from app.domain.status.log_choice import has_log, why_no_log
from app.domain.status.records import Attempt
from app.domain.vocabulary import Evidence
from app.k8s.api import KubeApi
from app.k8s.errors import KubeBadRequest, KubeError, KubeNotFound, KubeServerError, KubeStatusError
from app.k8s.logs import read_log
from app.services.reading.jobs import ReplicaHistory


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRequest:
    """The requested part of a log. `tail_lines` None means all lines.

    `previous` means the log of the container before the kubelet last restarted it in place.
    """

    namespace: str
    pod: str
    container: str
    follow: bool = False
    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    previous: bool = False


class LogReader(Protocol):
    """Reads logs of pods from the cluster."""

    def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        """Yield the log in pieces.

        Raises:
            NotFound: there is no such pod, or its container has not started.
            Unavailable: the cluster does not answer, or refuses the request.
        """
        ...


class ClusterLogs(LogReader):
    """Reads logs through the Kubernetes API."""

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
            previous=request.previous,
        )
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece
        except (KubeNotFound, KubeBadRequest) as error:
            raise NotFound(f"the cluster has no such log: {error.message}", code="NoLog") from error
        # The API server reads a log from the node of the pod, and reports the failure of that as an error of its own.
        except KubeServerError as error:
            raise Unavailable(
                f"the cluster cannot read the log from the node of the pod: {error.message}", code="ClusterUnreachable"
            ) from error
        except KubeStatusError as error:
            raise Unavailable(
                f"the cluster refuses access to the log: {error.message}", code="ClusterDenied"
            ) from error
        except KubeError as error:
            raise Unavailable(f"the cluster does not answer: {error}", code="ClusterUnreachable") from error


def attempt_of(story: ReplicaHistory, number: int) -> Attempt | None:
    """Return the attempt with this number; None if the replica has no such attempt."""
    return next((attempt for attempt in story.attempts if attempt.number == number), None)


def container_of(story: ReplicaHistory, number: int, requested: str | None) -> str | None:
    """Return the name of the requested container of an attempt, or of its default one.

    Return None if the attempt has no such container, or none that is known.
    """
    attempt = attempt_of(story, number)
    if attempt is None or requested is None:
        return attempt.log_container if attempt is not None else None
    return requested if requested in (container.name for container in attempt.containers) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStream:
    """An open log.

    Args:
        live: whether it comes from the cluster, not from Postgres.
        truncated: whether earlier lines are missing.
        pieces: the content.
    """

    live: bool
    truncated: bool
    pieces: AsyncGenerator[bytes, None]


class Logs:
    """Opens logs from the cluster or from Postgres. `reader` is None in a process without a cluster."""

    def __init__(self, db: Database, reader: LogReader | None) -> None:
        self._db = db
        self._reader = reader

    async def open(self, uid: UUID, story: ReplicaHistory, number: int, request: LogRequest) -> LogStream:
        """Open the log of a container of the attempt `number`.

        Raises:
            NotFound: there is no log, neither in the cluster nor in Postgres.
            Unavailable: only the cluster can have the log, and it does not answer.
        """
        current = story.stored.replica.attempt
        refusal: NotFound | Unavailable | None = None
        # The pod of an earlier attempt is gone. A pod with its name belongs to a later attempt.
        if number == current.number and current.pod_uid is not None:
            try:
                return await self._live(uid, request)
            except (NotFound, Unavailable) as error:
                # The pod may have been released a moment ago. Then its log is stored.
                refusal = error
        if request.previous:
            raise refusal or NotFound("the log before a restart in place exists only while the pod does", code="NoLog")
        stored = await evidence.log(self._db, uid, story.stored.replica.key, number, request.container)
        if stored is not None:
            tail = _last_lines(stored.tail, request.tail_lines)
            cut = stored.truncated or len(tail) < len(stored.tail)
            return LogStream(live=False, truncated=cut, pieces=_once(tail))
        if isinstance(refusal, Unavailable):
            message = f"{refusal.message}{_name_accepted(story, number, request.container, same_attempt=False)}"
            raise Unavailable(message, code=refusal.code)
        raise no_log(story, number, request.container, refusal)

    async def _live(self, uid: UUID, request: LogRequest) -> LogStream:
        """Open the log in the cluster, and read its first piece, so that errors occur before the answer starts."""
        if self._reader is None:
            raise Unavailable("this process has no connection to the cluster", code="NoCluster")
        if await names.pod_is_taken_over(self._db, request.namespace, request.pod, uid):
            raise NotFound(
                "the pod of this name belongs to another job now, and no log of this job was stored", code="NoLog"
            )
        if request.follow:
            # The first piece of a followed log may take hours. A short read without `follow` finds errors at once.
            await _first(self._reader.read(replace(request, follow=False, tail_lines=1)), keep=False)
            return LogStream(live=True, truncated=False, pieces=self._reader.read(request))
        pieces = self._reader.read(request)
        return LogStream(live=True, truncated=False, pieces=_continue(await _first(pieces), pieces))


async def _first(pieces: AsyncGenerator[bytes, None], *, keep: bool = True) -> bytes:
    """Return the first piece, or nothing at the end of the log. Close the log unless `keep`, or on an error."""
    done = False
    try:
        piece = await anext(pieces, b"")
        done = keep
    finally:
        if not done:
            await pieces.aclose()
    return piece


async def _continue(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
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
    # The slice [-0:] would be all lines.
    return b"".join(lines[-count:]) if count else b""


def no_log(
    story: ReplicaHistory, number: int, container: str | None = None, refusal: NotFound | None = None
) -> NotFound:
    """Return the error of an attempt without a log, with the reason of the cluster if it gave one.

    It names the attempts that have a log, and the other containers of this attempt that do.
    """
    attempt = attempt_of(story, number)
    if refusal is not None:
        reason = refusal.message
    else:
        reason = why_no_log(attempt) if attempt is not None else f"no log of attempt {number} was stored"
    known = _name_accepted(story, number, container, same_attempt=True)
    return NotFound(f"{story.stored.replica.key}: {reason}{known}", code="NoLog")


def _name_accepted(story: ReplicaHistory, number: int, container: str | None, *, same_attempt: bool) -> str:
    """Return the logs that exist in place of a missing one, as the end of a sentence: those of other attempts, and with
    `same_attempt` those of other containers.
    """
    attempt = attempt_of(story, number) if same_attempt else None
    has_logs = attempt is not None and attempt.evidence is not Evidence.UNAVAILABLE
    ran = [status.name for status in attempt.containers if status.has_run] if attempt is not None and has_logs else []
    containers = [name for name in ran if name != container]
    attempts = [str(other.number) for other in story.attempts if other.number != number and has_log(other, container)]
    accepted = [f"container {' or '.join(containers)}"] if containers else []
    accepted += [f"attempt {' or '.join(attempts)}"] if attempts else []
    return f"; accepted: {', or '.join(accepted)}" if accepted else ""
