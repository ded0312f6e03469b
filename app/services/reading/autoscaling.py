"""The recorded runs of the autoscaler, and a dry run of its decisions on the last recorded inventory."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from app.base.clock import Clock
from app.db.jobs import autoscaler_runs
from app.db.jobs.autoscaler_runs import NEWEST, AutoscalerRun, StoredRun
from app.db.postgres.engine import Database
from app.domain.errors import NotFound
from app.domain.scaling.dry_run import dry_run


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoscalerDryRun:
    """The last recorded run with new decisions. It was observed at `observed_at`, `age` seconds ago."""

    run: AutoscalerRun
    observed_at: datetime
    age: float


class Autoscaling:
    """Reads what the controller recorded. It does not call the cluster."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def runs(self, *, before: int | None, limit: int) -> Sequence[StoredRun]:
        """Return at most `limit` runs older than the run `before`, newest first."""
        return await autoscaler_runs.page(self._db, before=NEWEST if before is None else before, limit=limit)

    async def dry_run(self, max_load: float | None) -> AutoscalerDryRun:
        """Return the decisions that follow from the last recorded inventory and jobs, under another `max_load` if
        given.

        Raises:
            NotFound: no run with an inventory is stored.
        """
        stored = await autoscaler_runs.last_seen(self._db)
        if stored is None or stored.run.inventory is None:
            raise NotFound("the controller has not recorded an inventory of the cluster yet", code="NoInventory")
        run = stored.run if max_load is None else replace(stored.run, max_load=max_load)
        # Many jobs take long to compute, and the event loop serves other requests meanwhile.
        outcome = await asyncio.to_thread(
            dry_run, stored.run.inventory, run.jobs, pending=bool(run.pending), max_load=run.max_load
        )
        age = (self._clock.now() - run.at).total_seconds()
        # Another process recorded the time, and its clock may be ahead.
        return AutoscalerDryRun(run=replace(run, decisions=outcome.decisions), observed_at=run.at, age=max(0.0, age))
