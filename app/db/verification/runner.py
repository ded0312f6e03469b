"""Runs checks in batches. Each batch is a read-only transaction with one snapshot, so a check sees whole changes.

A snapshot holds back the vacuum of all tables, so its duration is bounded: batches become smaller where keys have many
rows, such as jobs of ten thousand replicas, and on a slow server.
"""

from asyncio import sleep
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from app.base.clock import Clock, SystemClock
from app.db.postgres.engine import Connection, Database
from app.db.verification.check import CheckResult, Fault, Invariant, Subjects
from app.db.verification.job_checks import JOB_CHECKS
from app.db.verification.record_checks import RECORD_CHECKS

CHECKS: Final = (*JOB_CHECKS, *RECORD_CHECKS)
"""All checks of the database."""
# Seconds that a batch should take.
_WANTED: Final = 1.0
_FIRST_BATCH: Final = 1

Progress = Callable[[str, int], object]
"""Gets what is examined, and how many of them have been."""


def next_batch(size: int, seconds: float, *, most: int) -> int:
    """Return the size of the batch after one of `size` keys that has taken `seconds`. It at most doubles."""
    fitting = size * min(2.0, _WANTED / max(seconds, _WANTED / 1000))
    return max(1, min(most, int(fitting)))


async def verify_database(
    db: Database,
    *,
    checks: Sequence[Invariant] = CHECKS,
    pause: float,
    batch: int | None = None,
    clock: Clock | None = None,
    progress: Progress = lambda _, __: None,
) -> list[CheckResult]:
    """Run the checks, and return what each has found.

    What looks like a fault is examined again after `pause` seconds, and reported if it is still there.
    `batch` replaces the largest sizes of all batches.
    """
    results = {
        check.name: CheckResult(name=check.name, why=check.why, subjects=check.subjects.name) for check in checks
    }
    examiner = _Examiner(db, clock or SystemClock(), progress)
    for subjects, group in _by_subjects(checks):
        suspects = await examiner.find_suspects(subjects, group, results, batch or subjects.batch)
        if not any(suspects.values()):
            continue
        await sleep(pause)
        for check in group:
            before = {fault.subject for _, fault in suspects[check.name]}
            keys = list(dict.fromkeys(key for key, _ in suspects[check.name]))
            again = [fault async for fault in examiner.examine_again(check, keys, batch or subjects.batch)]
            still = (fault for fault in again if fault.subject in before)
            results[check.name].faults = sorted(still, key=lambda fault: fault.subject)
    return list(results.values())


def _by_subjects(checks: Sequence[Invariant]) -> Iterator[tuple[Subjects, list[Invariant]]]:
    """Group the checks by what they examine, so that it is read once."""
    for _, group in groupby(
        sorted(checks, key=lambda check: check.subjects.name), key=lambda check: check.subjects.page
    ):
        found = list(group)
        yield found[0].subjects, found


class _Examiner:
    """Examines keys in batches whose sizes follow from the time that they take."""

    def __init__(self, db: Database, clock: Clock, progress: Progress) -> None:
        self._db = db
        self._clock = clock
        self._progress = progress

    async def find_suspects(
        self, subjects: Subjects, checks: Sequence[Invariant], results: dict[str, CheckResult], most: int
    ) -> dict[str, list[tuple[Any, Fault]]]:
        """Return what looks like a fault, by check, and count what was examined."""
        suspects: dict[str, list[tuple[Any, Fault]]] = {check.name: [] for check in checks}
        after, size, examined = subjects.first, min(_FIRST_BATCH, most), 0
        while True:
            began = self._clock.monotonic()
            async with self._db.snapshot() as connection:
                keys = [row["key"] for row in await connection.fetch(subjects.page, after, size)]
                for check in checks if keys else ():
                    suspects[check.name] += await _faults(connection, check, keys)
                    results[check.name].examined += len(keys)
            examined += len(keys)
            self._progress(subjects.name, examined)
            if len(keys) < size:
                return suspects
            after, size = keys[-1], next_batch(size, self._clock.monotonic() - began, most=most)

    async def examine_again(self, check: Invariant, keys: Sequence[Any], most: int) -> AsyncIterator[Fault]:
        """Yield what still looks like a fault."""
        done, size = 0, min(_FIRST_BATCH, most)
        while done < len(keys):
            began = self._clock.monotonic()
            async with self._db.snapshot() as connection:
                found = await _faults(connection, check, keys[done : done + size])
            for _, fault in found:
                yield fault
            done, size = done + size, next_batch(size, self._clock.monotonic() - began, most=most)


async def _faults(connection: Connection, check: Invariant, keys: Sequence[Any]) -> list[tuple[Any, Fault]]:
    rows = await connection.fetch(check.sql, keys)
    return [(row["key"], Fault(subject=row["subject"], found=row["found"])) for row in rows]
