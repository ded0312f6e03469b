"""Carries out the actions of a decision on the cluster.

Every action may be repeated. What the cluster answers is kept in the job's expectations.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, unique
from functools import partial
from typing import TypeAlias

import structlog

from app.base.cancellation import TaskGroup
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.reconcile.actions import (
    CaptureEvidence,
    CheckGroup,
    ConfirmGone,
    CreatePod,
    DeletePod,
    DiscardObject,
    EnsureObjects,
    MarkAnchor,
    ObjectAction,
    QueueAction,
    ReadEvents,
    ReleasePod,
    RemoveObjects,
    WriteHosts,
)
from app.k8s.errors import KubeError
from app.loops import metrics
from app.loops.jobs.actions.creator import Creator
from app.loops.jobs.actions.pods import PodActions
from app.loops.jobs.actions.remover import Remover
from app.loops.jobs.actions.work import Work
from app.loops.jobs.actions.workloads import WorkloadActions
from app.loops.jobs.evidence.attempts import EvidenceCapture, groups
from app.loops.jobs.evidence.event_lists import PodEvents
from app.loops.jobs.evidence.node_slots import NoSlot
from app.loops.jobs.evidence.pending_pods import EventReader

log = structlog.get_logger(__name__)

# Calls to the API server at once: those of all jobs that act, as long as each may have the least number. They leave a
# third of the connections of a session for other requests.
CALLS = 64
LEAST_CALLS_PER_JOB = 10
# Seconds after which no further action of a decision begins. A cancel, or a pod that fails, is decided upon only after
# the actions that have begun.
SLICE = 2.0


@unique
class Performed(Enum):
    """How the actions of a decision went."""

    ALL = "all are done"
    LEFT = "the slice ended before some began, or a node is busy: reconcile again at once"
    FAILED = "one failed: reconcile again later"


Call: TypeAlias = Callable[[], Awaitable[Performed]]


def calls_per_job(acting: int) -> int:
    """Return how many calls each job may have at once while this number of jobs act."""
    return max(LEAST_CALLS_PER_JOB, CALLS // acting)


class _Slice:
    """Runs the calls that begin before its time is over, `at_once` at once, and keeps their common result."""

    def __init__(self, at_once: int) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._over = asyncio.Event()
        self.result = Performed.ALL

    @contextmanager
    def limit_time(self) -> Iterator[None]:
        """Let no call begin after SLICE seconds in the block."""
        timer = asyncio.get_running_loop().call_later(SLICE, self._over.set)
        try:
            yield
        finally:
            timer.cancel()

    async def run(self, call: Call, *, always: bool = False) -> None:
        """Carry out the call, unless the time is over. With `always`, carry it out in any case."""
        async with self._slots:
            self.add(Performed.LEFT if self._over.is_set() and not always else await call())

    def add(self, performed: Performed) -> None:
        """Add a result to the common one."""
        # A failure has a back-off, after which the actions that are left are computed again too.
        self.result = max(self.result, performed, key=list(Performed).index)


class Actuator:
    """Carries out the actions of a decision, several at once, and reports how they went."""

    def __init__(
        self,
        creator: Creator,
        remover: Remover,
        pods: PodActions,
        evidence: EvidenceCapture,
        event_reader: EventReader,
        workloads: WorkloadActions,
    ) -> None:
        self._creator = creator
        self._remover = remover
        self._pods = pods
        self._evidence = evidence
        self._event_reader = event_reader
        self._workloads = workloads
        self._acting = 0  # jobs whose actions are carried out

    async def perform(self, work: Work) -> Performed:
        """Carry out the actions that begin within SLICE seconds."""
        self._acting += 1
        try:
            # Jobs that begin or end to act change the share of this one from its next reconcile on.
            return await self._perform(work, _Slice(calls_per_job(self._acting)))
        finally:
            self._acting -= 1

    async def _perform(self, work: Work, begun: "_Slice") -> Performed:
        actions = list(work.actions)
        anchor: str | None = None
        if any(isinstance(action, EnsureObjects) for action in actions):
            anchor = await self._creator.ensure_objects(work)
            if anchor is None:
                # Without the anchor, a pod would have no owner. The expectations hold the time of its next try.
                actions = [action for action in actions if not isinstance(action, (CreatePod, WriteHosts))]
        # The list of hosts is written before the pods are created, so that a new pod finds itself in the list.
        write_hosts = partial(self._creator.write_hosts, work)
        for action in actions:
            if isinstance(action, WriteHosts):
                await begun.run(partial(self._try, action, write_hosts))
        with begun.limit_time():
            async with TaskGroup() as group:
                group.create_task(self._capture(work, begun))
                for action in actions:
                    if isinstance(action, QueueAction):
                        call = self._workloads.call(work, action, anchor)
                    else:
                        call = self._call(work, action, anchor)
                    if call is not None:
                        group.create_task(begun.run(partial(self._try, action, call)))
        return begun.result

    async def _capture(self, work: Work, begun: "_Slice") -> None:
        captures = [action for action in work.actions if isinstance(action, CaptureEvidence)]
        if not captures:
            return
        first, *others = groups(captures)
        async with TaskGroup() as group:
            events = group.create_task(self._evidence.events(work.plan.identity, captures))
            # In any case: to wait for the Events can take longer than the slice. The logs are read meanwhile.
            await begun.run(partial(self._try_to_capture, work, first, events), always=True)
        # The list of Events serves all groups. If the others were left, each of them would wait for another list.
        after = _Slice(1)
        with after.limit_time():
            for attempts in others:
                await after.run(partial(self._try_to_capture, work, attempts, events))
        begun.add(after.result)

    async def _try(self, action: ObjectAction | QueueAction, call: Callable[[], Awaitable[bool]]) -> Performed:
        """Carry out one action. The call returns False if it must be repeated even though nothing has changed."""
        name = type(action).__name__
        try:
            with metrics.ACTION_DURATION.labels(name).time():
                done = await call()
        except (KubeError, DatabaseUnavailable) as error:
            log.warning("action.failed", action=name, error=str(error))
            metrics.ACTIONS.labels(name, "failed").inc()
            return Performed.FAILED
        metrics.ACTIONS.labels(name, "done" if done else "again").inc()
        return Performed.ALL if done else Performed.FAILED

    async def _try_to_capture(
        self, work: Work, captures: Sequence[CaptureEvidence], events: Awaitable[PodEvents]
    ) -> Performed:
        """Capture the evidence of several attempts. An attempt whose node is busy is left, which is no failure."""
        name = CaptureEvidence.__name__
        failures: Sequence[Exception]
        try:
            with metrics.ACTION_DURATION.labels(name).time():
                failures = await self._evidence.capture(work.plan.identity, captures, work.expectations, events)
        except DatabaseUnavailable as error:
            failures = [error] * len(captures)
        left = sum(isinstance(failure, NoSlot) for failure in failures)
        for failure in failures:
            if not isinstance(failure, NoSlot):
                log.warning("action.failed", action=name, error=str(failure))
        metrics.ACTIONS.labels(name, "failed").inc(len(failures) - left)
        metrics.ACTIONS.labels(name, "again").inc(left)
        metrics.ACTIONS.labels(name, "done").inc(len(captures) - len(failures))
        if len(failures) > left:
            return Performed.FAILED
        return Performed.LEFT if left else Performed.ALL

    def _call(self, work: Work, action: ObjectAction, anchor: str | None) -> Callable[[], Awaitable[bool]] | None:
        match action:
            case CreatePod() | CheckGroup() | MarkAnchor():
                return self._call_creator(work, action, anchor)
            case DeletePod():
                return partial(self._pods.delete, work, action)
            case ReleasePod():
                return partial(self._pods.release, work, action)
            case ConfirmGone():
                return partial(self._pods.confirm_gone, work, action)
            case ReadEvents():
                # Not awaited: reading Events must not delay the other actions of the job.
                self._event_reader.request(work.plan.identity, action, work.expectations)
                return None
            case DiscardObject():
                return partial(self._pods.discard, work, action)
            case RemoveObjects():
                return partial(self._remover.remove, work)
            case EnsureObjects() | WriteHosts() | CaptureEvidence():
                return None

    def _call_creator(
        self, work: Work, action: CreatePod | CheckGroup | MarkAnchor, anchor: str | None
    ) -> Callable[[], Awaitable[bool]] | None:
        match action:
            case CreatePod():
                return partial(self._creator.create_pod, work, action, anchor) if anchor is not None else None
            case CheckGroup():
                return partial(self._creator.check_group, work)
            case MarkAnchor():
                return partial(self._creator.mark_anchor, work, action)
