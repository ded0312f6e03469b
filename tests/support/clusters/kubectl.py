"""A real kubectl: the one on PATH, or the one of the control plane beside this repository."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.clusters.kube import DEADLINE, Cluster

CONTROL_PLANE = Path(__file__).parents[4] / "shared" / "k8s" / "controlplane"


def find() -> tuple[str, ...] | None:
    """Return the command line that starts kubectl."""
    found = shutil.which("kubectl")
    if found:
        return (found,)
    return (str(CONTROL_PLANE), "kubectl") if CONTROL_PLANE.exists() else None


@dataclass(frozen=True, slots=True)
class Result:
    status: int
    out: str
    error: str

    def ok(self) -> str:
        assert self.status == 0, f"status {self.status}: {self.error or self.out}"
        return self.out

    def failed(self) -> str:
        assert self.status != 0, f"did not fail: {self.out}"
        return self.error


class Kubectl:
    def __init__(self, command: Sequence[str], cluster: Cluster, namespace: str, home: Path) -> None:
        self._command = (*command, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}")
        # Discovery is cached below HOME; the proxies of this machine are not meant for its loopback addresses.
        self._environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        self._environment |= {"HOME": str(home)}
        self.namespace = namespace

    async def run(self, *arguments: str, stdin: str = "") -> Result:
        process = await self.start(*arguments)
        async with asyncio.timeout(DEADLINE):
            out, error = await process.communicate(stdin.encode())
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), error.decode())

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            *self._command, *arguments, env=self._environment, stdin=pipe, stdout=pipe, stderr=pipe
        )
