"""Runs checks in batches. Each batch is a read-only transaction with one snapshot, so a check sees whole changes.

A snapshot holds back the vacuum of all tables, so its duration is bounded: batches become smaller where keys have many
rows, such as jobs of ten thousand replicas, and on a slow server.
"""

from asyncio import sleep
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from app.base.clock import SystemClock
from app.db.postgres.engine import Connection, Database
from app.db.verification.check import CheckResult, Fault, Invariant, Subjects
from app.db.verification.job_checks import JOB_CHECKS
from app.db.verification.record_checks import RECORD_CHECKS

CHECKS: Final = (*JOB_CHECKS, *RECORD_CHECKS)
"""All checks of the database."""
# Seconds that a batch should take.
_WANTED: Final = 1.0
_FIRST_BATCH: Final = 1
_MOST_FAULTS: Final = 10_000
"""A check that has found so many ends, so that it has few of them in memory."""

Progress = Callable[[str, int], object]
"""Gets what is examined, and how many of them have been."""


def next_batch(size: int, seconds: float, *, most: int) -> int:
    """Return the size of the batch after one of `size` keys that has taken `seconds`. It at most doubles."""
    fitting = size * min(2.0, _WANTED / max(seconds, _WANTED / 1000))
    return max(1, min(most, int(fitting)))


async def verify_database(
    db: Database,
    *,
    pause: float,
    batch: int | None = None,
    progress: Progress = lambda _, __: None,
) -> list[CheckResult]:
    """Run all checks, and return what each has found.

    What looks like a fault is examined again after `pause` seconds, and reported if it is still there. A check that has
    found very many ends early. `batch` replaces the largest sizes of all batches.
    """
    results = {
        check.name: CheckResult(name=check.name, why=check.why, subjects=check.subjects.name) for check in CHECKS
    }
    for subjects, group in _by_subjects(CHECKS):
        examiner = _Examiner(db, pause, batch or subjects.batch)
        await examiner.examine(subjects, [(check, results[check.name]) for check in group], progress)
    for result in results.values():
        result.faults.sort(key=lambda fault: fault.subject)
    return list(results.values())


def _by_subjects(checks: Sequence[Invariant]) -> Iterator[tuple[Subjects, list[Invariant]]]:
    """Group the checks by what they examine, so that it is read once."""
    for _, group in groupby(
        sorted(checks, key=lambda check: check.subjects.name), key=lambda check: check.subjects.page
    ):
        found = list(group)
        yield found[0].subjects, found


class _Examiner:
    """Examines keys in batches of at most `most`, whose sizes follow from the time that they take."""

    def __init__(self, db: Database, pause: float, most: int) -> None:
        self._db = db
        self._clock = SystemClock()
        self._pause = pause
        self._most = most
        self._suspects: dict[str, list[tuple[Any, Fault]]] = defaultdict(list)

    async def examine(
        self, subjects: Subjects, checks: Sequence[tuple[Invariant, CheckResult]], progress: Progress
    ) -> None:
        """Examine all subjects, and add what is found to the results."""
        after, size, examined = subjects.first, min(_FIRST_BATCH, self._most), 0
        while checks:
            began = self._clock.monotonic()
            async with self._db.snapshot() as connection:
                keys = [row["key"] for row in await connection.fetch(subjects.page, after, size)]
                for check, result in checks if keys else ():
                    self._suspects[check.name] += await _faults(connection, check, keys)
                    result.examined += len(keys)
            seconds = self._clock.monotonic() - began
            examined += len(keys)
            progress(subjects.name, examined)
            is_last = len(keys) < size
            if is_last or any(len(found) >= _MOST_FAULTS for found in self._suspects.values()):
                await self._confirm(checks)
            if is_last:
                return
            after, size = keys[-1], next_batch(size, seconds, most=self._most)
            for _, result in checks:
                result.is_complete = len(result.faults) < _MOST_FAULTS
            checks = [each for each in checks if each[1].is_complete]

    async def _confirm(self, checks: Sequence[tuple[Invariant, CheckResult]]) -> None:
        """Examine the suspects again after the pause, and move those that still look like faults to the results."""
        if any(self._suspects.values()):
            await sleep(self._pause)
        for check, result in checks:
            suspects = self._suspects.pop(check.name, [])
            before = {fault.subject for _, fault in suspects}
            again = self._examine_again(check, list(dict.fromkeys(key for key, _ in suspects)))
            result.faults += [fault async for fault in again if fault.subject in before]

    async def _examine_again(self, check: Invariant, keys: Sequence[Any]) -> AsyncIterator[Fault]:
        """Yield what still looks like a fault."""
        done, size = 0, min(_FIRST_BATCH, self._most)
        while done < len(keys):
            began = self._clock.monotonic()
            async with self._db.snapshot() as connection:
                found = await _faults(connection, check, keys[done : done + size])
            for _, fault in found:
                yield fault
            done, size = done + size, next_batch(size, self._clock.monotonic() - began, most=self._most)


async def _faults(connection: Connection, check: Invariant, keys: Sequence[Any]) -> list[tuple[Any, Fault]]:
    rows = await connection.fetch(check.sql, keys)
    return [(row["key"], Fault(subject=row["subject"], found=row["found"])) for row in rows]
