"""A process ends in bounded time after a signal, and when its watchdog finds overdue work."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from app.running.shutdown import EXIT_STATUS, LoopPulse, Watchdog
from tests.k8s.support import ManualClock
from tests.support.waiting import until

READY = "ready\n"
WITHIN = 120.0

# A signal between two instructions waits for the next one, so one long sleep could begin before its handler runs.
BLOCK = "[time.sleep(0.05) for _ in range(10_000)]"
# Told to stop, each hangs in its own way: the event loop is blocked, a task refuses, a thread keeps the process.
HANGS = {
    "loop": BLOCK,
    "task": "await stop.wait(); await asyncio.Event().wait()",
    "thread": "asyncio.get_running_loop().run_in_executor(None, time.sleep, 600); await stop.wait()",
    "clean-up": "await stop.wait(); atexit.register(time.sleep, 600)",
}
PROGRAM = """
import asyncio, atexit, time
from app.running.shutdown import stop_on_signals

async def main():
    stop = asyncio.Event()
    with stop_on_signals(stop, limit=0.5):
        print("ready", flush=True)
        {hang}

asyncio.run(main())
"""


# Told to stop, each prints a line and hangs, at another stage of its end.
STAGES = {
    "loop": "await stop.wait(); hang()",
    "task": "await stop.wait(); told(); await asyncio.Event().wait()",
    "clean-up of a task": "await cleaned_up_after(stop)",
    "thread": "asyncio.get_running_loop().run_in_executor(None, time.sleep, 600); await stop.wait(); told()",
    "interpreter": "await stop.wait(); atexit.register(hang)",
}
STOPPING = """
import asyncio, atexit, time
from app.running.shutdown import stop_on_signals

def told():
    print("told", flush=True)

def hang():
    told()
    {block}

async def cleaned_up_after(stop):
    try:
        await stop.wait()
    finally:
        hang()

async def main():
    stop = asyncio.Event()
    with stop_on_signals(stop, limit=600):
        print("ready", flush=True)
        {stage}

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES.keys())
def test_a_second_signal_ends_the_process_at_once(stage: str, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPING.format(stage=stage, block=BLOCK)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == READY
        process.send_signal(number)
        assert process.stdout.readline() == "told\n"
        process.send_signal(number)
        _, words = process.communicate(timeout=WITHIN)
    finally:
        process.kill()
    assert (process.returncode, words) == (128 + number, "")


def test_a_signal_wakes_the_event_loop() -> None:
    """Otherwise a signal that comes just before the event loop waits for events is noticed after the next event."""
    show = "import signal; print(signal.set_wakeup_fd(-1) != -1); return"
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(hang=show)], capture_output=True, text=True, check=True, timeout=WITHIN
    )
    assert ran.stdout == f"{READY}True\n"


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS.keys())
def test_a_process_ends_after_a_signal_even_if_something_hangs(hang: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(hang=hang)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == READY
        os.kill(process.pid, signal.SIGTERM)
        words, _ = process.communicate(timeout=WITHIN)
    finally:
        process.kill()
    assert process.returncode == EXIT_STATUS
    assert "the process was told to stop" in words


@pytest.mark.parametrize(
    ("overdue", "seconds", "ended"),
    [
        ([None, None, None], 10.0, []),
        (["work", "work"], 1.0, []),
        (["work", "work", "work", "work"], 1.0, [EXIT_STATUS]),
        (["work", "work", None, "work", "work"], 1.0, []),
    ],
    ids=["in time", "within its grace", "beyond its grace", "ended in between"],
)
def test_a_limit_counts_only_while_something_is_overdue(
    overdue: Sequence[str | None], seconds: float, ended: list[int]
) -> None:
    statuses: list[int] = []
    answers = iter(overdue)
    watchdog = Watchdog(ManualClock(), end=statuses.append)
    watchdog.limit(lambda: next(answers), 3.0)
    for _ in overdue:
        watchdog.check(seconds)
    assert statuses == ended


def test_a_process_that_was_suspended_still_has_its_grace_period() -> None:
    """A late check means that the process did not run, so the time in between does not count."""
    clock = ManualClock()
    statuses: list[int] = []
    watchdog = Watchdog(clock, tick=0.01, end=statuses.append)
    watchdog.limit(lambda: "work", 3600.0)
    with watchdog.running():
        for _ in range(20):
            clock.seconds += 3600.0
    assert statuses == []


async def test_the_pulse_of_an_event_loop_stops_while_the_loop_is_blocked() -> None:
    clock = ManualClock()
    pulse = LoopPulse(clock, period=0.01)
    clock.seconds += 1.0
    assert pulse.overdue() == "the event loop is blocked", "the loop has not run yet"
    pulse.beat()
    assert pulse.overdue() is None
    clock.seconds += 1.0
    assert pulse.overdue() == "the event loop is blocked"
    await until(lambda: pulse.overdue() is None, within=WITHIN)
