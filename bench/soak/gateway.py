"""A gateway on one port whose processes are killed and started again."""

import os
import signal
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from app.base.cores import default_workers, usable_cores
from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import Target
from bench.measuring.gateway import gateway
from bench.measuring.processes import is_stopped, tree
from bench.soak.processes import CONTROLLER, WORKER, of_gateway
from tests.support.waiting import until

# As many as `jobgate serve` chooses. On a single core, it would choose one process, of which no part can be killed.
_CORES: Final = usable_cores()
_WORKERS: Final = default_workers(_CORES) if _CORES > 1 else 2
_PATIENCE: Final = 280.0  # seconds for a restart on a machine without a free core


class Victim(StrEnum):
    """What is killed."""

    WORKER = "worker"
    CONTROLLER = "controller"
    GATEWAY = "gateway"


async def kill_tree(root: int) -> None:
    """Kill a process and its descendants with SIGKILL."""
    # A supervisor that runs would replace its children while they are killed, and nothing would end the new ones.
    _send(root, signal.SIGSTOP)
    await until(lambda: is_stopped(root), what="the process is stopped")
    for pid in tree(root):
        _send(pid, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):  # it has ended
        os.kill(pid, number)


class SoakGateway:
    """`jobgate serve` in the role `all`, with a supervisor. Start it, and close it at the end."""

    def __init__(
        self, url: str, folder: Path, postgres: EmbeddedPostgres, *, port: int, token: str, kubeconfig: Path
    ) -> None:
        self.url = url
        self._folder = folder
        self._postgres = postgres
        self._port = port
        self._token = token
        self._kubeconfig = kubeconfig
        self._running = AsyncExitStack()
        self.target = Target(name="jobgate", port=port, tls=False, token=token, pids={})

    @property
    def roots(self) -> Mapping[str, int]:
        return self.target.pids

    async def start(self) -> None:
        serving = gateway(
            self.url,
            self._folder,
            self._postgres,
            role="all",
            kubeconfig=self._kubeconfig,
            token=self._token,
            workers=None if _CORES > 1 else _WORKERS,
            settings={"JOBGATE_PORT": str(self._port)},
        )
        self.target = await self._running.enter_async_context(serving)
        await self._complete()

    async def close(self) -> None:
        await self._running.aclose()

    async def kill(self, victim: Victim) -> None:
        """Kill with SIGKILL, and wait until all processes run again.

        Of several workers, the youngest is killed, so that the others grow old.
        """
        if victim is Victim.GATEWAY:
            await kill_tree(self.roots["jobgate"])
            await self.close()
            await self.start()
            return
        killed = max(self._pids(victim.value))
        os.kill(killed, signal.SIGKILL)
        await self._complete(without=killed)

    def _pids(self, role: str) -> list[int]:
        return [sample.pid for sample in of_gateway(self.roots["jobgate"], self._port, 0) if sample.role == role]

    async def _complete(self, without: int = 0) -> None:
        """Wait until all processes run, none of them this one."""

        def is_complete() -> bool:
            workers, controllers = self._pids(WORKER), self._pids(CONTROLLER)
            return (len(workers), len(controllers)) == (_WORKERS, 1) and without not in (*workers, *controllers)

        await until(is_complete, what="all processes of the gateway run", within=_PATIENCE, every=0.2)
