"""Keeps the logs of one pod: a follower for each run of each container, as they begin."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from app.base.backoff import ExponentialBackoff
from app.base.cancellation import TaskGroup, rounds
from app.db import kept_logs
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.kept_logs.keys import LogKey
from app.domain.kept_logs.records import GapReason
from app.domain.kept_logs.runs import ContainerRun, is_finished, runs_of
from app.domain.kubernetes.objects import Pod
from app.loops.logs.context import LogContext
from app.loops.logs.follower import FollowedPod, LogFollower

_UNKNOWN: Final = ExponentialBackoff(first=0.5, longest=60.0)  # seconds until the record of a pod is read again


class PodLogs:
    """Follows the containers of a pod. `observe` returns the pod as it is now; None once it is gone."""

    def __init__(self, context: LogContext, pod: Pod, attempt: LogKey, observe: Callable[[], Pod | None]) -> None:
        self._context = context
        self._attempt = attempt
        self._pod = FollowedPod(namespace=pod.metadata.namespace, name=pod.metadata.name, uid=pod.metadata.uid)
        self._observe = observe
        self._changed = asyncio.Event()
        self._followers: dict[str, LogFollower] = {}  # by the id of the container

    def note_change(self) -> None:
        """Note that the pod has changed or is gone."""
        self._changed.set()
        for follower in self._followers.values():
            follower.changed.set()

    async def run(self) -> None:
        """Keep all logs of the pod. Returns when they are final and no container can run any more."""
        if not await self._is_on_record():
            return
        async with TaskGroup() as group:
            for _ in rounds():
                self._changed.clear()
                pod = self._observe()
                if pod is None:
                    return  # after the followers
                runs = runs_of(pod)
                self._forget_others(runs)
                for run in runs:
                    if run.container_id not in self._followers:
                        group.create_task(self._follower(run).run())
                if is_finished(pod):
                    return
                await self._changed.wait()

    async def _is_on_record(self) -> bool:
        """Wait until the pod is on record as that of its attempt. Return False if it is gone before."""
        failures = 0
        for _ in rounds():
            pod = self._observe()
            if pod is None:
                return False
            if not runs_of(pod):
                await self._changed.wait()
                self._changed.clear()
                continue
            try:
                async with self._context.transactions:
                    is_known = await kept_logs.is_pod_of(
                        self._context.db, self._pod.namespace, self._pod.uid, self._attempt
                    )
                if is_known:
                    return True
            except DatabaseUnavailable:
                pass
            # The controller records a pod a moment after it has created it. Another client's pod is never on record.
            failures = _UNKNOWN.count(failures)
            await asyncio.sleep(_UNKNOWN.delay(failures))
        return False

    def _forget_others(self, runs: Sequence[ContainerRun]) -> None:
        """Forget the logs of runs that the cluster does not have any more, unless one is not final yet."""
        present = {run.container_id for run in runs}
        self._followers = {
            known: follower for known, follower in self._followers.items() if known in present or not follower.has_ended
        }

    def _follower(self, run: ContainerRun) -> LogFollower:
        key = self._attempt.of_run(run.container, run.number)
        follower = LogFollower(self._context, self._pod, key, lambda: self._run_of(run.container_id))
        self._followers[run.container_id] = follower
        return follower

    def _run_of(self, container_id: str) -> ContainerRun | GapReason:
        """Return a run of a container, or why the cluster does not have its log."""
        pod = self._observe()
        if pod is None:
            return GapReason.POD_GONE
        # The cluster has the last two runs.
        return next((run for run in runs_of(pod) if run.container_id == container_id), GapReason.RESTARTED)
