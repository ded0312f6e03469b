"""Why the cluster does not say whether it serves Kueue is in the log, and its kind alone in the message."""

import asyncio
from typing import Any

import pytest

from app.k8s.errors import KubeForbidden
from app.k8s.watching.reflector import Reflector
from app.loops.controller_settings import QueueMode
from app.loops.jobs import queues as mirrored
from app.loops.jobs.queues import QueueMirror
from tests.loops.harness import WITHIN, Harness, ignore
from tests.support.telemetry.log_lines import Logged


async def test_a_failed_discovery_is_logged_once_while_its_error_lasts(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    answers, done = ["User a", "User a", "User b", "User b"], asyncio.Event()

    async def get_raw(*_: object) -> dict[str, Any]:
        if len(answers) == 1:
            done.set()
        raise KubeForbidden(403, "Forbidden", answers.pop(0) if len(answers) > 1 else answers[0])

    monkeypatch.setattr(harness.context.api, "get_raw", get_raw)
    monkeypatch.setattr(mirrored, "RETRY_EVERY", 0.0)
    mirror = QueueMirror(
        harness.context.api,
        harness.installation,
        harness.clock,
        mode=QueueMode.AUTO,
        namespaces=(harness.namespace,),
        reflect=lambda source, sink: Reflector(source, sink, harness.clock),
        on_change=ignore,
        on_state=lambda: None,
    )
    async with asyncio.TaskGroup() as group:
        task = group.create_task(mirror.run())
        await asyncio.wait_for(done.wait(), WITHIN)
        task.cancel()
    assert mirror.message == "403 Forbidden"
    assert logged.texts("queues.discovery_failed") == ["403 Forbidden: User a", "403 Forbidden: User b"]
