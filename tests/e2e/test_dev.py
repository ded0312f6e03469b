"""`jobgate dev` keeps its state across restarts, and no process outlives it."""

import asyncio
import os
import secrets
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.e2e.user import User, job
from tests.support.clusters.kube import Cluster
from tests.support.gateways.process import QUICK
from tests.support.machine.processes import processes_of, until_processes
from tests.support.waiting import until

START_SECONDS = 120.0
STOP_SECONDS = 120.0


class Development:
    """A `jobgate dev` process with its state in a directory."""

    def __init__(self, directory: Path) -> None:
        self.state = directory / f"state-{secrets.token_hex(4)}"
        self._log = directory / "dev.log"
        self._process: subprocess.Popen[str] | None = None

    def start(self, *arguments: str) -> str:
        command = [sys.executable, "-m", "app.cli", "dev", "--data-dir", str(self.state), "--port", "0", *arguments]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("JOBGATE_")}
        environment |= QUICK
        with self._log.open("ab") as log:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self._process = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
        line = process.stdout.readline() if ready else ""
        assert line.startswith("jobgate is ready at http://127.0.0.1:"), self._log.read_text()
        # The next line is a shell command that selects the cluster.
        exports, _, kubeconfig = process.stdout.readline().strip().partition("=")
        assert exports == "export KUBECONFIG"
        assert Path(shlex.split(kubeconfig)[0]).is_file()
        return line.split()[-1]

    def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        status = self._process.wait(STOP_SECONDS)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._process = None
        return status

    def close(self) -> None:
        """Kill all processes that a failed test left."""
        if self._process is not None:
            self.end(signal.SIGKILL)
        for pid in processes_of(str(self.state)):
            os.kill(pid, signal.SIGKILL)


@asynccontextmanager
async def development(directory: Path) -> AsyncIterator[Development]:
    dev = Development(directory)
    try:
        yield dev
    finally:
        dev.close()


@pytest.mark.timeout(600)
async def test_state_survives_a_restart_and_no_process_is_left(tmp_path: Path) -> None:
    mark = f"600.{secrets.randbelow(10**9):09}"
    async with development(tmp_path) as dev:
        async with httpx2.AsyncClient(base_url=await asyncio.to_thread(dev.start), timeout=60) as http:
            user = User(http, "default")
            ended = await user.submit(job("ended", "echo done; exit 3"))
            await user.ended("ended")
            await user.submit(job("runs", f"exec sleep {mark}"))
            await user.until("runs", "Running")
            before = await user.read("/ended/history")
        await until_processes(f"sleep\0{mark}", lambda found: len(found) == 1)
        assert await asyncio.to_thread(dev.end, signal.SIGTERM) == 0
        await nothing_runs(str(dev.state), mark)

        async with httpx2.AsyncClient(base_url=await asyncio.to_thread(dev.start), timeout=60) as http:
            user = User(http, "default")
            assert (await user.read("/ended"))["uid"] == ended["uid"]
            assert await user.read("/ended/history") == before
            assert (await user.call("GET", "/ended/logs")).text == "done\n"
            await _runs_as(user, attempt=2)
        assert await asyncio.to_thread(dev.end, signal.SIGKILL) == -signal.SIGKILL

        async with httpx2.AsyncClient(base_url=await asyncio.to_thread(dev.start), timeout=60) as http:
            user = User(http, "default")
            assert await user.read("/ended/history") == before
            await _runs_as(user, attempt=3)
            await until_processes(f"sleep\0{mark}", lambda found: len(found) == 1)
        assert await asyncio.to_thread(dev.end, signal.SIGINT) == 0
        await nothing_runs(str(dev.state), mark)


async def nothing_runs(*marks: str) -> None:
    """Wait until no process has one of these marks: a killed process stays in the process table for a moment."""
    for mark in marks:
        await until_processes(mark, lambda found: not found, within=20)


async def _runs_as(user: User, attempt: int) -> None:
    """Wait for this attempt. The shutdown of its node is a disruption, which does not count as a restart."""
    replicas = await until(
        lambda: user.read("/runs/replicas"),
        lambda found: (found["items"][0]["attempt"], found["items"][0]["phase"]) == (attempt, "Running"),
        what=f"attempt {attempt} runs",
        within=120,
    )
    replica = replicas["items"][0]
    assert (replica["restartCount"], replica["disruptions"]) == (0, attempt - 1)


async def test_the_children_end_by_themselves_after_a_sigkill(tmp_path: Path) -> None:
    async with development(tmp_path) as dev:
        await asyncio.to_thread(dev.start)
        assert len(processes_of(str(dev.state))) > 2
        await asyncio.to_thread(dev.end, signal.SIGKILL)
        await until_processes(str(dev.state), lambda found: not found)


async def test_dev_uses_a_given_cluster(tmp_path: Path, cluster: Cluster, namespace: str) -> None:
    async with development(tmp_path) as dev:
        url = await asyncio.to_thread(dev.start, "--kubeconfig", str(cluster.kubeconfig))
        assert not (dev.state / "cluster").exists()
        async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
            user = User(http, namespace)
            await user.submit(job("there", "echo done"))
            assert (await user.ended("there"))["phase"] == "Succeeded"
        assert await asyncio.to_thread(dev.end, signal.SIGTERM) == 0
