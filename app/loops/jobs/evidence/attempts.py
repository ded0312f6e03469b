"""Stores the evidence of an ended attempt: the end of each container's log, and the last Events of its pod.

The pod keeps its finalizer until this is done. Container states and exit codes come from the mirror and are always
stored. If the cluster does not give logs or Events within the capture deadline, the evidence is unavailable, and the
reason is stored.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from app.base.cancellation import TaskGroup
from app.base.clock import Clock
from app.base.faultpoints import FaultPoint, reach
from app.db.jobs import evidence as store
from app.db.jobs.evidence import Capture, Log
from app.db.postgres.engine import Database
from app.db.postgres.errors import NotStorable
from app.domain.kept_logs.runs import kept_since
from app.domain.kubernetes.objects import Event
from app.domain.plan import JobIdentity
from app.domain.reconcile.actions import CaptureEvidence
from app.domain.status.log_lines import last_lines, whole_characters
from app.domain.vocabulary import Evidence
from app.k8s.api import KubeApi
from app.k8s.errors import KubeBadRequest, KubeError, KubeNotFound, Unreachable
from app.k8s.logs import read_log
from app.loops import metrics
from app.loops.controller_settings import EvidenceSettings
from app.loops.jobs.evidence.event_lists import EventLists, PodEvents
from app.loops.jobs.evidence.node_slots import NodeSlots
from app.loops.jobs.expectations import Expectations
from app.loops.leadership.lease import Leadership

log = structlog.get_logger(__name__)

CALL_TIMEOUT = 5.0  # seconds for the log of a container
TAIL_LINES = 5000  # read at most; of these the last bytes are kept
READS_AT_ONCE = 10  # attempts whose logs are read, so that one large job leaves connections for the others
STORED_AT_ONCE = 200  # attempts without logs that share a transaction, which holds the lock on their job


class EvidenceCapture:
    """Reads evidence from the cluster and stores it. The caller captures a pod only once at a time.

    events = tasks.create_task(evidence.events(job, actions))
    for group in groups(actions): await evidence.capture(job, group, expectations, events)
    """

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        leadership: Leadership,
        clock: Clock,
        settings: EvidenceSettings,
        event_lists: EventLists,
        *,
        verify: Callable[[], Awaitable[None]],
    ) -> None:
        self._api = api
        self._db = db
        self._leadership = leadership
        self._clock = clock
        self._settings = settings
        self._event_lists = event_lists
        self._verify = verify
        self._node_slots = NodeSlots()

    async def events(self, job: JobIdentity, actions: Sequence[CaptureEvidence]) -> PodEvents:
        """Read the Events of the pods. The result lacks those that the cluster does not give."""
        return await self._event_lists.of(job.namespace, [action.pod_uid for action in actions]) or {}

    async def capture(
        self,
        job: JobIdentity,
        actions: Sequence[CaptureEvidence],
        expectations: Expectations,
        events: Awaitable[PodEvents],
    ) -> list[KubeError]:
        """Store the evidence that the cluster gives, in one transaction. `events` can be awaited many times.

        Returns the errors of the attempts whose capture must be tried again: the cluster did not give their evidence,
        and the deadline has not passed.
        """
        failures: list[KubeError] | None = None
        while failures is None:
            failures = await self._capture(job, actions, expectations, events)
        return failures

    async def _capture(
        self,
        job: JobIdentity,
        actions: Sequence[CaptureEvidence],
        expectations: Expectations,
        events: Awaitable[PodEvents],
    ) -> list[KubeError] | None:
        """Store the evidence as `capture` does. Return None if a redaction was not known, so that nothing is stored."""
        redacted_at = expectations.redacted_at
        read: list[Capture] = []
        failures: list[KubeError] = []

        async def read_one(action: CaptureEvidence) -> None:
            try:
                read.append(await self._read(job, action, expectations, events, redacted_at))
            # One pod without evidence must not lose the evidence of the others.
            except KubeError as error:
                failures.append(error)

        async with TaskGroup() as group:
            for action in actions:
                group.create_task(read_one(action))
        reach(FaultPoint.EVIDENCE_READ)
        if read:
            try:
                await self._store(UUID(job.uid), read, redacted_at)
            except store.LaterRedaction as redaction:
                expectations.redacted_at = redaction.at
                return None
            reach(FaultPoint.EVIDENCE_STORED)
            stored = {(capture.key, capture.attempt) for capture in read}
            for action in actions:
                if (action.key, action.attempt) in stored:
                    expectations.capturing_since.pop(action.pod_uid, None)
            expectations.revision += 1
        return failures

    async def _store(self, uid: UUID, captures: Sequence[Capture], redacted_at: datetime | None) -> None:
        lease = self._leadership.lease
        try:
            await store.store(self._db, lease, uid, captures, redacted_at=redacted_at)
        except NotStorable:
            if len(captures) == 1:
                raise
            # One attempt whose evidence cannot be stored must not keep the evidence of the others from being stored.
            for capture in captures:
                await store.store(self._db, lease, uid, [capture], redacted_at=redacted_at)

    async def _read(
        self,
        job: JobIdentity,
        action: CaptureEvidence,
        expectations: Expectations,
        events: Awaitable[PodEvents],
        redacted_at: datetime | None,
    ) -> Capture:
        """Read the logs of one attempt, and return them with its Events.

        Raises:
            KubeError: the cluster did not give it, and the deadline has not passed: try again.
        """
        async with self._slot(action):
            # Not before the slot: the deadline is for the cluster, and other jobs must not use it up. Only in memory: a
            # new controller gives the capture its full time again, which loses nothing.
            since = expectations.capturing_since.setdefault(action.pod_uid, self._clock.monotonic())
            expired = self._clock.monotonic() - since >= self._settings.deadline
            logs, refusals = await self._logs(job, action, kept_since(redacted_at, action.created_at))
        failure = next((error for error in refusals.values() if not _is_final(error)), None)
        if failure is not None and (not expired or isinstance(failure, Unreachable)):
            # While the API server does not answer, the pod keeps its finalizer and its logs, so waiting loses nothing.
            raise failure
        if not logs:
            await self._verify()  # another cluster would answer that there is no such pod
        missing = "; ".join(f"{name}: {error}" for name, error in refusals.items())
        state = Evidence.CAPTURED if logs or not refusals else Evidence.UNAVAILABLE
        return Capture(
            key=action.key,
            attempt=action.attempt,
            state=state,
            reason=missing or None,
            logs=logs,
            events=[_render(event) for event in (await events).get(action.pod_uid, ())],
            last_lines=_last_lines(action, logs),
        )

    def _slot(self, action: CaptureEvidence) -> AbstractAsyncContextManager[None]:
        """Return the slot of an attempt at its node. An attempt without logs needs none."""
        return self._node_slots.slot(action.node or "") if action.containers else nullcontext()

    async def _logs(
        self, job: JobIdentity, action: CaptureEvidence, since: datetime | None
    ) -> tuple[dict[str, Log], dict[str, KubeError]]:
        logs: dict[str, Log] = {}
        refusals: dict[str, KubeError] = {}

        async def read(container: str) -> None:
            try:
                logs[container] = await self._tail(job.namespace, action.pod_name, container, since)
            # One container without a log must not lose the logs of the others.
            except KubeError as error:
                refusals[container] = error
                metrics.count_evidence_failure("log", error)

        async with TaskGroup() as group:
            for container in action.containers:
                group.create_task(read(container))
        return logs, refusals

    async def _tail(self, namespace: str, pod: str, container: str, since: datetime | None) -> Log:
        """Return the last bytes of a log. The API limits lines from the end, but bytes only from the beginning."""
        tail, dropped = bytearray(), since is not None
        limit = self._settings.log_bytes
        lines = 0
        try:
            async with (
                asyncio.timeout(CALL_TIMEOUT),
                aclosing(
                    read_log(self._api, namespace, pod, container, tail_lines=TAIL_LINES, since_time=since)
                ) as pieces,
            ):
                async for piece in pieces:
                    lines += piece.count(b"\n")
                    tail += piece
                    if len(tail) > limit:
                        dropped = True
                        del tail[: len(tail) - limit]
        except TimeoutError:
            # What has come in time is evidence too.
            if not tail:
                raise SlowLog(f"the log of {container} did not come within {CALL_TIMEOUT:g} s") from None
            dropped = True
        text = whole_characters(bytes(tail)) if dropped else bytes(tail)
        return Log(tail=text, truncated=dropped or lines >= TAIL_LINES)


def groups(actions: Sequence[CaptureEvidence]) -> Iterator[Sequence[CaptureEvidence]]:
    """Divide captures, in their order, into groups that are read at once and stored in one transaction.

    A group has at most READS_AT_ONCE attempts with logs, whose text is in memory until it is stored.
    """
    group: list[CaptureEvidence] = []
    reads = 0
    for action in actions:
        if len(group) >= STORED_AT_ONCE or (action.containers and reads >= READS_AT_ONCE):
            yield group
            group, reads = [], 0
        group.append(action)
        reads += bool(action.containers)
    if group:
        yield group


class SlowLog(KubeError):  # noqa: N818 - an answer that is late, not a fault
    """A log that did not come in time. The next try may succeed."""


def _last_lines(action: CaptureEvidence, logs: Mapping[str, Log]) -> tuple[str, ...] | None:
    """Return the last lines of the container that failed; None if no container failed or its log is not available."""
    log_of_failed = logs.get(action.failed_container or "")
    return None if log_of_failed is None else last_lines(log_of_failed.tail, action.lines)


def _is_final(error: KubeError) -> bool:
    """Return whether no later try can succeed, because the pod or container is gone or never ran."""
    return isinstance(error, KubeNotFound | KubeBadRequest)


def _render(event: Event) -> Mapping[str, Any]:
    return {
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": event.times,
        "lastSeen": event.last_seen.isoformat() if event.last_seen else None,
        "component": event.component,
    }
