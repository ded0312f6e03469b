"""The changes of a pod that follow at once share a write."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from devcluster.node.kube.client import KubeClient
from devcluster.node.pods import status_writer
from devcluster.node.pods.status_writer import StatusWriter

POD: dict[str, Any] = {"metadata": {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "1"}}


class Client:
    def __init__(self) -> None:
        self.written: list[Any] = []

    async def patch(self, _: str, body: Mapping[str, Any]) -> dict[str, Any]:
        self.written.append(body["status"]["phase"])
        return {"metadata": {"resourceVersion": str(len(self.written) + 1)}}


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def phase() -> list[str]:
    """The present phase of the pod."""
    return ["Pending"]


@pytest.fixture
def writer(client: Client, phase: list[str]) -> StatusWriter:
    return StatusWriter(cast(KubeClient, client), POD, lambda: {"phase": phase[0]}, lambda _: None)


async def test_changes_that_follow_at_once_share_a_write(
    client: Client, writer: StatusWriter, phase: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_writer, "PAUSE", 600.0)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(writer.run())
        writer.touch()
        for _ in range(5):
            await asyncio.sleep(0)
        phase[0] = "Running"
        writer.touch()
        await writer.flush()
        running.cancel()
    assert client.written == ["Running"]


async def test_a_flush_does_not_wait_for_other_changes(
    client: Client, writer: StatusWriter, phase: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_writer, "PAUSE", 600.0)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(writer.run())
        writer.touch()
        await asyncio.sleep(0)
        phase[0] = "Failed"
        await writer.flush()
        assert client.written == ["Failed"]
        running.cancel()
