"""Submissions beyond what a process can store: tokens take turns, and what cannot be done soon is refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from app.base.cancellation import TaskGroup
from app.domain.vocabulary import JobPhase
from app.services.limits.turns import Turns
from tests.support.gateways.gateway import NAMESPACE, Gateway, jobs_path, manifest
from tests.support.kinds.samples import RESOURCES, path, sample
from tests.support.waiting import until


def one_at_a_time(gateway: Gateway, max_waiting: int) -> Turns:
    gateway.services.submission_turns = Turns("submissions", at_once=1, max_waiting=max_waiting)
    return gateway.services.submission_turns


@asynccontextmanager
async def full(gateway: Gateway) -> AsyncIterator[None]:
    """Have no room for a further submission of a gateway without tokens, for which all requests are of one token."""
    turns = one_at_a_time(gateway, max_waiting=1)
    async with TaskGroup() as group, turns.turn("a request in progress"):
        waiting = group.create_task(_wait(turns))
        await until(lambda: turns.waiting == 1, what="the queue is full")
        yield
        waiting.cancel()


async def _wait(turns: Turns) -> None:
    async with turns.turn("a waiting request"):
        pass


async def created(gateway: Gateway, headers: dict[str, str]) -> list[str]:
    """Return the names of all jobs, oldest first."""
    items = (await gateway.client.get(jobs_path(), headers=headers)).json()["items"]
    return [item["name"] for item in reversed(items)]


def list_of(*names: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [manifest(name) for name in names]}


async def test_a_token_with_many_submissions_delays_another_by_one(closed_gateway: Gateway) -> None:
    turns = one_at_a_time(closed_gateway, max_waiting=100)
    many, one = [await closed_gateway.token("submitter", NAMESPACE) for _ in range(2)]

    async def submit(name: str, headers: dict[str, str]) -> None:
        answer = await closed_gateway.client.post(jobs_path(), json=manifest(name), headers=headers)
        assert answer.status_code == 201, answer.text

    async with TaskGroup() as group, turns.turn("a request in progress"):
        for number in range(10):
            group.create_task(submit(f"many-{number}", many))
        await until(lambda: turns.waiting == 10, what="ten submissions wait")
        group.create_task(submit("one", one))
        await until(lambda: turns.waiting == 11, what="one more submission waits")
    assert "one" in (await created(closed_gateway, one))[:2]


@pytest.mark.parametrize("path", ["", "?", "/batch?atomic=true"])
async def test_a_body_is_decoded_when_the_request_has_its_turn(gateway: Gateway, path: str) -> None:
    """The values of the bodies that wait would take much more memory than the bodies."""
    turns = one_at_a_time(gateway, max_waiting=1)
    async with TaskGroup() as group:
        async with turns.turn("a request in progress"):
            headers = {"Content-Type": "application/json"}
            sent = group.create_task(gateway.client.post(f"{jobs_path()}{path}", content=b"{", headers=headers))
            await until(lambda: turns.waiting == 1, what="the request waits, and is not refused")
        assert (await sent).status_code == 400


async def test_only_the_token_that_overloads_the_process_is_refused(closed_gateway: Gateway) -> None:
    turns = one_at_a_time(closed_gateway, max_waiting=5)
    many, one = [await closed_gateway.token("submitter", NAMESPACE) for _ in range(2)]

    async def submit(name: str, headers: dict[str, str]) -> httpx2.Response:
        return await closed_gateway.client.post(jobs_path(), json=manifest(name), headers=headers)

    async with TaskGroup() as group, turns.turn("a request in progress"):
        sent = [group.create_task(submit(f"many-{number}", many)) for number in range(10)]
        await until(lambda: sum(task.done() for task in sent) == 5, what="five submissions are refused")
        alone = group.create_task(submit("one", one))
        await until(lambda: sum(task.done() for task in sent) == 6, what="one more makes room")
    refused = [task.result() for task in sent if task.result().status_code != 201]
    assert len(refused) == 6
    for answer in refused:
        assert (answer.status_code, answer.json()["code"]) == (503, "Overloaded")
        assert int(answer.headers["retry-after"]) > 0
    assert alone.result().status_code == 201
    assert len(await created(closed_gateway, one)) == 5


@pytest.mark.parametrize(
    ("route", "body"),
    [
        pytest.param(jobs_path(), manifest("new"), id="one job"),
        pytest.param(jobs_path(), list_of("new", "newer"), id="several jobs"),
        pytest.param(jobs_path(NAMESPACE, "batch?atomic=true"), list_of("new", "newer"), id="an atomic batch"),
        pytest.param(jobs_path(NAMESPACE, "ended", "retry"), {"name": "new"}, id="a retry"),
        *[pytest.param(path(resource), sample(resource, "new"), id=resource) for resource in RESOURCES],
    ],
)
async def test_a_submission_that_is_refused_stores_nothing(route: str, body: Any, gateway: Gateway) -> None:
    ended = await gateway.submit("ended")
    await gateway.conclude(ended["uid"], {"phase": JobPhase.FAILED})
    async with full(gateway):
        answer = await gateway.client.post(route, json=body)
    assert (answer.status_code, answer.json()["code"]) == (503, "Overloaded"), answer.text
    for resource in ("jobs", *RESOURCES):
        items = (await gateway.client.get(path(resource))).json()["items"]
        assert [item["name"] for item in items] == (["ended"] if resource == "jobs" else [])
