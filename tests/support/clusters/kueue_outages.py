"""Kills and freezes Kueue: its process on this machine, or the one that the embedded cluster plays.

Either way, no Workload is admitted, and its webhooks fail: those of a killed Kueue at once, those of a frozen one after
the API server has waited for them.
"""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pytest

from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.machine.freezing import frozen
from tests.support.waiting import until

_WEBHOOK_SECONDS: Final = 10  # that an API server waits for a webhook by default
_FAILED: Final = 'failed calling webhook "vpod.kb.io"'


class Outage(StrEnum):
    """What happens to Kueue."""

    KILLED = "killed"
    FROZEN = "frozen"


@asynccontextmanager
async def kueue_outage(cluster: Cluster, api: KubeClient, namespace: str, outage: Outage) -> AsyncIterator[None]:
    """Let Kueue fail during the block. On the embedded cluster, requests fail only in this namespace."""
    if not cluster.real:
        async with _played(api, namespace, outage):
            yield
        return
    pid_file = cluster.kubeconfig.with_name("kueue.pid")
    if not pid_file.exists():
        pytest.skip(f"only a Kueue on this machine can fail, whose process {pid_file} names")
    pid = int(pid_file.read_text())
    if outage is Outage.FROZEN:
        with frozen(pid):
            yield
        return
    start = _start_of(pid)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not _runs(pid), what="Kueue is gone")
    try:
        yield
    finally:
        # `kueue stop` ends the process that this file names.
        pid_file.write_text(f"{_restart(start, pid_file.with_name('log') / 'kueue.log')}\n")


@asynccontextmanager
async def _played(api: KubeClient, namespace: str, outage: Outage) -> AsyncIterator[None]:
    frozen_ms = 1000 * _WEBHOOK_SECONDS if outage is Outage.FROZEN else 0
    reason = "context deadline exceeded" if outage is Outage.FROZEN else "connect: connection refused"
    (await api.post("/devcluster/kueue", {"runs": False})).ok()
    for resource in ("pods", "workloads"):
        for verb in ("create", "update", "patch"):
            rule = {"namespace": namespace, "resource": resource, "verb": verb, "subresource": ""}
            fault = {"status": 500, "message": f"{_FAILED}: {reason}", "delayMs": frozen_ms}
            (await api.post("/devcluster/faults", rule | fault)).ok()
    try:
        yield
    finally:
        (await api.delete("/devcluster/faults")).ok()
        (await api.post("/devcluster/kueue", {"runs": True})).ok()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """How a process was started."""

    command: list[str]
    environment: dict[str, str]


def _start_of(pid: int) -> _Start:
    process = Path(f"/proc/{pid}")
    command, variables = (process.joinpath(name).read_text().split("\0")[:-1] for name in ("cmdline", "environ"))
    return _Start(command=command, environment=dict(variable.split("=", 1) for variable in variables))


def _runs(pid: int) -> bool:
    """Return whether the process runs. One that nobody has waited for is a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _restart(start: _Start, log: Path) -> int:
    """Start the process again, so that it outlives this one. Its paths are absolute."""
    output = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    actions = [output, (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawn(start.command[0], start.command, start.environment, file_actions=actions, setsid=True)
