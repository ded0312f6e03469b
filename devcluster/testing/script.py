"""Pod scripts: a script moves its pod through states that no local process can reach (docs/embedded-cluster.md)."""

import asyncio
import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from devcluster import clock
from devcluster.node.containers.logs import LogWriter
from devcluster.node.containers.record import ContainerRecord
from devcluster.node.containers.restarts import ContainerRole
from devcluster.node.context import PodContext
from devcluster.node.pods.status import PodState

SCRIPT_ANNOTATION = "devcluster.jobgate.dev/script"
ACTIONS = ("phase", "waiting", "running", "terminated", "ready", "evict", "fail", "nodeLost", "status", "log", "event")
# Seconds; about 30 years.
FOREVER = 10.0**9


class ScriptError(ValueError):
    """The annotation is not a valid script. The message names the step, the error and the accepted values."""


def parse_script(text: str) -> list[dict[str, Any]]:
    """Parse a script and check its structure.

    Raises:
        ScriptError: the text is not a valid script.
    """
    try:
        steps = json.loads(text)
    except ValueError as error:
        raise ScriptError(f"{SCRIPT_ANNOTATION}: not JSON: {error}") from error
    if not isinstance(steps, list):
        raise ScriptError(f"{SCRIPT_ANNOTATION}: expected a list of steps")
    for i, step in enumerate(steps):
        named = [name for name in step if name in ACTIONS] if isinstance(step, dict) else []
        if len(named) != 1 or step.keys() - {"after", *ACTIONS}:
            raise ScriptError(
                f"{SCRIPT_ANNOTATION}[{i}]: expected 'after' (seconds, optional) and one of {', '.join(ACTIONS)}"
            )
        if not isinstance(step.get("after", 0), (int, float)):
            raise ScriptError(f"{SCRIPT_ANNOTATION}[{i}].after: expected seconds as a number")
    return steps


def script_player(context: PodContext, records: Sequence[ContainerRecord], state: PodState) -> "ScriptPlayer | None":
    """Return the player of a pod that has a script."""
    has_script = SCRIPT_ANNOTATION in (context.pod["metadata"].get("annotations") or {})
    return ScriptPlayer(context, records, state) if has_script else None


class ScriptPlayer:
    """Carries out the steps of a pod's script. Implements `PodPlayer`."""

    def __init__(self, context: PodContext, records: Sequence[ContainerRecord], state: PodState) -> None:
        self._context = context
        self._records = records
        self._state = state
        self._does: Mapping[str, Callable[[Any], None]] = {
            "phase": self._phase,
            "waiting": self._waiting,
            "running": self._running,
            "terminated": self._terminate,
            "ready": self._ready,
            "evict": self._evict,
            "fail": self._fail,
            "nodeLost": self._node_lost,
            "status": self._status,
            "log": self._log,
            "event": self._event,
        }

    async def run(self) -> None:
        annotations = self._context.pod["metadata"]["annotations"]
        try:
            steps = parse_script(annotations[SCRIPT_ANNOTATION])
            self._context.changed()
            for step in steps:
                await asyncio.sleep(step.get("after", 0))
                action = next(name for name in step if name in ACTIONS)
                self._does[action](step[action])
                self._context.changed()
        except (ScriptError, KeyError, TypeError, AttributeError) as error:
            # As a program that fails. A pod without ended containers would be one that the node refused.
            self.stop()
            self._state.failure = ("InvalidScript", str(error))
            self._context.changed()

    def stop(self) -> None:
        """End all containers as if they had been killed."""
        for record in self._records:
            if record.exit_code is None:
                self._end(record, {"exitCode": 137, "reason": "Error"})

    def _choose(self, arguments: Any) -> list[ContainerRecord]:
        name = arguments.get("container") if isinstance(arguments, Mapping) else None
        chosen = [r for r in self._records if (r.name == name if name else r.role is ContainerRole.MAIN)]
        if not chosen:
            raise ScriptError(f"no container named {name!r}")
        return chosen

    def _phase(self, phase: str) -> None:
        if phase == "Pending":
            self._waiting({"reason": "ContainerCreating"})
        elif phase == "Running":
            self._running({})
        elif phase in ("Succeeded", "Failed"):
            self._terminate({"exitCode": 0 if phase == "Succeeded" else 1})
        else:
            raise ScriptError(f"phase: expected Pending, Running, Succeeded or Failed, not {phase!r}")

    def _waiting(self, arguments: Mapping[str, Any]) -> None:
        for record in self._choose(arguments):
            self._remember(record)
            record.state = {"waiting": {k: v for k, v in arguments.items() if k != "container"}}
            record.ready = record.started = False

    def _running(self, arguments: Mapping[str, Any]) -> None:
        self._state.sandbox_ready = True
        for record in self._records:
            if record.role is ContainerRole.INIT and record.exit_code is None:
                self._end(record, {"exitCode": 0, "reason": "Completed"})
        for record in self._choose(arguments):
            self._remember(record)
            if record.last_state and not record.running:
                record.restart_count += 1
            record.state = {"running": {"startedAt": clock.timestamp()}}
            record.container_id = f"jobgate-dev://{self._context.uid}/{record.name}/{record.restart_count}"
            record.ready = record.started = True

    def _terminate(self, arguments: Mapping[str, Any]) -> None:
        self._state.sandbox_ready = True
        for record in self._choose(arguments):
            self._end(record, {k: v for k, v in arguments.items() if k != "container"})

    def _ready(self, ready: Any) -> None:
        for record in self._choose({}):
            record.ready = bool(ready)

    def _evict(self, message: str) -> None:
        self._kill_all()
        self._state.failure = ("Evicted", message)
        self._state.disruption = ("TerminationByKubelet", message)
        self._context.event("Evicted", message, warning=True)

    def _fail(self, arguments: Mapping[str, Any]) -> None:
        self._kill_all()
        self._state.failure = (arguments["reason"], arguments.get("message", ""))
        self._state.rejected = not self._state.sandbox_ready
        self._context.event(arguments["reason"], arguments.get("message", ""), warning=True)

    def _kill_all(self) -> None:
        for record in self._records:
            if record.running:
                self._end(record, {"exitCode": 137, "reason": "Error"})

    def _node_lost(self, seconds: Any) -> None:
        self._context.node.client.cut_off(FOREVER if seconds is True else float(seconds))

    def _status(self, overlay: Mapping[str, Any]) -> None:
        self._state.overlay = {**self._state.overlay, **overlay}

    def _log(self, arguments: Mapping[str, Any] | str) -> None:
        if isinstance(arguments, str):
            arguments = {"text": arguments}
        data = base64.b64decode(arguments["base64"]) if "base64" in arguments else arguments["text"].encode()
        for record in self._choose(arguments):
            path = self._context.log_file(record.name, record.restart_count)
            writer = LogWriter(path, self._context.node.settings.log_limit_bytes)
            writer.write(arguments.get("stream", "stdout"), data if data.endswith(b"\n") else data + b"\n")
            writer.close()

    def _event(self, arguments: Mapping[str, Any]) -> None:
        warning = arguments.get("type") == "Warning"
        self._context.event(arguments["reason"], arguments.get("message", ""), warning=warning)

    @staticmethod
    def _remember(record: ContainerRecord) -> None:
        if record.exit_code is not None:
            record.last_state = record.state

    def _end(self, record: ContainerRecord, given: Mapping[str, Any]) -> None:
        stamp = clock.timestamp()
        code = given.get("exitCode", 0)
        base = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "finishedAt": stamp}
        base["startedAt"] = record.state.get("running", {}).get("startedAt", stamp)
        record.container_id = record.container_id or f"jobgate-dev://{self._context.uid}/{record.name}/0"
        record.state = {"terminated": base | {"containerID": record.container_id} | dict(given)}
        record.started = False
        record.ready = record.role is ContainerRole.INIT and code == 0
