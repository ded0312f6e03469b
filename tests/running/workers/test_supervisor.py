"""A supervisor with real processes that do almost nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WITHIN = 120.0
# Prints one line for each event: `started`, `<name> <pid>` of a process, `<name> stops`.
PROGRAM = """
import asyncio, os, sys
from app.base.clock import SystemClock
from app.telemetry.logs import configure_logging
from app.running.workers.fleet import FleetTimes
from app.running.workers.supervisor import ProcessSupervisor

configure_logging("text", "error")  # to standard error
NAMES = ["worker-0", "worker-1", "controller"]

def say(line):
    os.write(1, (line + "\\n").encode())  # in one piece, as several processes write

async def work(link):
    with link.obey_orders():
        say(f"{link.name} {os.getpid()}")
        link.report_ready()
        await link.stop.wait()
        say(f"{link.name} stops")
    return 0

def run(number, link):
    if NAMES[number] == sys.argv[1]:
        return 2
    return asyncio.run(work(link))

times = FleetTimes(drain=0.0, shutdown=100.0)
started = lambda: say("started")
supervisor = ProcessSupervisor(
    NAMES, run, workers=2, times=times, clock=SystemClock(), on_started=started, on_ended=lambda number: None
)
sys.exit(supervisor.run())
"""


class Run:
    def __init__(self, failing: str) -> None:
        command = [sys.executable, "-c", PROGRAM, failing]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )

    def lines(self, count: int) -> list[str]:
        assert self.process.stdout is not None
        return [self.process.stdout.readline().strip() for _ in range(count)]

    def rest(self) -> list[str]:
        """What is printed until all processes have ended, whose output it is."""
        assert self.process.stdout is not None
        return self.process.stdout.read().splitlines()


@contextmanager
def supervised(failing: str = "") -> Iterator[Run]:
    run = Run(failing)
    try:
        yield run
    finally:
        run.process.kill()
        run.process.communicate(timeout=WITHIN)


def pids(lines: list[str]) -> dict[str, int]:
    return {name: int(pid) for name, _, pid in (line.partition(" ") for line in lines) if pid.isdigit()}


def test_the_processes_stop_in_turn_and_the_controller_last() -> None:
    with supervised() as run:
        lines = run.lines(4)
        assert lines[0].startswith("controller ")
        assert lines[3] == "started"
        # As Ctrl-C does, to the whole group.
        os.killpg(run.process.pid, signal.SIGINT)
        assert run.rest() == ["worker-0 stops", "worker-1 stops", "controller stops"]
        assert run.process.wait(WITHIN) == 0


def test_a_killed_process_is_started_again() -> None:
    with supervised() as run:
        before = pids(run.lines(4))
        os.kill(before["worker-1"], signal.SIGKILL)
        after = pids(run.lines(1))
        assert list(after) == ["worker-1"]
        assert after != before
        run.process.terminate()
        assert len(run.rest()) == 3
        assert run.process.wait(WITHIN) == 0


def test_a_rolling_restart_replaces_one_worker_after_the_other() -> None:
    with supervised() as run:
        before = pids(run.lines(4))
        run.process.send_signal(signal.SIGHUP)
        lines = run.lines(4)
        assert [line.partition(" ")[0] for line in lines] == ["worker-0", "worker-0", "worker-1", "worker-1"]
        assert not set(pids(lines).values()) & set(before.values())


@pytest.mark.parametrize("failing", ["controller", "worker-1"])
def test_a_process_that_cannot_start_ends_the_command_with_its_status(failing: str) -> None:
    with supervised(failing) as run:
        assert "started" not in run.rest()
        assert run.process.wait(WITHIN) == 2


def test_the_processes_stop_when_the_supervisor_is_killed() -> None:
    with supervised() as run:
        run.lines(4)
        run.process.kill()
        assert sorted(run.rest()) == ["controller stops", "worker-0 stops", "worker-1 stops"]


def test_a_frozen_process_does_not_hide_the_end_of_the_supervisor_from_the_others() -> None:
    with supervised() as run:
        last = pids(run.lines(4))["worker-1"]  # forked last, so it could have inherited the connections of the others
        os.kill(last, signal.SIGSTOP)
        try:
            run.process.kill()
            assert sorted(run.lines(2)) == ["controller stops", "worker-0 stops"]
        finally:
            os.kill(last, signal.SIGKILL)


def test_a_second_signal_kills_all_processes() -> None:
    with supervised() as run:
        stopped = pids(run.lines(4))
        for pid in stopped.values():
            os.kill(pid, signal.SIGSTOP)
        run.process.terminate()
        run.process.send_signal(signal.SIGINT)
        assert run.rest() == []
        assert run.process.wait(WITHIN) in (-signal.SIGTERM, -signal.SIGINT)
