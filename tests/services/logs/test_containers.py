"""The source of a log (cluster or Postgres), and the end of its connection."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from typing import cast
from uuid import UUID

import pytest
from typing_extensions import override

from app.db.jobs.replicas import StoredReplica
from app.db.postgres.engine import Database
from app.domain.errors import NotFound, Unavailable
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import Evidence
from app.k8s.api import KubeApi
from app.k8s.errors import KubeError, KubeForbidden, KubeServerError, Unreachable
from app.services.logs.containers import ClusterLogs, LogReader, LogRequest
from app.services.logs.opening import Logs
from app.services.logs.whole import LogPart
from app.services.reading.jobs import ReplicaHistory

KEY = Rank("worker", 0)
UID = UUID(int=7)


class Cluster(LogReader):
    """Yields `pieces`, or raises `error` at once or, with `breaks`, after the pieces. Counts the open logs."""

    def __init__(self, *pieces: bytes, error: Exception | None = None, breaks: bool = False) -> None:
        self.pieces = pieces
        self.error = error
        self.breaks = breaks
        self.open = 0
        self.asked: list[LogRequest] = []

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        self.asked.append(request)
        self.open += 1
        try:
            if self.error and not self.breaks:
                raise self.error
            for piece in self.pieces:
                yield piece
            if self.error:
                raise self.error
        finally:
            self.open -= 1


def story(pod_uid: str | None = "pod", number: int = 2) -> ReplicaHistory:
    replica = Replica(key=KEY, attempt=Attempt(number=number, pod_uid=pod_uid))
    return ReplicaHistory(stored=StoredReplica(replica=replica, pod_name="hello-worker-0"), ended=())


def request(**fields: object) -> LogRequest:
    return LogRequest(namespace="team", pod="hello-worker-0", container="main", **fields)  # type: ignore[arg-type]


async def whole(parts: AsyncIterator[bytes | LogPart]) -> bytes:
    """Return a log of which no lines were requested."""
    return b"".join([cast("bytes", part) async for part in parts])


async def keep(db: Database, number: int, tail: bytes) -> None:
    async with db.begin() as connection:
        await connection.execute(
            "INSERT INTO attempt_logs (job_uid, task, rank, attempt, container, tail) VALUES ($1, $2, $3, $4, $5, $6)",
            UID, KEY.task, KEY.rank, number, "main", tail,
        )  # fmt: skip


async def test_the_log_of_the_current_attempt_comes_from_the_cluster(db: Database) -> None:
    cluster = Cluster(b"a", b"b")
    stream = await Logs(db, cluster).open(UID, story(), 2, request())
    assert (stream.is_live, stream.truncated, await whole(stream.parts)) == (True, False, b"ab")
    assert cluster.open == 0


async def test_a_log_is_read_once_before_it_is_followed(db: Database) -> None:
    cluster = Cluster(b"a")
    stream = await Logs(db, cluster).open(UID, story(), 2, request(follow=True))
    assert await whole(stream.parts) == b"a"
    assert [(asked.follow, asked.tail_lines) for asked in cluster.asked] == [(False, 1), (True, None)]
    assert cluster.open == 0


@pytest.mark.parametrize("error", [NotFound("gone"), Unavailable("away")])
async def test_the_stored_log_replaces_a_log_that_the_cluster_does_not_have(error: Exception, db: Database) -> None:
    await keep(db, 2, b"kept")
    stream = await Logs(db, Cluster(error=error)).open(UID, story(), 2, request(follow=True))
    assert (stream.is_live, await whole(stream.parts)) == (False, b"kept")


async def test_the_log_of_an_earlier_attempt_never_comes_from_the_cluster(db: Database) -> None:
    await keep(db, 1, b"kept")
    cluster = Cluster(b"of the second")
    stream = await Logs(db, cluster).open(UID, story(), 1, request())
    assert (await whole(stream.parts), cluster.asked) == (b"kept", [])


async def test_a_log_on_a_node_that_does_not_answer_names_the_attempts_with_one(db: Database) -> None:
    ran = (ObservedContainer(name="main", state="terminated", restart_count=1),)
    former = Attempt(number=1, containers=ran, evidence=Evidence.CAPTURED)
    lost = replace(story(), ended=(former,))
    with pytest.raises(Unavailable) as refused:
        await Logs(db, Cluster(error=Unavailable("away", code="ClusterUnreachable"))).open(UID, lost, 2, request())
    assert (refused.value.message, refused.value.code) == ("away; accepted: attempt 1", "ClusterUnreachable")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (KubeServerError(500, "InternalError", "dial tcp: i/o timeout"), "ClusterUnreachable", "from the node of the"),
        (KubeForbidden(403, "Forbidden", "cannot get pods/log"), "ClusterDenied", "refuses access to the log: cannot"),
        (Unreachable("reset"), "ClusterUnreachable", "the cluster does not answer: reset"),
    ],
)
async def test_why_the_cluster_gives_no_log(
    error: KubeError, code: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces: list[bytes] = []

    async def broken(*_: object, **__: object) -> AsyncGenerator[bytes, None]:
        for piece in pieces:
            yield piece
        raise error

    monkeypatch.setattr("app.services.logs.containers.read_log", broken)
    with pytest.raises(Unavailable) as refused:
        await anext(ClusterLogs(cast("KubeApi", None)).read(request()))
    assert (refused.value.code, words in refused.value.message) == (code, True)


@pytest.mark.parametrize(
    ("reader", "number", "pod_uid", "refusal"),
    [
        (None, 2, "pod", Unavailable),
        (Cluster(error=Unavailable("away")), 2, "pod", Unavailable),
        (Cluster(error=NotFound("gone")), 2, "pod", NotFound),
        (Cluster(b"x"), 2, None, NotFound),
        (Cluster(b"x"), 1, "pod", NotFound),
    ],
)
async def test_a_missing_log_is_an_error(
    reader: LogReader | None, number: int, pod_uid: str | None, refusal: type[Exception], db: Database
) -> None:
    with pytest.raises(refusal):
        await Logs(db, reader).open(UID, story(pod_uid), number, request())


async def test_the_log_before_a_restart_in_place_is_never_the_stored_one(db: Database) -> None:
    await keep(db, 2, b"of the last run")
    cluster = Cluster(b"of the run before")
    stream = await Logs(db, cluster).open(UID, story(), 2, request(previous=True))
    assert (await whole(stream.parts), cluster.asked[0].previous) == (b"of the run before", True)
    for number, reader in ((2, Cluster(error=NotFound("no previous run"))), (1, cluster)):
        with pytest.raises(NotFound):
            await Logs(db, reader).open(UID, story(), number, request(previous=True))


async def test_closing_an_open_log_closes_its_connection(db: Database) -> None:
    cluster = Cluster(b"a", b"b", b"c")
    stream = await Logs(db, cluster).open(UID, story(), 2, request())
    pieces = stream.parts
    assert isinstance(pieces, AsyncGenerator)
    assert await anext(pieces) == b"a"
    await pieces.aclose()
    assert cluster.open == 0
