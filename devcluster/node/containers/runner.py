"""Runs one container, from its first start until it is not restarted any more.

waiting ─▶ running ─▶ terminated ─┬─▶ (policy) waiting CrashLoopBackOff ─▶ running …
   ▲ configuration, image         └─▶ over
"""

import asyncio
import contextlib
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from devcluster import clock
from devcluster.errors import StatusError
from devcluster.node.containers.command import build_command
from devcluster.node.containers.handlers import ActionError, HandlerTarget, perform
from devcluster.node.containers.images import NoImageError, find_image, replace_first_word
from devcluster.node.containers.logs import LogWriter, last_output
from devcluster.node.containers.probes import ProbeReports, run_probes
from devcluster.node.containers.record import ContainerRecord
from devcluster.node.containers.restarts import ContainerRole, RestartBackoff, restarts
from devcluster.node.context import PodContext
from devcluster.node.environment import ConfigError
from devcluster.node.processes.leftovers import MARK
from devcluster.node.processes.process import Command, Process, StartError, start
from devcluster.node.waiting import wait_at_most

# Limits of a kubelet for termination messages.
MESSAGE_LIMIT = 4096
FALLBACK_LINES, FALLBACK_BYTES = 80, 2048
# A kubelet leaves this time after a preStop hook that used up the grace period.
MINIMUM_GRACE = 2.0
START_FAILED = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: "
    "runc create failed: unable to start container process: "
)


class ContainerRunner:
    """Owns the processes of one container, and keeps the record that the pod status shows."""

    def __init__(self, context: PodContext, record: ContainerRecord) -> None:
        settings = context.node.settings
        self.record = record
        self.finished = asyncio.Event()
        """Set once the container will not be restarted any more."""
        self.first_started = asyncio.Event()
        """Set once the container has passed its startup probe for the first time."""
        self._context = context
        self._stopping = asyncio.Event()
        self._process: Process | None = None
        self._backoff = RestartBackoff(settings.backoff_base, settings.backoff_max)
        self._pull = RestartBackoff(settings.backoff_base, settings.backoff_max)
        self._post_start_done = asyncio.Event()

    async def run(self) -> None:
        try:
            while not self._stopping.is_set():
                begun = clock.now()
                if not await self._run_once():
                    break
                if not self._may_restart():
                    break
                await self._back_off((clock.now() - begun).total_seconds())
        finally:
            # A runner that is cancelled must leave no process.
            if self._process:
                self._process.kill()
            self.finished.set()

    def _may_restart(self) -> bool:
        code = self.record.exit_code
        policy = self._context.pod["spec"].get("restartPolicy", "Always")
        return (
            not self._stopping.is_set()
            and code is not None
            and restarts(self.record.spec, self.record.role, policy, code)
        )

    async def _back_off(self, ran_for: float) -> None:
        delay = self._backoff.next_delay(ran_for=ran_for)
        if delay > 0:
            pod = self._context.pod["metadata"]
            whose = f"{self.record.name} pod={pod['name']}_{pod['namespace']}({pod['uid']})"
            message = f"back-off {delay:g}s restarting failed container={whose}"
            self.record.last_state = dict(self.record.state)
            self._wait_state("CrashLoopBackOff", message)
            event = f"Back-off restarting failed container {self.record.name} in pod {whose.partition('pod=')[2]}"
            self._event("BackOff", event, warning=True)
            await wait_at_most(self._stopping, delay)
        if not self._stopping.is_set():
            if "terminated" in self.record.state:
                self.record.last_state = dict(self.record.state)
            self.record.restart_count += 1

    async def _run_once(self) -> bool:
        """Run one instance to its end; return False if the pod was stopped before the instance started."""
        command = await self._configure()
        if command is None:
            return False
        container_id = f"jobgate-dev://{command.identity.rstrip('/').rpartition('/pods/')[2]}"
        log = LogWriter(
            self._context.log_file(self.record.name, self.record.restart_count),
            self._context.node.settings.log_limit_bytes,
        )
        try:
            self._process = await start(command, log.write)
        except StartError as error:
            log.close()
            self.record.container_id = container_id
            self._failed_to_start(str(error))
            return True
        if self._stopping.is_set():
            self._process.kill()  # `stop` was called during the start, when there was no process to kill
        # Not before the start: meanwhile the state is that of the run before, and others can report it.
        self.record.container_id = container_id
        try:
            await self._run_instance(self._process, command)
        finally:
            self._process.kill()
            with contextlib.suppress(Exception):
                self._process.popen.wait(timeout=MINIMUM_GRACE)
            self._process = None
            log.close()
            # The scratch directory belongs to one instance, unlike the volumes.
            shutil.rmtree(command.folder / "work", ignore_errors=True)
        return True

    async def _configure(self) -> Command | None:
        """Return the command once its image and configuration exist, or None if the pod was stopped before."""
        while not self._stopping.is_set():
            delay = self._context.node.settings.mount_retry
            try:
                return await build_command(self._context, self.record.spec, self.record.restart_count)
            except NoImageError as error:
                delay = await self._no_image(str(error))
            except (ConfigError, StatusError, OSError) as error:
                self._wait_state("CreateContainerConfigError", str(error))
                self._event("Failed", f"Error: {error}", warning=True)
            await wait_at_most(self._stopping, delay)
        return None

    async def _no_image(self, message: str) -> float:
        """Report ErrImagePull, then ImagePullBackOff, as a kubelet does; return the wait before the next try."""
        image = self.record.image
        self._event("Failed", f'Failed to pull image "{image}": {message}', warning=True)
        self._event("Failed", "Error: ErrImagePull", warning=True)
        self._wait_state("ErrImagePull", message)
        settings = self._context.node.settings
        await wait_at_most(self._stopping, min(1.0, settings.backoff_base))
        if not self._stopping.is_set():
            self._wait_state("ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {message}')
            self._event("BackOff", f'Back-off pulling image "{image}"')
        return max(settings.backoff_base, self._pull.next_delay(ran_for=0))

    def _failed_to_start(self, message: str) -> None:
        text = START_FAILED + message
        self._event("Failed", f"Error: {text}", warning=True)
        ended = clock.timestamp()
        # The exit code and the start time that containerd reports for a container that never started.
        state = {"exitCode": 128, "reason": "StartError", "message": text, "startedAt": "1970-01-01T00:00:00Z"}
        self._set_terminated(state | {"finishedAt": ended, "containerID": self.record.container_id})

    async def _run_instance(self, process: Process, command: Command) -> None:
        begun = clock.now()
        image = self.record.image
        self._event("Pulled", f'Container image "{image}" already present on machine')
        self._event("Created", "Container created")
        self._event("Started", "Container started")
        self.record.state = {"running": {"startedAt": clock.timestamp(begun)}}
        self._context.changed()
        try:
            async with asyncio.TaskGroup() as group:
                supervision = group.create_task(self._run_hook_and_probes(command))
                code = await process.wait()
                supervision.cancel()
        finally:
            self.record.ready = self.record.started = False
        self._record_end(process, begun, code)

    async def _run_hook_and_probes(self, command: Command) -> None:
        """Run the postStart hook, then the probes, while the process lives."""
        target = self._target(command)
        self._post_start_done.clear()
        hook = (self.record.spec.get("lifecycle") or {}).get("postStart")
        try:
            if hook:
                # A kubelet sets no limit. If the container ends, so does the hook.
                await perform(hook, target, 3600)
        except ActionError as error:
            self._event("FailedPostStartHook", f"PostStartHook failed: {error}", warning=True)
            await self._kill("FailedPostStartHook", None)
            return
        finally:
            self._post_start_done.set()
        reports = ProbeReports(
            started=self._on_started,
            ready=self._on_ready,
            unhealthy=lambda kind, text: self._event(
                "Unhealthy", f"{kind.capitalize()} probe failed: {text}", warning=True
            ),
            must_restart=self._on_unhealthy,
        )
        # An init container has no probes: it is ready once it has ended.
        if self.record.role is not ContainerRole.INIT:
            await run_probes(self.record.spec, target, reports)

    def _target(self, command: Command) -> HandlerTarget:
        process = self._process
        folder = command.folder / "exec"
        image = self.record.spec["image"]

        def build(argv: tuple[str, ...]) -> Command:
            argv = replace_first_word(find_image(self._context.node.images(), image), argv)
            join = process.pid if process and command.namespaces else None
            # An identity of its own, below that of the container: the end of a probe kills only its own processes.
            identity = f"{command.identity}exec/{secrets.token_hex(4)}/"
            env = {**command.env, MARK: identity}
            return replace(command, argv=argv, env=env, folder=folder, join=join, identity=identity)

        return HandlerTarget(container=self.record.spec, pod_ip=self._context.ip, command=build)

    def _on_started(self) -> None:
        self.record.started = True
        self.first_started.set()
        self._context.changed()

    def _on_ready(self, ready: bool) -> None:  # noqa: FBT001
        self.record.ready = ready
        self._context.changed()

    async def _on_unhealthy(self, kind: str, grace: float | None) -> None:
        message = f"Container {self.record.name} failed {kind} probe, will be restarted"
        await self._kill(message, grace)

    async def stop(self, grace: float) -> None:
        """Stop the container without a restart: preStop, SIGTERM, and SIGKILL at the end of the grace period."""
        self._stopping.set()
        if self._process:
            await self._kill(f"Stopping container {self.record.name}", grace)
        await self.finished.wait()

    def kill(self) -> None:
        self._stopping.set()
        if self._process:
            self._process.kill()

    async def _kill(self, message: str, grace: float | None) -> None:
        # `_run_once` resets the attribute when the process ends, which may happen while this method waits.
        process = self._process
        if process is None:
            return
        self._event("Killing", message)
        if grace is None:
            grace = float(self._context.pod["spec"].get("terminationGracePeriodSeconds", 30))
        deadline = asyncio.get_running_loop().time() + grace
        hook = (self.record.spec.get("lifecycle") or {}).get("preStop")
        if hook and grace > 0:
            await self._pre_stop(hook, process, grace)
        left = max(deadline - asyncio.get_running_loop().time(), min(MINIMUM_GRACE, grace))
        process.terminate()
        try:
            async with asyncio.timeout(left):
                await process.gone.wait()
        except TimeoutError:
            process.kill()

    async def _pre_stop(self, hook: Mapping[str, Any], process: Process, grace: float) -> None:
        try:
            async with asyncio.timeout(grace):
                # A preStop hook never runs beside the postStart hook.
                await self._post_start_done.wait()
                await perform(hook, self._target(process.command), grace)
        except (ActionError, TimeoutError) as error:
            self._event("FailedPreStopHook", f"PreStopHook failed: {error}", warning=True)

    def _record_end(self, process: Process, begun: datetime, code: int) -> None:
        state: dict[str, Any] = {
            "exitCode": code,
            "reason": "Completed" if code == 0 else "Error",
            "startedAt": clock.timestamp(begun),
            "finishedAt": clock.timestamp(),
            "containerID": self.record.container_id,
        }
        if message := self._termination_message(process.command, code):
            state["message"] = message
        self._set_terminated(state)

    def _termination_message(self, command: Command, code: int) -> str:
        with contextlib.suppress(OSError):
            if text := (command.folder / "termination-log").read_bytes()[:MESSAGE_LIMIT]:
                return text.decode(errors="replace")
        if code != 0 and self.record.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError":
            log = self._context.log_file(self.record.name, self.record.restart_count)
            return last_output(log, lines=FALLBACK_LINES, limit=FALLBACK_BYTES)
        return ""

    def _set_terminated(self, state: dict[str, Any]) -> None:
        self.record.state = {"terminated": state}
        self.record.ready = self.record.role is ContainerRole.INIT and state["exitCode"] == 0
        self.record.started = False
        self._context.changed()

    def _wait_state(self, reason: str, message: str) -> None:
        self.record.state = {"waiting": {"reason": reason, "message": message}}
        self._context.changed()

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self._context.event(reason, message, container=self.record.name, warning=warning)
