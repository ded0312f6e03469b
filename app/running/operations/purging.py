"""The command `purge`: deletes records as the retention does, when an operator says so."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from app.base import faultpoints
from app.base.clock import SystemClock
from app.db import purge as stored
from app.db.installation import timekeeping
from app.db.postgres import schema_version
from app.db.postgres.engine import Database
from app.db.purge import Deleted, Purge
from app.domain.retention import parse_duration, parse_time
from app.domain.vocabulary import TERMINAL_PHASES
from app.loops.maintenance.sweeper import take_turns
from app.running.connections import NotConfigured, open_database

INTERRUPTED: Final = 1
"""The exit status if a signal has ended the purge, and something may be left."""


class _Stopped(Exception):  # noqa: N818 - leaves `take_turns`
    """A signal ends the purge after the present step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeOrder:
    """What to delete: objects that ended before `before`, a time, or a duration before the present time."""

    before: datetime | timedelta
    namespaces: Sequence[str]
    phases: Sequence[str] | None
    samples: bool
    dry_run: bool

    @classmethod
    def of(cls, *, before: str, namespaces: Sequence[str], phases: Sequence[str], samples: bool, dry_run: bool) -> Self:
        """Return the order of these options.

        Raises:
            ValueError: an option is not valid; the message names it.
        """
        known = sorted(TERMINAL_PHASES)
        if wrong := sorted(set(phases) - set(known)):
            raise ValueError(f"--phase {wrong[0]}: no job ends in this phase; the phases are {', '.join(known)}")
        if samples and phases:
            raise ValueError("--phase is one of jobs: leave it or --samples out")
        return cls(before=_time(before), namespaces=namespaces, phases=phases or None, samples=samples, dry_run=dry_run)

    def ended_before(self, now: datetime) -> datetime:
        return self.before if isinstance(self.before, datetime) else now - self.before


async def purge(url: str, order: PurgeOrder, say: Callable[[str], None], stop: asyncio.Event) -> int:
    """Count what the order concerns and, unless it is a dry run, delete it. Return the exit status.

    Raises:
        NotConfigured: this version cannot use the database.
    """
    faultpoints.arm(os.environ)
    async with AsyncExitStack() as stack:
        db = await open_database(stack, url, pool_size=1, name="purge")
        if unusable := await schema_version.check_database(url):
            raise NotConfigured("; ".join(unusable))
        return await _purge(db, order, say, stop)


async def _purge(db: Database, order: PurgeOrder, say: Callable[[str], None], stop: asyncio.Event) -> int:
    purgeable = stored.SAMPLES if order.samples else stored.JOBS
    async with db.read() as connection:
        before = order.ended_before((await timekeeping.read(connection)).time)
    present = await stored.namespaces(db, purgeable)
    chosen = [name for name in present if name in order.namespaces] if order.namespaces else present
    purge = Purge(db=db, of=purgeable, ended_before=dict.fromkeys(chosen, before), phases=order.phases)
    say(f"{purgeable.table} that ended before {before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}:")
    counts = await purge.count()
    for namespace, phase, number in counts:
        say(f"  {namespace}  {phase}  {number}")
    say(f"  {sum(number for _, _, number in counts)} in all")
    if order.dry_run:
        return 0
    deleted: Counter[str] = Counter()

    async def step() -> Deleted:
        if stop.is_set():
            raise _Stopped
        done = await purge.step()
        deleted.update(done.rows)
        return done

    status = 0
    try:
        await take_turns([step], SystemClock())
    except _Stopped:
        status = INTERRUPTED
    rows = ", ".join(f"{number} {table}" for table, number in sorted(deleted.items()) if number)
    say(f"deleted: {rows or 'nothing'}{'; interrupted: run the command again' if status else ''}")
    return status


def _time(text: str) -> datetime | timedelta:
    with suppress(ValueError):
        return parse_time(text)
    with suppress(ValueError):
        if (duration := parse_duration(text)) is not None:
            return duration
    raise ValueError(f"--before {text}: expected a time such as 2026-08-31T12:00Z, or a duration such as 90d")
