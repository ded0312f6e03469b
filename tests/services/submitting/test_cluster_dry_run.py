"""Dry runs against API servers that refuse, are slow, or do not answer: what is reported, and how much is sent."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from aiohttp import web

from app.base.clock import SystemClock
from app.db.jobs.group_commit import GroupCommit
from app.domain.access.actors import Actor
from app.domain.planning import Planner
from app.k8s.api import KubeApi
from app.k8s.session.transport import ClusterEndpoint
from app.services.submitting import cluster_dry_run
from app.services.submitting.cluster_dry_run import ClusterDryRun, NoCluster
from app.services.submitting.jobs import JobSubmitter, PreparedJob
from app.services.submitting.objects import SubmitRequest
from tests.k8s.support import LIMITS, api_of
from tests.support.gateways.gateway import manifest
from tests.support.machine.ports import kept_port
from tests.support.plans import accept_any_plan
from tests.support.waiting import until

FAST = 1000.0  # objects per second
PATIENCE = 60.0
ADDRESS = "10.0.0.7"  # of the platform: no client may read it


async def prepared(name: str = "train", replicas: int = 2) -> PreparedJob:
    no_commit = cast(GroupCommit, None)
    submitter = JobSubmitter(
        no_commit, Planner(installation="one"), SystemClock(), lambda: None, random.Random(7), accept_any_plan
    )
    request = SubmitRequest(namespace="team", actor=Actor("me"))
    return await submitter.prepare(manifest(name, replicas=replicas), request)


def refusal(status: int, reason: str, message: str, **headers: str) -> web.Response:
    body = {"kind": "Status", "status": "Failure", "reason": reason, "message": message, "code": status}
    return web.json_response(body, status=status, headers=headers)


class Server:
    """Keeps the requests, and answers each pod with `answer`; other objects are accepted."""

    def __init__(self, answer: Callable[[], Awaitable[web.Response]] | None = None) -> None:
        self.paths: list[str] = []
        self._answer = answer

    async def handle(self, request: web.Request) -> web.Response:
        assert request.query["dryRun"] == "All"
        self.paths.append(request.path)
        if self._answer is not None and request.path.endswith("/pods"):
            return await self._answer()
        return web.json_response({"metadata": {"uid": "u"}}, status=201)


def answering(response: Callable[[], web.Response]) -> Server:
    async def answer() -> web.Response:
        return response()

    return Server(answer)


async def test_identical_replicas_are_checked_once() -> None:
    server = Server()
    async with api_of(server.handle) as api:
        (check,) = await ClusterDryRun(api, SystemClock(), rate=FAST).check([await prepared(replicas=1000)], "alice")
    assert (check.is_complete, check.detail, check.findings) == (True, "", ())
    assert server.paths == ["/api/v1/namespaces/team/configmaps", "/api/v1/namespaces/team/pods"]


async def test_the_objects_of_a_request_are_limited() -> None:
    server = Server()
    jobs = [await prepared(f"job-{number}") for number in range(60)]
    async with api_of(server.handle) as api:
        checks = await ClusterDryRun(api, SystemClock(), rate=FAST).check(jobs, "alice")
    assert len(server.paths) == 100
    assert [check.is_complete for check in checks] == [True] * 50 + [False] * 10
    assert checks[-1].detail == "only the first 100 objects of a request are checked"


@pytest.mark.parametrize(
    ("status", "reason", "message", "detail"),
    [
        (
            403,
            "Forbidden",
            f'pods is forbidden: User "{ADDRESS}" cannot create resource "pods" in API group ""',
            "the cluster does not permit jobgate to create such objects",
        ),
        (401, "Unauthorized", ADDRESS, "the cluster does not permit jobgate to create such objects"),
        (
            500,
            "InternalError",
            f'failed calling webhook "w": Post "https://{ADDRESS}:443/": connection refused',
            "the cluster reports an internal error",
        ),
        (429, "TooManyRequests", ADDRESS, "the cluster receives too many requests"),
    ],
)
async def test_a_check_that_the_cluster_does_not_make_ends_the_request_without_its_message(
    status: int, reason: str, message: str, detail: str
) -> None:
    server = answering(lambda: refusal(status, reason, message))
    async with api_of(server.handle) as api:
        jobs = [await prepared("a"), await prepared("b")]
        checks = await ClusterDryRun(api, SystemClock(), rate=FAST).check(jobs, "alice")
    assert [(check.is_complete, check.detail, check.findings) for check in checks] == [(False, detail, ())] * 2
    assert len(server.paths) == 2


async def test_an_unreachable_cluster_is_reported_without_its_address() -> None:
    with kept_port() as port:
        async with KubeApi(ClusterEndpoint(url=f"http://127.0.0.1:{port}"), LIMITS) as api:
            (check,) = await ClusterDryRun(api, SystemClock(), rate=FAST).check([await prepared()], "alice")
    assert (check.is_complete, check.detail) == (False, "the cluster cannot be reached")
    (check,) = await NoCluster().check([await prepared()], "alice")
    assert (check.is_complete, check.detail) == (False, "this process of jobgate has no access to a cluster")


async def test_a_cluster_that_does_not_answer_delays_a_dry_run_by_a_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_dry_run, "_CHECK_SECONDS", 0.5)

    async def never() -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with api_of(Server(never).handle) as api, asyncio.timeout(PATIENCE):
        jobs = [await prepared("a"), await prepared("b")]
        checks = await ClusterDryRun(api, SystemClock(), rate=FAST).check(jobs, "alice")
    expected = (False, "the cluster has not checked all objects within 0.5 s")
    assert [(check.is_complete, check.detail) for check in checks] == [expected] * 2


async def test_the_dry_runs_that_wait_for_the_cluster_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_dry_run, "_CHECK_SECONDS", PATIENCE)
    answered = asyncio.Event()

    async def later() -> web.Response:
        await answered.wait()
        return web.json_response({}, status=201)

    server = Server(later)
    async with api_of(server.handle) as api:
        cluster = ClusterDryRun(api, SystemClock(), rate=FAST)

        async def complete(token: str) -> bool:
            (check,) = await cluster.check([await prepared()], token)
            assert check.is_complete or "too many dry runs" in check.detail
            return check.is_complete

        async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
            waiting = [group.create_task(complete(token)) for token in ("alice",) * 3 + ("bob",) * 2]
            await until(lambda: sum(path.endswith("/pods") for path in server.paths) == 4)
            assert not await complete("alice")
            waiting.append(group.create_task(complete("carol")))
            await asyncio.sleep(0)
            assert not await complete("dave")
            answered.set()
        assert [task.result() for task in waiting] == [True] * 6
        assert await complete("alice")


async def test_a_throttled_cluster_receives_nothing_until_the_time_that_it_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_dry_run, "_CHECK_SECONDS", 0.5)
    server = answering(lambda: refusal(429, "TooManyRequests", "later", **{"Retry-After": "60"}))
    async with api_of(server.handle) as api, asyncio.timeout(PATIENCE):
        cluster = ClusterDryRun(api, SystemClock(), rate=FAST)
        details = [(await cluster.check([await prepared()], "alice"))[0].detail for _ in range(2)]
    assert details == [
        "the cluster receives too many requests",
        "the cluster has not checked all objects within 0.5 s",
    ]
    assert len(server.paths) == 2


@pytest.mark.parametrize(
    ("reason", "message", "told"),
    [
        ("NotFound", 'namespaces "team" not found', "the namespace team does not exist"),
        (
            "Forbidden",
            "x because it is being terminated",
            "the namespace team is being deleted, so nothing can be created in it",
        ),
    ],
)
async def test_a_namespace_that_refuses_everything_is_reported_once(reason: str, message: str, told: str) -> None:
    status = {"NotFound": 404, "Forbidden": 403}[reason]
    requests: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        requests.append(request.path)
        return refusal(status, reason, message)

    async with api_of(handler) as api:
        (check,) = await ClusterDryRun(api, SystemClock(), rate=FAST).check([await prepared()], "alice")
    assert (check.is_complete, [finding.detail for finding in check.findings]) == (True, [told])
    assert len(requests) == 1


async def test_warnings_are_reported() -> None:
    warning = '299 - "spec.containers[0].image: \\"latest\\" is deprecated"'
    server = answering(lambda: web.json_response({}, status=201, headers={"Warning": warning}))
    async with api_of(server.handle) as api:
        (check,) = await ClusterDryRun(api, SystemClock(), rate=FAST).check([await prepared()], "alice")
    (finding,) = check.findings
    assert (finding.pointer, finding.detail) == (
        "/spec/replicaSpecs/0/template/spec/containers/0/image",
        'spec.containers[0].image: "latest" is deprecated',
    )
