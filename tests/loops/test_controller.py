"""The controller leads in terms, and pauses after an error that the next term may not have."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from app.db.postgres.errors import DatabaseUnavailable
from app.k8s.errors import KubeForbidden, Unreachable
from app.loops import controller
from app.loops.controller import Controller
from app.loops.leadership.identity import WrongCluster
from tests.loops.harness import WITHIN, Harness
from tests.support.telemetry.log_lines import Logged
from tests.support.waiting import until


@asynccontextmanager
async def failing(harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception) -> AsyncIterator[Controller]:
    """A controller in the pause after a term that has failed. It stops at once."""
    failed = asyncio.Event()

    class FailingTerm:
        def __init__(self, *_: object) -> None: ...

        async def run(self) -> None:
            failed.set()
            raise ExceptionGroup("as a task group raises it", [error])

    monkeypatch.setattr(controller, "Term", FailingTerm)
    await harness.leadership.release()
    patient = replace(harness.context, settings=replace(harness.context.settings, retry_every=10 * WITHIN))
    found = Controller(patient)
    running = asyncio.get_running_loop().create_task(found.run())
    async with asyncio.timeout(WITHIN):
        await failed.wait()
    yield found
    running.cancel()
    await asyncio.wait({running}, timeout=WITHIN)
    assert running.cancelled()


@pytest.mark.parametrize(
    "error",
    [DatabaseUnavailable("no answer"), Unreachable("no answer"), WrongCluster("another cluster answers")],
    ids=lambda error: type(error).__name__,
)
async def test_a_controller_that_pauses_after_an_error_stops_at_once(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async with failing(harness, monkeypatch, error):
        pass


async def test_the_state_does_not_quote_the_api_server_that_refuses_a_term(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    """`/readyz` shows the message of the state without a token."""
    refused = KubeForbidden(403, "Forbidden", 'namespaces "kube-system" is forbidden: User "system:serviceaccount:…"')
    async with failing(harness, monkeypatch, refused) as found:
        await until(lambda: found.state.state, lambda state: state == "Unreachable", within=WITHIN)
        assert found.state.message == "403 Forbidden"
    assert logged.texts("controller.cluster_failed") == [str(refused)]
