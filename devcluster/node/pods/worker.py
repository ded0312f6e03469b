"""Runs one pod of this node, from its binding until its object is gone.

volumes ─▶ init containers, sidecars ─▶ containers ─▶ ended ─▶ (deleted) final status ─▶ DELETE
              deletion, deadline and eviction stop it anywhere
"""

import asyncio
import shutil
from collections.abc import Mapping
from typing import Any

from devcluster import clock
from devcluster.formats.objects import is_terminal
from devcluster.node.containers.restarts import ContainerRole
from devcluster.node.containers.runner import ContainerRunner
from devcluster.node.context import HOST_IP, NodeRuntime, PodContext
from devcluster.node.network.hosts import hostname_of
from devcluster.node.pods.history import initial_records, recover_records
from devcluster.node.pods.player import PlayerFor, PodPlayer
from devcluster.node.pods.status import PodState, pod_status
from devcluster.node.pods.status_writer import StatusWriter
from devcluster.node.storage.mounting import mount_volumes, refresh_volumes
from devcluster.node.waiting import wait_for_any

DEADLINE_MESSAGE = "Pod was active on the node longer than the specified deadline"


class PodWorker:
    """Runs the volumes and containers of one pod, and reports its status. `observe` delivers each observed version."""

    def __init__(self, node: NodeRuntime, pod: Mapping[str, Any], player_for: PlayerFor) -> None:
        self._node = node
        self._player_for = player_for
        uid = pod["metadata"]["uid"]
        self._writer = StatusWriter(node.client, pod, self._render, self._adopt)
        # An ended pod has given its address back, before a restart of the agent perhaps.
        ip = str((pod.get("status") or {}).get("podIP", "")) if is_terminal(pod) else node.address(uid)
        self.context = PodContext(node=node, pod=pod, ip=ip, changed=self._writer.touch)
        self._records = initial_records(pod)
        self._runners = {record.name: ContainerRunner(self.context, record) for record in self._records}
        started = (pod.get("status") or {}).get("startTime")
        begun = clock.parse(started) if started else clock.now()
        self._state = PodState(pod_ip=self.context.ip, host_ip=HOST_IP, started_at=begun)
        self._news = asyncio.Event()
        self._stopping = asyncio.Event()
        self._started_names: set[str] = set()

    def observe(self, pod: Mapping[str, Any] | None) -> None:
        if pod is None:
            self._writer.gone.set()
        elif self._is_newer(pod):
            self.context.pod = pod
            self._writer.seen(pod)
        self._news.set()

    def _adopt(self, pod: Mapping[str, Any]) -> None:
        """Take over the answer to a write, unless the watch has delivered a newer version, such as a deletion."""
        if self._is_newer(pod):
            self.context.pod = pod
        self._news.set()

    def _is_newer(self, pod: Mapping[str, Any]) -> bool:
        return int(pod["metadata"]["resourceVersion"]) >= int(self.context.pod["metadata"]["resourceVersion"])

    def _render(self) -> dict[str, Any]:
        return pod_status(self.context.pod, self._records, self._state, clock.now())

    def current(self) -> dict[str, Any]:
        """Return the pod with its current status, which the API may not have yet."""
        return {**self.context.pod, "status": self._render()}

    @property
    def _is_deleted(self) -> bool:
        return self._writer.gone.is_set() or bool(self.context.pod["metadata"].get("deletionTimestamp"))

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                writing = group.create_task(self._writer.run())
                await self._run_until_gone()
                writing.cancel()
        finally:
            for runner in self._runners.values():
                runner.kill()
            self._node.release(self.context.uid)
            await self._node.csi.release(self.context.uid)
        # Not in `finally`: if the agent is stopped, the next one continues the pod with its volumes.
        shutil.rmtree(self.context.folder, ignore_errors=True)

    async def _run_until_gone(self) -> None:
        if not is_terminal(self.context.pod):
            self._state.failure, self._state.disruption = recover_records(self.context.pod, self._records)
            if self._state.failure or self._is_rejected():
                await self._writer.flush()
            elif player := self._player_for(self.context, self._records, self._state):
                await self._play(player)
            else:
                await self._run_pod()
        # An ended pod needs no address, and may stay for a long time. Its status keeps the one that it had.
        self._node.release(self.context.uid)
        await self._until(lambda: self._is_deleted)
        await self._writer.remove()
        # A finalizer may keep the object. Its logs stay available until it is gone.
        await self._until(self._writer.gone.is_set)

    def _is_rejected(self) -> bool:
        # A former agent has admitted the pod.
        if (self.context.pod.get("status") or {}).get("startTime"):
            return False
        self._state.failure = self._node.reject(self.context.pod)
        self._state.rejected = self._state.failure is not None
        if self._state.failure:
            self.context.event(*self._state.failure, warning=True)
        return self._state.rejected

    async def _play(self, player: PodPlayer) -> None:
        async with asyncio.TaskGroup() as group:
            playing = group.create_task(player.run())
            await self._until(lambda: self._is_deleted)
            playing.cancel()
        player.stop()
        self._state.terminating = True
        await self._writer.flush()

    async def _run_pod(self) -> None:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self._run_containers())
            running.add_done_callback(lambda _: self._news.set())
            overtime = await self._until_stopped_or(running)
            if overtime:
                self._state.failure = ("DeadlineExceeded", DEADLINE_MESSAGE)
                self.context.event("DeadlineExceeded", DEADLINE_MESSAGE)
            await self._stop_all()
            await running
        # Volumes are unmounted before the pod is reported as ended, so that clients can rely on the order.
        await self._node.csi.release(self.context.uid)
        if not self._writer.gone.is_set():
            await self._writer.flush()

    async def _until_stopped_or(self, running: "asyncio.Task[None]") -> bool:
        """Wait for the end or the deletion of the pod; return True if its active deadline passes first."""
        seconds = self.context.pod["spec"].get("activeDeadlineSeconds")
        left = None
        if seconds is not None:
            # From the start time in the API, so that a restart of the agent does not extend the deadline.
            left = max(0.0, seconds - (clock.now() - self._state.started_at).total_seconds())
        try:
            async with asyncio.timeout(left):
                await self._until(lambda: self._is_deleted or running.done())
        except TimeoutError:
            return True
        return False

    async def _stop_all(self) -> None:
        """Stop the main containers together, then the sidecars in reverse order, within one grace period."""
        self._stopping.set()
        self._state.terminating = True
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._grace()
        mains = [r for r in self._runners.values() if r.record.role is not ContainerRole.SIDECAR]
        sidecars = [r for r in self._runners.values() if r.record.role is ContainerRole.SIDECAR]
        async with asyncio.TaskGroup() as group:
            watch = group.create_task(self._force_when_gone())
            await self._stop_together([r for r in mains if self._was_started(r)], deadline)
            for runner in reversed(sidecars):
                await self._stop_together([runner] if self._was_started(runner) else [], deadline)
            watch.cancel()

    def _was_started(self, runner: ContainerRunner) -> bool:
        return runner.record.name in self._started_names

    async def _stop_together(self, runners: list[ContainerRunner], deadline: float) -> None:
        left = max(0.0, deadline - asyncio.get_running_loop().time())
        async with asyncio.TaskGroup() as group:
            for runner in runners:
                group.create_task(runner.stop(left))

    async def _force_when_gone(self) -> None:
        """Kill all containers once the object is gone or its grace period becomes 0, as in a forced deletion."""
        shortened = lambda: self._writer.gone.is_set() or self._grace() == 0  # noqa: E731
        await self._until(shortened)
        for runner in self._runners.values():
            runner.kill()

    def _grace(self) -> float:
        metadata, spec = self.context.pod["metadata"], self.context.pod["spec"]
        if metadata.get("deletionTimestamp") and "deletionGracePeriodSeconds" in metadata:
            return float(metadata["deletionGracePeriodSeconds"])
        return float(spec.get("terminationGracePeriodSeconds", 30))

    async def _run_containers(self) -> None:
        self._write_identity()
        self._writer.touch()
        if not await mount_volumes(self.context, self._stopping):
            return
        self._state.sandbox_ready = True
        self._writer.touch()
        async with asyncio.TaskGroup() as background:
            refresh = background.create_task(refresh_volumes(self.context))
            async with asyncio.TaskGroup() as sidecars:
                if await self._initialize(sidecars):
                    await self._run_mains()
                await self._stop_sidecars()
            refresh.cancel()

    def _write_identity(self) -> None:
        folder = self.context.folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        (folder / "hostname").write_text(hostname_of(self.context.pod) + "\n")
        self.context.hosts_file.write_text(self._node.hosts(self.context))

    async def _initialize(self, sidecars: asyncio.TaskGroup) -> bool:
        """Run the init containers one after the other; return False if one fails. A sidecar only has to start."""
        for runner in self._runners.values():
            if runner.record.role is ContainerRole.MAIN:
                continue
            if self._stopping.is_set():
                return False
            self._started_names.add(runner.record.name)
            if runner.record.role is ContainerRole.SIDECAR:
                sidecars.create_task(runner.run())
                await wait_for_any(runner.first_started, runner.finished)
                continue
            await runner.run()
            if runner.record.exit_code != 0:
                return False
        return not self._stopping.is_set()

    async def _run_mains(self) -> None:
        for record in self._records:
            if record.role is ContainerRole.MAIN and record.state.get("waiting", {}).get("reason") == "PodInitializing":
                record.state = {"waiting": {"reason": "ContainerCreating"}}
        async with asyncio.TaskGroup() as group:
            for runner in self._runners.values():
                # A container that ended under a former agent has its result.
                if runner.record.role is ContainerRole.MAIN and runner.record.exit_code is None:
                    self._started_names.add(runner.record.name)
                    group.create_task(runner.run())

    async def _stop_sidecars(self) -> None:
        # `_stop_all` stops them.
        if self._stopping.is_set():
            return
        deadline = asyncio.get_running_loop().time() + self._grace()
        for runner in reversed(list(self._runners.values())):
            if runner.record.role is ContainerRole.SIDECAR and self._was_started(runner):
                await self._stop_together([runner], deadline)

    async def _until(self, condition: Any) -> None:
        # Once the object is gone, `gone` stays set and would make this a busy loop.
        while not condition():
            self._news.clear()
            await wait_for_any(
                self._news, self._writer.gone
            ) if not self._writer.gone.is_set() else await self._news.wait()
