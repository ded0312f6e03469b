"""The index of whole logs: steps that follow one another, and the chunks that a reader needs."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

from app.db import kept_logs
from app.db.kept_logs import LogWrite, Totals
from app.db.postgres.engine import Database
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason, KeptChunk, KeptLog, KeptLogState
from tests.db.factories import NOW, later


def a_key() -> LogKey:
    return LogKey(uuid4(), "worker", 0, 1, "main")


def chunk_of(start: int, length: int, seconds: float) -> KeptChunk:
    """Return a chunk with one line of each byte, whose lines have the times of one second."""
    return KeptChunk(
        start=start,
        length=length,
        first_line=start,
        lines=length,
        first_at=later(seconds),
        last_at=later(seconds + 1),
        stored_bytes=length // 2,
        object_name=f"object-{start}",
    )


CHUNKS = [chunk_of(0, 10, 0), chunk_of(10, 20, 10), chunk_of(30, 10, 20)]
GAP = KeptChunk(
    start=30, length=0, first_line=30, lines=0, first_at=later(11), last_at=later(20), gap=GapReason.ROTATED
)


async def opened(db: Database, key: LogKey, namespace: str = "team-a") -> KeptLog:
    return await kept_logs.open_log(db, key, namespace, NOW)


async def add(db: Database, log: KeptLog, *chunks: KeptChunk, **step: object) -> KeptLog:
    written = await kept_logs.write(db, log, LogWrite(chunks=chunks, **step), later(1))  # type: ignore[arg-type]
    assert written is not None
    return written[0]


async def test_a_log_grows_by_steps_until_it_is_final(db: Database) -> None:
    log = await opened(db, a_key())
    assert await opened(db, log.key) == log
    log = await add(db, log, CHUNKS[0], CHUNKS[1], position=b"p")
    log = await add(db, log, GAP, CHUNKS[2])
    assert (log.text_bytes, log.lines, log.stored_bytes, log.position) == (40, 40, 20, b"p")
    assert (log.first_at, log.last_at, log.finished_at) == (NOW, later(21), None)
    log = await add(db, log, state=KeptLogState.CUT, note="the limit of the job", position=b"q")
    assert (log.state, log.note, log.finished_at, log.text_bytes) == (
        KeptLogState.CUT,
        "the limit of the job",
        later(1),
        40,
    )
    assert await kept_logs.read(db, log.key) == log
    assert await kept_logs.write(db, log, LogWrite(chunks=[chunk_of(40, 1, 30)]), NOW) is None
    assert await kept_logs.of_attempt(db, log.job_uid, log.key.replica, 1) == [replace(log, position=None)]


async def test_of_two_processes_one_writes_each_chunk(db: Database) -> None:
    log = await opened(db, a_key())
    attempts = [kept_logs.write(db, log, LogWrite(chunks=[chunk_of(0, length, 0)]), NOW) for length in range(1, 9)]
    written = [step for step in await asyncio.gather(*attempts) if step is not None]
    [(after, totals)] = written
    assert [chunk.length for chunk in await kept_logs.chunks_in_bytes(db, log.key)] == [after.text_bytes]
    assert totals == Totals(job=after.text_bytes, namespace=after.text_bytes)


async def test_totals_are_those_of_the_job_and_of_its_namespace(db: Database) -> None:
    key = a_key()
    await add(db, await opened(db, key), CHUNKS[0])
    await add(db, await opened(db, key._replace(run=1)), CHUNKS[0])
    await add(db, await opened(db, a_key()), CHUNKS[0], CHUNKS[1])
    await add(db, await opened(db, a_key(), "team-b"), CHUNKS[0])
    assert await kept_logs.totals(db, "team-a", key.job_uid) == Totals(job=20, namespace=50)
    assert await kept_logs.totals(db, "team-c", key.job_uid) == Totals(job=0, namespace=0)


async def test_a_reader_finds_the_chunks_that_it_needs(db: Database) -> None:
    log = await add(db, await opened(db, a_key()), *CHUNKS[:2])
    await add(db, log, GAP, CHUNKS[2])
    await add(db, await opened(db, log.key._replace(run=1)), chunk_of(0, 99, 5))
    key, (first, second, third) = log.key, CHUNKS

    def is_found(found: Sequence[KeptChunk], *expected: KeptChunk) -> bool:
        return list(found) == list(expected)

    assert is_found(await kept_logs.chunks_in_bytes(db, key), first, second, GAP, third)
    assert is_found(await kept_logs.chunks_in_bytes(db, key, 11, 12), second)
    assert is_found(await kept_logs.chunks_in_bytes(db, key, 30, 31), GAP, third)
    assert is_found(await kept_logs.chunks_in_bytes(db, key, limit=2), first, second)
    assert is_found(await kept_logs.chunks_before(db, key, limit=2), third, GAP)
    assert is_found(await kept_logs.chunks_before(db, key, 30), second, first)
    assert await kept_logs.first_since(db, key, later(0)) == first
    assert await kept_logs.first_since(db, key, later(11)) == second
    assert await kept_logs.first_since(db, key, later(10_000)) is None
    assert await kept_logs.first_with_line(db, key, 0) == first
    assert await kept_logs.first_with_line(db, key, 29) == second
    assert await kept_logs.first_with_line(db, key, 10_000) is None
