"""Kept logs as a follower writes them, from what the kubelet returns of a log with times."""

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from app.db import kept_logs
from app.db.kept_logs import LogWrite
from app.db.postgres.engine import Database
from app.domain.kept_logs.codec import encode_chunk
from app.domain.kept_logs.cutting import LogChunk, LogCutter
from app.domain.kept_logs.keys import LogKey, chunk_name
from app.domain.kept_logs.records import GapReason, KeptChunk, KeptLog, KeptLogState, kept_chunk
from app.domain.kept_logs.repeats import ReadPosition
from app.domain.plan import Rank
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, Replica
from app.domain.vocabulary import JobPhase, Outcome, ReplicaPhase
from app.log_store import LogStore
from tests.support.gateways.gateway import NAMESPACE, Gateway

BEGIN: Final = datetime(2026, 1, 2, tzinfo=UTC)


def timed(*lines: bytes, first: int = 0) -> bytes:
    """Return lines as the kubelet does with times: one each second."""
    times = ((BEGIN + timedelta(seconds=first + number)).strftime("%Y-%m-%dT%H:%M:%S") for number in range(len(lines)))
    return b"".join(b"%b.000000000Z %b\n" % (at.encode(), line) for at, line in zip(times, lines, strict=True))


async def keep(
    db: Database,
    store: LogStore,
    key: LogKey,
    *received: bytes,
    namespace: str = NAMESPACE,
    installation: str = "test",
    gap: GapReason | None = None,
) -> KeptLog:
    """Add what was received to a kept log: a chunk for each argument, or more if it is long, and then a gap."""
    log = await kept_logs.open_log(db, key, namespace, BEGIN)
    cutter = LogCutter(log.text_bytes, log.lines, ReadPosition.decode(log.position))
    for number, piece in enumerate(received):
        if not number:
            cutter.begin()
        chunks = [*cutter.feed(piece), *filter(None, [cutter.cut()])]
        for chunk in chunks:
            log = await _add(db, store, log, chunk, installation)
    if gap is not None:
        row = KeptChunk(
            start=log.text_bytes, length=0, first_line=log.lines, lines=0, first_at=None, last_at=None, gap=gap
        )
        log = await _write(db, log, LogWrite(chunks=[row]))
    return log


async def store_ended_job(gateway: Gateway, name: str) -> LogKey:
    """Store a job of one replica that has ended, as a controller does. Return the key of its log."""
    container = ObservedContainer(name="main", state="terminated", exit_code=0, started_at=BEGIN)
    ended = Attempt(
        number=1, pod_uid="1", outcome=Outcome.SUCCEEDED, phase=ReplicaPhase.SUCCEEDED, containers=(container,)
    )
    key = Rank("worker", 0)
    uid = (await gateway.submit(name, replicas=1))["uid"]
    await gateway.conclude(uid, {"phase": JobPhase.SUCCEEDED}, replicas=[Replica(key=key, attempt=ended)])
    return LogKey(UUID(uid), *key, 1, "main", 0)


async def finish(
    db: Database, log: KeptLog, state: KeptLogState = KeptLogState.COMPLETE, note: str | None = None
) -> KeptLog:
    return await _write(db, log, LogWrite(state=state, note=note))


async def _add(db: Database, store: LogStore, log: KeptLog, chunk: LogChunk, installation: str) -> KeptLog:
    name = chunk_name(installation, log.key, chunk.start, uuid4().hex)
    data = encode_chunk(chunk, name)
    await store.put(name, data)
    row = kept_chunk(chunk, name, len(data))
    return await _write(db, log, LogWrite(chunks=[row], position=chunk.position.encode()))


async def _write(db: Database, log: KeptLog, step: LogWrite) -> KeptLog:
    written = await kept_logs.write(db, log, step, BEGIN)
    assert written is not None
    return written[0]
