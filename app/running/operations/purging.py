"""The command `purge`: deletes records as the retention does, when an operator says so."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Self

from app.base.clock import SystemClock
from app.db import purge as stored
from app.db.installation import timekeeping
from app.db.postgres.engine import Database
from app.db.purge import Deleted, Purge
from app.domain.retention import parse_duration, parse_time
from app.domain.timekeeping import unrecorded_time
from app.domain.vocabulary import TERMINAL_PHASES
from app.loops.maintenance.sweeper import take_turns
from app.running.archiving import open_archive
from app.running.connections import NotPossible
from app.running.operations.interruptions import INTERRUPTED, finish_or_abandon
from app.running.operations.opening import OpenedDatabase, opened_database
from app.settings import Settings

_MOST_UNRECORDED: Final = timedelta(days=1)
"""A controller records the time every few seconds. An upgrade may take hours."""


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


async def purge(settings: Settings, order: PurgeOrder, say: Callable[[str], None], stop: asyncio.Event) -> int:
    """Count what the order concerns and, unless it is a dry run, delete it. Return the exit status.

    Raises:
        NotConfigured: this version cannot use the database.
        FolderUnavailable: jobs cannot be exported before they are deleted.
    """
    async with opened_database(settings, "purge") as opened:
        work = _Work(opened, settings, order, say)
        try:
            await finish_or_abandon(work.run(stop), stop)
        finally:
            work.report()
    return 0 if work.is_complete else INTERRUPTED


class _Work:
    """A purge, and how far it is."""

    def __init__(
        self, opened: OpenedDatabase, settings: Settings, order: PurgeOrder, say: Callable[[str], None]
    ) -> None:
        self._opened = opened
        self._settings = settings
        self._order = order
        self._say = say
        self._deleted: Counter[str] = Counter()
        self.is_complete = False

    async def run(self, stop: asyncio.Event) -> None:
        purge = await self._purge()
        counts = await purge.count()
        for namespace, phase, number in counts:
            self._say(f"  {namespace}  {phase}  {number}")
        self._say(f"  {sum(number for _, _, number in counts)} in all")
        if not self._order.dry_run:
            try:
                await take_turns([partial(self._step, purge, stop)], SystemClock())
            except _Stopped:
                return
        self.is_complete = True

    async def _step(self, purge: Purge, stop: asyncio.Event) -> Deleted:
        if stop.is_set():
            raise _Stopped
        done = await purge.step()
        self._deleted.update(done.rows)
        return done

    async def _purge(self) -> Purge:
        """Return the deletion that was ordered, and say what it concerns."""
        db, installation, clock = self._opened
        order, purgeable = self._order, stored.SAMPLES if self._order.samples else stored.JOBS
        before = order.ended_before(clock.now())
        if isinstance(order.before, timedelta):
            await _require_sure_time(db)
        present = await stored.namespaces(db, purgeable)
        chosen = [name for name in present if name in order.namespaces] if order.namespaces else present
        self._say(f"{purgeable.table} that ended before {before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}:")
        purge = Purge(db=db, of=purgeable, ended_before=dict.fromkeys(chosen, before), phases=order.phases)
        if self._settings.export_to and not order.samples:
            self._say(f"each is exported to {self._settings.export_to} before it is deleted")
            if not order.dry_run and (archive := open_archive(self._settings, db, installation, clock.now)):
                purge.copy = archive.copy
        return purge

    def report(self) -> None:
        """Say what was deleted, also before an error."""
        if self._order.dry_run:
            return
        rows = ", ".join(f"{number} {table}" for table, number in sorted(self._deleted.items()) if number)
        self._say(f"deleted: {rows or 'nothing'}{'' if self.is_complete else '; not complete: run the command again'}")


async def _require_sure_time(db: Database) -> None:
    """Check that a duration before now is what the operator means: with a wrong clock, it could be everything.

    Raises:
        NotPossible: the time is not sure.
    """
    async with db.read() as connection:
        unsure = unrecorded_time(await timekeeping.read(connection))
    if unsure > _MOST_UNRECORDED:
        raise NotPossible(
            f"no controller has recorded the time for {unsure.days} days, by the clock of the database: if that is "
            "right, give --before as a time, such as 2026-08-31T12:00Z; otherwise correct the clock"
        )


def _time(text: str) -> datetime | timedelta:
    with suppress(ValueError):
        return parse_time(text)
    with suppress(ValueError):
        if (duration := parse_duration(text)) is not None:
            return duration
    raise ValueError(f"--before {text}: expected a time such as 2026-08-31T12:00Z, or a duration such as 90d")
