"""Reads the cluster and the jobs once a period, records its decisions, and resizes jobs if it is enabled.

Every run is recorded, even if it changes nothing or if the cluster could not be read. A change is an ordinary edit,
fenced by the lease and bound to the intent version on which it was decided, so that a concurrent edit of a user wins.
The generation does not suffice: it does not count edits of labels and annotations, and a change that is bound to it
would write the former labels back.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import structlog

from app.base.cancellation import rounds
from app.db.jobs import autoscaler_runs, scaling_jobs
from app.db.jobs.autoscaler_runs import AutoscalerRun
from app.db.jobs.edits import JobEdit
from app.db.jobs.scaling_jobs import LiveRow
from app.db.postgres.errors import DatabaseContended, DatabaseUnavailable, LeaseLost
from app.domain.access.actors import AUTOSCALER
from app.domain.errors import Conflict, InvalidManifest, NotFound, PreconditionFailed
from app.domain.kinds.job_kind import Accepted, JobKind
from app.domain.kinds.registry import JOB_KINDS
from app.domain.plan import JobPlan, Manifest
from app.domain.resize import plan_resize
from app.domain.scaling.candidates import Live, Shape, can_scale, candidate, shape_of, waiting
from app.domain.scaling.dry_run import dry_run
from app.domain.scaling.values import ScalableJob, ScalingDecision
from app.k8s.errors import KubeError
from app.loops import metrics
from app.loops.autoscaling.inventory import read_inventory
from app.loops.context import ControllerContext
from app.loops.leadership.identity import WrongCluster
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

REASON = "Autoscaled"
BATCH = 200  # manifests in one query


@dataclass(slots=True)
class _Known:
    """The jobs of a run, and their shapes, which are kept from one run to the next."""

    rows: Mapping[str, LiveRow] = field(default_factory=dict)
    shapes: dict[tuple[UUID, int], Shape | None] = field(default_factory=dict)

    def shape(self, row: LiveRow) -> Shape | None:
        return self.shapes.get((row.uid, row.intent_version))


class Autoscaler:
    """Resizes elastic jobs to the load of the cluster. `verify` raises if another cluster answers."""

    def __init__(
        self,
        context: ControllerContext,
        leadership: Leadership,
        verify: Callable[[], Awaitable[None]],
        *,
        kinds: Mapping[tuple[str, str], JobKind[Any]] = JOB_KINDS,
    ) -> None:
        self._context = context
        self._db = context.db
        self._leadership = leadership
        self._verify = verify
        self._settings = context.settings.autoscaler
        self._job_kinds = kinds
        self._kinds = sorted({kind.name for kind in kinds.values() if can_scale(kind)})
        self._known = _Known()

    async def run(self) -> None:
        """Run the autoscaler once per period until cancelled. A run that fails is logged, and the next one follows.

        Raises:
            LeaseLost, WrongCluster.
        """
        for _ in rounds():
            try:
                await self.run_once()
            except (LeaseLost, WrongCluster):
                raise
            except DatabaseUnavailable as error:
                log.warning("autoscaler.database_unavailable", error=str(error))
            except Exception:
                metrics.AUTOSCALER_RUNS.labels("failed").inc()
                log.exception("autoscaler.failed")
            await asyncio.sleep(self._settings.period)

    async def run_once(self) -> AutoscalerRun:
        """Read the cluster and the jobs, do a dry run, and record its decisions.

        Raises:
            DatabaseUnavailable, LeaseLost, WrongCluster.
        """
        now = self._context.clock.now()
        await self._load_jobs()
        jobs = self._jobs(now)
        run = AutoscalerRun(
            at=now,
            enabled=self._settings.enabled,
            max_load=self._settings.max_load,
            period_seconds=self._settings.period,
            freeze_seconds=self._settings.freeze,
            jobs=jobs,
            pending=tuple(
                waiting(
                    await scaling_jobs.waiting(self._db, self._context.settings.served),
                    {job.uid: job.task for job in jobs if job.least < job.most},
                )
            ),
        )
        run = await self._decide(run)
        await autoscaler_runs.write(self._db, self._leadership.lease, run)
        metrics.AUTOSCALER_RUNS.labels("failed" if run.error else "decided").inc()
        return run

    async def _load_jobs(self) -> None:
        """Load the live jobs, and plan those with a new intent version, which counts edits of annotations too."""
        rows = await scaling_jobs.live(self._db, self._kinds, self._context.settings.served) if self._kinds else []
        self._known.rows = {str(row.uid): row for row in rows}
        kept = {
            key: self._known.shapes[key] for row in rows if (key := (row.uid, row.intent_version)) in self._known.shapes
        }
        missing = [row.uid for row in rows if (row.uid, row.intent_version) not in kept]
        for start in range(0, len(missing), BATCH):
            for stored in await scaling_jobs.manifests(self._db, missing[start : start + BATCH]):
                kept[stored.uid, stored.intent_version] = self._shape(
                    self._known.rows[str(stored.uid)], stored.manifest
                )
                await asyncio.sleep(0)  # a plan can be large, and other tasks wait
        self._known.shapes = kept

    def _shape(self, row: LiveRow, manifest: Manifest) -> Shape | None:
        """Return the shape of a job, or None if its plan fails. The reconciler reports such a job."""
        try:
            return shape_of(self._read(row, manifest), partial(self._plan, row))
        except Exception:
            log.exception("autoscaler.job_not_understood", namespace=row.namespace, name=row.name, job=str(row.uid))
            return None

    def _read(self, row: LiveRow, manifest: Manifest) -> Accepted[Any]:
        return self._job_kinds[row.api_version, row.kind].read(manifest)

    def _plan(self, row: LiveRow, accepted: Accepted[Any]) -> JobPlan:
        return self._context.planner.plan(accepted, str(row.uid), generation=row.generation)

    def _jobs(self, now: datetime) -> tuple[ScalableJob, ...]:
        freeze = timedelta(seconds=self._settings.freeze)
        return tuple(
            candidate(shape, _live(row), now, freeze)
            for row in self._known.rows.values()
            if (shape := self._known.shape(row)) is not None
        )

    async def _decide(self, run: AutoscalerRun) -> AutoscalerRun:
        try:
            namespaces = self._context.settings.namespaces
            inventory = await read_inventory(self._context.api, namespaces=namespaces, jobs=run.jobs)
            # Another cluster behind the same address has another capacity.
            await self._verify()
        except KubeError as error:
            log.warning("autoscaler.no_inventory", error=str(error))
            return replace(run, error=f"the cluster could not be read: {error}")
        # Many jobs take long to compute, and the event loop must renew the lease meanwhile.
        outcome = await asyncio.to_thread(
            dry_run, inventory, run.jobs, pending=bool(run.pending), max_load=run.max_load
        )
        decisions = await self._apply_all(outcome.decisions) if run.enabled else outcome.decisions
        return replace(run, inventory=inventory, decisions=decisions)

    async def _apply_all(self, decisions: Iterable[ScalingDecision]) -> tuple[ScalingDecision, ...]:
        return tuple([await self._apply(decision) if decision.changes else decision for decision in decisions])

    async def _apply(self, decision: ScalingDecision) -> ScalingDecision:
        row = self._known.rows[decision.uid]
        try:
            await self._edit(row, decision)
        # The job or the cluster has changed since the run began. The next run decides again.
        except (Conflict, DatabaseContended, InvalidManifest, NotFound, PreconditionFailed) as error:
            metrics.AUTOSCALER_CHANGES.labels("refused").inc()
            return replace(decision, refusal=str(error))
        metrics.AUTOSCALER_CHANGES.labels(decision.verdict.lower()).inc()
        log.info(
            "autoscaler.scaled", namespace=row.namespace, name=row.name, job=str(row.uid), decision=decision.message
        )
        return replace(decision, applied=True)

    async def _edit(self, row: LiveRow, decision: ScalingDecision) -> None:
        found = await scaling_jobs.manifests(self._db, [row.uid])
        # Only to save work: the transaction checks the version again under the lock.
        if not found or found[0].intent_version != row.intent_version:
            raise PreconditionFailed("the job was edited after it was read")
        before = self._read(row, found[0].manifest)
        after = before.kind.resize(before, {decision.task: decision.to_replicas})
        resize = plan_resize(self._context.planner, str(row.uid), before, after, decision.message)
        edit = JobEdit(
            manifest=after.manifest,
            labels=after.manifest["metadata"].get("labels", {}),
            actor=AUTOSCALER,
            at=self._context.clock.now(),
            expected_intent_version=row.intent_version,
            reason=REASON,
            message=decision.message,
            scales=resize.scales,
            namespace=row.namespace,
            added_pods=resize.pods,
            names=resize.names,
        )
        await autoscaler_runs.apply(self._db, self._leadership.lease, row.uid, edit, self._context.settings.pod_limits)
        self._context.publisher.hint()


def _live(row: LiveRow) -> Live:
    return Live(
        uid=str(row.uid),
        namespace=row.namespace,
        name=row.name,
        phase=row.phase,
        seen=row.seen,
        scaled_at=row.scaled_at,
    )
