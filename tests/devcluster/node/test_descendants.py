"""The processes that a container leaves behind end with its first process. Few scans find those of many containers."""

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devcluster.node.processes import descendants as module
from devcluster.node.processes.descendants import REST, Descendants
from devcluster.node.processes.leftovers import MARK, pids, stat_of
from devcluster.node.processes.process import Command, Process, start
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="descendants are found by /proc")

SLOW = 0.01  # seconds
PATIENCE = 30.0  # seconds
NO_PID = 2**30
IN_ANOTHER_SESSION = "setsid sleep 1000 & echo $!; exec sleep 1000"


class Output:
    def __init__(self) -> None:
        self.text = b""
        self.changed = asyncio.Event()

    def __call__(self, _: str, data: bytes) -> None:
        self.text += data
        self.changed.set()

    async def line(self) -> str:
        while b"\n" not in self.text:
            self.changed.clear()
            await self.changed.wait()
        return self.text.decode().strip()


async def started(folder: Path, script: str) -> tuple[Process, Output]:
    identity = f"{folder}/"
    env = {"PATH": os.environ["PATH"], MARK: identity}
    output = Output()
    command = Command(argv=("sh", "-c", script), env=env, cwd="/", folder=folder, hostname="", identity=identity)
    return await start(command, output), output


def is_over(pid: int) -> bool:
    return stat_of(pid).state in (b"", b"Z", b"X")


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The times at which scans begin."""
    begun: list[float] = []

    def counted() -> Iterator[int]:
        begun.append(asyncio.get_running_loop().time())
        return pids()

    monkeypatch.setattr(module, "pids", counted)
    return begun


def by_signal(process: Process) -> None:
    os.kill(process.pid, 9)


@pytest.mark.parametrize("end", [by_signal, Process.kill, Process.terminate])
async def test_a_descendant_in_another_session_ends_with_its_container(
    tmp_path: Path, end: Callable[[Process], None]
) -> None:
    process, output = await started(tmp_path, IN_ANOTHER_SESSION)
    child = int(await output.line())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(process.wait())
        await asyncio.sleep(0)
        end(process)
    assert waiting.result() in (128 + 9, 128 + 15)
    await until(lambda: is_over(child))


async def test_a_kill_ends_the_descendants_of_a_process_for_which_nothing_waits(tmp_path: Path) -> None:
    """As for a container of an agent that ends: the wait is cancelled before the process has ended."""
    process, output = await started(tmp_path, IN_ANOTHER_SESSION)
    child = int(await output.line())
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(process.wait())
        await asyncio.sleep(0)
        waiting.cancel()
    process.kill()
    await process.wait()
    await until(lambda: is_over(child))


async def test_processes_that_end_together_share_their_scans(scans: list[float]) -> None:
    descendants = Descendants()
    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(descendants.end(NO_PID + number, ""))
    assert len(scans) == 1


async def test_nothing_is_looked_for_after_the_end(tmp_path: Path, scans: list[float]) -> None:
    process, _ = await started(tmp_path, IN_ANOTHER_SESSION)
    async with asyncio.TaskGroup() as group:
        group.create_task(process.wait())
        await asyncio.sleep(0)
        process.kill()
    begun = len(scans)
    process.kill()
    assert len(scans) == begun > 0


async def test_an_error_of_a_scan_ends_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Iterator[int]:
        raise ValueError

    monkeypatch.setattr(module, "pids", broken)
    with pytest.raises(ValueError):  # noqa: PT011  any error
        async with asyncio.timeout(PATIENCE):
            await Descendants().end(NO_PID, "")


async def test_a_scan_is_followed_by_a_rest_that_depends_on_its_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[float] = []

    def slow() -> Iterator[int]:
        begun.append(time.monotonic())
        time.sleep(SLOW)  # the duration of a scan of many processes
        return iter(())

    monkeypatch.setattr(module, "pids", slow)
    descendants = Descendants()
    await descendants.end(NO_PID, "")
    await descendants.end(NO_PID, "")
    assert begun[1] - begun[0] >= SLOW * (1 + REST)


async def test_the_others_of_a_round_still_wait_if_one_is_cancelled(scans: list[float]) -> None:
    descendants = Descendants()
    async with asyncio.TaskGroup() as group:
        first = group.create_task(descendants.end(NO_PID, ""))
        group.create_task(descendants.end(NO_PID + 1, ""))
        await asyncio.sleep(0)
        first.cancel()
    assert first.cancelled()
    assert len(scans) == 1
