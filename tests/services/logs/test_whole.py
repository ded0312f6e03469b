"""One log from what is kept, from the cluster and from PostgreSQL: without a seam, wherever its parts end."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from typing_extensions import override

from app.db.jobs.replicas import StoredReplica
from app.db.postgres.engine import Database
from app.domain.errors import NotFound, Unavailable
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason, KeptLogState
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.log_store import LogStore, open_store
from app.services.logs.containers import LogReader, LogRequest
from app.services.logs.kept import KeptReader
from app.services.logs.opening import Logs, LogStream
from app.services.logs.search import LinePattern
from app.services.logs.selecting import LineSelection
from app.services.logs.text import TextLog
from app.services.logs.times import nanoseconds
from app.services.reading.jobs import ReplicaHistory
from tests.support.kept_logs import BEGIN, finish, keep, timed

UID = UUID(int=7)
KEY = LogKey(UID, "worker", 0, 2, "main", 0)
LINES = [b"line %d" % number for number in range(12)]
TEXT = b"".join(line + b"\n" for line in LINES)


class Node(LogReader):
    """The logs of a container on its node: the current run, and the one before."""

    def __init__(self, log: bytes = b"", before: bytes = b"", error: Exception | None = None) -> None:
        self.log = log
        self.before = before
        self.error = error
        self.asked: list[LogRequest] = []

    @override
    async def read(self, request: LogRequest) -> AsyncGenerator[bytes, None]:
        self.asked.append(request)
        if self.error is not None:
            raise self.error
        assert request.timestamps
        lines = (self.before if request.previous else self.log).splitlines(keepends=True)
        since = b"" if request.since is None else request.since.strftime("%Y-%m-%dT%H:%M:%S").encode()
        # In pieces that end anywhere.
        text = b"".join(line for line in lines if line >= since)
        for begin in range(0, len(text), 7):
            yield text[begin : begin + 7]


def story(number: int = 2, restarts: int = 0) -> ReplicaHistory:
    container = ObservedContainer(name="main", state="running", restart_count=restarts)
    attempts = [Attempt(number=each, pod_uid="pod", containers=(container,)) for each in range(1, number + 1)]
    replica = Replica(key=Rank("worker", 0), attempt=attempts[-1])
    return ReplicaHistory(stored=StoredReplica(replica=replica, pod_name="hello-worker-0"), ended=tuple(attempts[:-1]))


def request(**fields: object) -> LogRequest:
    return LogRequest(namespace="team", pod="hello-worker-0", container="main", **fields)  # type: ignore[arg-type]


async def text_of(log: LogStream, *, has_times: bool = False) -> bytes:
    form = TextLog(has_times=has_times)
    return b"".join([piece async for part in log.parts for piece in form.render(part)])


@pytest.fixture
def store(tmp_path: Path) -> LogStore:
    return open_store(f"file://{tmp_path}")


@pytest.fixture
def kept(db: Database, store: LogStore) -> KeptReader:
    return KeptReader(db, store)


async def keep_lines(db: Database, store: LogStore, *counts: int, key: LogKey = KEY) -> None:
    """Keep the first lines, in chunks of these numbers of lines."""
    pieces, first = [], 0
    for count in counts:
        pieces.append(timed(*LINES[first : first + count], first=first))
        first += count
    await keep(db, store, key, *pieces)


async def opened(logs: Logs, **fields: object) -> bytes:
    has_times = bool(fields.get("timestamps"))
    return await text_of(await logs.open(UID, story(), 2, request(**fields)), has_times=has_times)


EXACT = LineSelection(begin=17, end=60, is_exact=True)


@pytest.mark.parametrize("counts", [(1,), (5,), (3, 4), (4, 4, 4)])
@pytest.mark.parametrize("is_followed", [False, True])
async def test_a_kept_log_continues_in_the_cluster(
    counts: Sequence[int], kept: KeptReader, store: LogStore, db: Database, *, is_followed: bool
) -> None:
    await keep_lines(db, store, *counts)
    logs = Logs(db, Node(timed(*LINES)), kept)
    log = await logs.open(UID, story(), 2, request(follow=is_followed))
    assert (log.source, log.truncated, await text_of(log)) == ("kept, live", False, TEXT)
    assert await opened(logs, timestamps=True) == timed(*LINES)
    assert await opened(logs, selection=EXACT) == TEXT[17:60]
    assert await opened(logs, selection=LineSelection(begin=17, end=60)) == TEXT[21:63]
    for count in range(14):
        assert await opened(logs, tail_lines=count) == b"".join(
            TEXT.splitlines(keepends=True)[-count:] if count else []
        )
    for number in range(13):
        time = nanoseconds(BEGIN) + number * 10**9
        lines = TEXT.splitlines(keepends=True)
        assert await opened(logs, selection=LineSelection(since=time)) == b"".join(lines[number:])
        assert await opened(logs, selection=LineSelection(until=time)) == b"".join(lines[:number])
    assert await opened(logs, selection=LineSelection(pattern=LinePattern("[13]$"))) == b"line 1\nline 3\nline 11\n"


async def test_a_complete_log_needs_neither_cluster_nor_postgresql(
    kept: KeptReader, store: LogStore, db: Database
) -> None:
    log = await keep(db, store, KEY, timed(*LINES[:6]), timed(*LINES[6:], first=6))
    await finish(db, log)
    node = Node(error=NotFound("gone"))
    stream = await Logs(db, node, kept).open(UID, story(), 2, request(follow=True))
    assert (stream.source, await text_of(stream), node.asked) == ("kept", TEXT, [])
    assert stream.kept is not None
    assert stream.kept.text_bytes == len(TEXT)


async def store_end(db: Database, tail: bytes, *, is_truncated: bool) -> None:
    async with db.begin() as connection:
        await connection.execute(
            "INSERT INTO attempt_logs (job_uid, task, rank, attempt, container, tail, truncated)"
            " VALUES ($1, 'worker', 0, 2, 'main', $2, $3)",
            UID, tail, is_truncated,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("tail", "is_truncated", "expected"),
    [
        (TEXT, False, TEXT),
        (TEXT[30:], True, TEXT),
        (TEXT[:42], False, TEXT[:42]),
        (TEXT[45:], True, TEXT[:42] + b"[jobgate] the pod was gone before a part of the log was read\n" + TEXT[45:]),
    ],
)
async def test_without_the_pod_the_stored_end_follows(
    tail: bytes, expected: bytes, kept: KeptReader, store: LogStore, db: Database, *, is_truncated: bool
) -> None:
    await keep_lines(db, store, 3, 3)
    await store_end(db, tail, is_truncated=is_truncated)
    logs = Logs(db, Node(error=NotFound("gone")), kept)
    assert await opened(logs) == expected
    lines = [line for line in expected.splitlines(keepends=True) if not line.startswith(b"[jobgate]")]
    for count in range(len(lines) + 2):
        last = b"".join(lines[-count:] if count else [])
        found = (await opened(logs, tail_lines=count)).splitlines(keepends=True)
        assert b"".join(line for line in found if not line.startswith(b"[jobgate]")) == last


async def test_what_is_missing_has_a_line_of_its_own(kept: KeptReader, store: LogStore, db: Database) -> None:
    await keep(db, store, KEY, timed(*LINES[:2])[:-1], gap=GapReason.ROTATED)
    log = await keep(db, store, KEY, timed(*LINES[4:6], first=4))
    await finish(db, log, KeptLogState.CUT, "the limit of the job is 20 bytes")
    node = Node(timed(*LINES[8:], first=8))
    stream = await Logs(db, node, kept).open(UID, story(), 2, request())
    assert (await text_of(stream)).decode().splitlines() == [
        "line 0",
        "line 1",
        "[jobgate] the node had deleted a part of the log before it was read",
        "line 4",
        "line 5",
        "[jobgate] from here on the log is not kept: the limit of the job is 20 bytes",
        "[jobgate] the node had deleted a part of the log before it was read",
        *(line.decode() for line in LINES[8:]),
    ]
    assert stream.missing == "1 gap, cut"


async def test_a_gap_at_the_end_of_a_log_is_shown_once(kept: KeptReader, store: LogStore, db: Database) -> None:
    await finish(db, await keep(db, store, KEY, timed(*LINES[:2]), gap=GapReason.POD_GONE))
    gap = b"[jobgate] the pod was gone before a part of the log was read\n"
    assert await opened(Logs(db, Node(), kept)) == TEXT[:14] + gap


async def test_times_of_lines_have_nanoseconds_although_the_index_has_none(
    kept: KeptReader, store: LogStore, db: Database
) -> None:
    await finish(db, await keep(db, store, KEY, b"2026-01-02T00:00:00.000000900Z a\n"))
    logs, at = Logs(db, Node(), kept), nanoseconds(BEGIN) + 900
    found = {time: await opened(logs, selection=LineSelection(since=time)) for time in (at - 1, at, at + 1)}
    assert found == {at - 1: b"a\n", at: b"a\n", at + 1: b""}


async def test_runs_are_logs_of_their_own(kept: KeptReader, store: LogStore, db: Database) -> None:
    for run in range(3):
        log = await keep(db, store, KEY._replace(run=run), timed(b"run %d" % run))
        if run < 2:
            await finish(db, log)
    logs = Logs(db, Node(timed(b"run 2", b"more"), timed(b"run 1")), kept)

    async def of(**fields: object) -> bytes:
        return await text_of(await logs.open(UID, story(restarts=1), 2, request(**fields)))

    assert await of() == b"run 2\nmore\n"
    assert await of(previous=True) == b"run 1\n"
    assert [await of(run=run) for run in range(3)] == [b"run 0\n", b"run 1\n", b"run 2\nmore\n"]
    with pytest.raises(NotFound):
        await of(run=3)
    # The log of the run before is there although the pod is gone.
    gone = Logs(db, Node(error=NotFound("gone")), kept)
    assert await text_of(await gone.open(UID, story(), 2, request(previous=True))) == b"run 1\n"


async def test_a_run_that_is_not_kept_comes_from_the_cluster(kept: KeptReader, db: Database) -> None:
    logs = Logs(db, Node(timed(b"now"), timed(b"before")), kept)
    log = await logs.open(UID, story(restarts=1), 2, request(previous=True, timestamps=True))
    assert (log.source, await text_of(log, has_times=True)) == ("live", timed(b"before"))


async def test_a_log_that_is_not_kept_has_ranges_times_and_searches_too(kept: KeptReader, db: Database) -> None:
    logs = Logs(db, Node(timed(*LINES)), kept)
    assert await opened(logs, selection=EXACT) == TEXT[17:60]
    assert await opened(logs, selection=LineSelection(pattern=LinePattern("e 7"))) == b"line 7\n"
    assert await opened(logs, selection=LineSelection(since=nanoseconds(BEGIN) + 10 * 10**9)) == TEXT[-16:]


async def test_the_log_of_a_store_that_does_not_answer_is_an_error_that_clients_repeat(
    kept: KeptReader, store: LogStore, db: Database
) -> None:
    await keep_lines(db, store, 3, 3)
    first, second = sorted([chunk.name async for page in store.list("test") for chunk in page])
    # An object that is the chunk of another row, and then none.
    await store.put(first, await store.get(second))
    for _ in range(2):
        with pytest.raises(Unavailable) as refused:
            await Logs(db, Node(timed(*LINES)), kept).open(UID, story(), 2, request())
        assert refused.value.code == "LogDamaged"
        await store.delete([first, second])


async def test_the_text_of_another_log_is_not_shown_although_its_lines_are_as_long(
    kept: KeptReader, store: LogStore, db: Database
) -> None:
    await keep_lines(db, store, 3)
    [ours] = [chunk.name async for page in store.list("test") for chunk in page]
    await keep(db, store, KEY._replace(job_uid=uuid4()), timed(*(line.swapcase() for line in LINES[:3])))
    [theirs] = [chunk.name async for page in store.list("test") for chunk in page if chunk.name != ours]
    await store.put(ours, await store.get(theirs))
    with pytest.raises(Unavailable) as refused:
        await Logs(db, Node(timed(*LINES)), kept).open(UID, story(), 2, request())
    assert refused.value.code == "LogDamaged"


async def test_a_followed_log_goes_on_with_what_is_kept_meanwhile(
    kept: KeptReader, store: LogStore, db: Database
) -> None:
    await keep_lines(db, store, 2)
    stream = await Logs(db, Node(timed(*LINES)), kept).open(UID, story(), 2, request())
    form = TextLog(has_times=False)
    first = b"".join(form.render(await anext(stream.parts)))
    await keep(db, store, KEY, timed(*LINES[:7]))
    log = await keep(db, store, KEY, timed(*LINES[:12]))
    await finish(db, log)
    rest = b"".join([piece async for part in stream.parts for piece in form.render(part)])
    assert first + rest == TEXT
