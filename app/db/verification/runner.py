"""Runs checks in batches. Each batch is a read-only transaction with one snapshot, so a check sees whole changes."""

from asyncio import sleep
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from app.db.postgres.engine import Connection, Database
from app.db.verification.check import CheckResult, Fault, Invariant, Subjects
from app.db.verification.job_checks import JOB_CHECKS
from app.db.verification.record_checks import RECORD_CHECKS

CHECKS: Final = (*JOB_CHECKS, *RECORD_CHECKS)
"""All checks of the database."""


async def verify_database(
    db: Database, *, checks: Sequence[Invariant] = CHECKS, pause: float, batch: int | None = None
) -> list[CheckResult]:
    """Run the checks, and return what each has found.

    What looks like a fault is examined again after `pause` seconds, and reported if it is still there.
    `batch` replaces the sizes of all batches.
    """
    results = {
        check.name: CheckResult(name=check.name, why=check.why, subjects=check.subjects.name) for check in checks
    }
    for subjects, group in _by_subjects(checks):
        suspects = await _find_suspects(db, subjects, group, results, batch or subjects.batch)
        if not any(suspects.values()):
            continue
        await sleep(pause)
        for check in group:
            async with db.snapshot() as connection:
                keys = list(dict.fromkeys(key for key, _ in suspects[check.name]))
                before = {fault.subject for _, fault in suspects[check.name]}
                again = await _faults(connection, check, keys) if keys else []
                still = (fault for _, fault in again if fault.subject in before)
                results[check.name].faults = sorted(still, key=lambda fault: fault.subject)
    return list(results.values())


def _by_subjects(checks: Sequence[Invariant]) -> Iterator[tuple[Subjects, list[Invariant]]]:
    """Group the checks by what they examine, so that it is read once."""
    for _, group in groupby(
        sorted(checks, key=lambda check: check.subjects.name), key=lambda check: check.subjects.page
    ):
        found = list(group)
        yield found[0].subjects, found


async def _find_suspects(
    db: Database, subjects: Subjects, checks: Sequence[Invariant], results: dict[str, CheckResult], batch: int
) -> dict[str, list[tuple[Any, Fault]]]:
    """Return what looks like a fault, by check, and count what was examined."""
    suspects: dict[str, list[tuple[Any, Fault]]] = {check.name: [] for check in checks}
    after = subjects.first
    while True:
        async with db.snapshot() as connection:
            keys = [row["key"] for row in await connection.fetch(subjects.page, after, batch)]
            for check in checks if keys else ():
                suspects[check.name] += await _faults(connection, check, keys)
                results[check.name].examined += len(keys)
        if len(keys) < batch:
            return suspects
        after = keys[-1]


async def _faults(connection: Connection, check: Invariant, keys: Sequence[Any]) -> list[tuple[Any, Fault]]:
    rows = await connection.fetch(check.sql, keys)
    return [(row["key"], Fault(subject=row["subject"], found=row["found"])) for row in rows]
