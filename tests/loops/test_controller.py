"""The controller leads in terms, and pauses after an error that the next term may not have."""

import asyncio
from dataclasses import replace

import pytest

from app.db.postgres.errors import DatabaseUnavailable
from app.k8s.errors import Unreachable
from app.loops import controller
from app.loops.controller import Controller
from app.loops.leadership.identity import WrongCluster
from tests.loops.harness import WITHIN, Harness


@pytest.mark.parametrize(
    "error",
    [DatabaseUnavailable("no answer"), Unreachable("no answer"), WrongCluster("another cluster answers")],
    ids=lambda error: type(error).__name__,
)
async def test_a_controller_that_pauses_after_an_error_stops_at_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    failed = asyncio.Event()

    class FailingTerm:
        def __init__(self, *_: object) -> None: ...

        async def run(self) -> None:
            failed.set()
            raise ExceptionGroup("as a task group raises it", [error])

    monkeypatch.setattr(controller, "Term", FailingTerm)
    await harness.leadership.release()
    patient = replace(harness.context, settings=replace(harness.context.settings, retry_every=10 * WITHIN))
    running = asyncio.get_running_loop().create_task(Controller(patient).run())
    async with asyncio.timeout(WITHIN):
        await failed.wait()
    running.cancel()
    await asyncio.wait({running}, timeout=WITHIN)
    assert running.cancelled()
