"""The services of docker-compose.yml, run from the image against PostgreSQL and a real control plane."""

import asyncio
import os
import secrets
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import pytest_asyncio

from tests.deploy import compose, rights
from tests.e2e.user import TERMINAL, User, job
from tests.image.containers import Container, container, image_under_test, run_once
from tests.support.clusters import kubectl
from tests.support.clusters.cluster import REAL_CLUSTER
from tests.support.clusters.kube import Cluster, connect
from tests.support.clusters.nodes import running_node
from tests.support.gateways.process import answering
from tests.support.machine.ports import kept_port
from tests.support.machine.tcp_proxy import tcp_proxy
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
SCRIPT = compose.ROOT / "deploy" / "compose" / "kubeconfig.sh"
CLIENTS = 4
JOBS_BEFORE_STOP = 12
PATIENCE = 280.0  # seconds; generous, because the machine may be busy


@pytest.fixture(scope="module")
def image() -> str:
    return image_under_test()


@pytest.fixture(scope="module")
def cluster(image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A real control plane with the rights of deploy/ and a node that runs commands."""
    assert image
    found = Cluster.read(Path(os.environ[REAL_CLUSTER]), real=True)
    asyncio.run(_apply_rights(found))
    with running_node(found, tmp_path_factory.mktemp("node")):
        yield found


async def _apply_rights(cluster: Cluster) -> None:
    async with connect(cluster) as api:
        await rights.apply(api, rights.documents(rights.RBAC))


@pytest.fixture
def kubeconfig(cluster: Cluster, tmp_path: Path) -> Path:
    """The kubeconfig that the script of docker-compose.yml writes."""
    command = kubectl.find()
    assert command is not None
    programs = tmp_path / "programs"
    programs.mkdir()
    shim = programs / "kubectl"
    shim.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
    shim.chmod(0o755)
    output = tmp_path / "kubeconfig" / "config"
    output.parent.mkdir()
    tmp_path.chmod(0o755)
    subprocess.run(
        ["sh", SCRIPT, cluster.kubeconfig, cluster.url, output],
        env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)},
        check=True,
        timeout=PATIENCE,
    )
    return output


@pytest_asyncio.fixture
async def tcp_database_url(empty_database_url: str) -> AsyncIterator[str]:
    """An empty database at a port: only its owner may open the socket of the embedded server."""
    parts = urlsplit(empty_database_url)
    directory = parse_qs(parts.query).get("host")
    if directory is None:
        yield empty_database_url
        return
    socket = Path(directory[0]) / ".s.PGSQL.5432"
    async with tcp_proxy(lambda: asyncio.open_unix_connection(socket)) as proxy:
        yield f"postgresql://{parts.username or 'jobgate'}@127.0.0.1:{proxy.port}{parts.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """What the containers of one installation share."""

    image: str
    environment: dict[str, str]
    volumes: tuple[str, ...]

    @asynccontextmanager
    async def running(self, service: str, port: str) -> AsyncIterator[Container]:
        """Run the command of a service of docker-compose.yml, on another port of loopback."""
        changed = {"8080": port, "0.0.0.0": "127.0.0.1"}
        command = [changed.get(word, word) for word in compose.services()[service]["command"]]
        async with container(self.image, command, self.environment, self.volumes) as found:
            try:
                yield found
            except BaseException:
                print(f"log of {service}:\n{(await found.log())[-4000:]}")  # noqa: T201 - for the report of the failure
                raise

    async def once(self, *command: str) -> str:
        ran = await run_once(self.image, *command, environment=self.environment, volumes=self.volumes)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout.strip()


@pytest.fixture
def stack(image: str, tcp_database_url: str, kubeconfig: Path) -> Stack:
    given = compose.services()["gateway"]["environment"]
    return Stack(
        image=image,
        environment=given | {"JOBGATE_DATABASE_URL": tcp_database_url},
        volumes=(f"{kubeconfig.parent}:/kubeconfig:ro",),
    )


@pytest_asyncio.fixture
async def namespace(cluster: Cluster) -> AsyncIterator[str]:
    name = f"image-{secrets.token_hex(4)}"
    async with connect(cluster) as api:
        (await api.post("/api/v1/namespaces", {"metadata": {"name": name}})).ok()
        await api.eventually(f"/api/v1/namespaces/{name}/serviceaccounts/default", bool)
        yield name
        await api.delete(f"/api/v1/namespaces/{name}")


@dataclass(slots=True)
class Load:
    """Clients that submit jobs one after another, and remember which of them the gateway has accepted."""

    user: User
    accepted: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def submit_until_stopped(self, client: int) -> None:
        number = 0
        while not self.stopped.is_set():
            number += 1
            await self.submit(f"load-{client}-{number}")

    async def submit(self, name: str) -> None:
        """Submit a job until it is accepted, or until the clients are told to stop. Repeats have the same key."""
        headers = self.user.headers | {"Idempotency-Key": name}
        while True:
            try:
                answer = await self.user.http.post(self.user.jobs, json=job(name, "true"), headers=headers)
            except httpx2.TransportError:
                answer = None
            if answer is not None and answer.is_success:
                self.accepted.append(name)
                return
            if answer is not None and answer.status_code != httpx2.codes.SERVICE_UNAVAILABLE:
                self.unexpected.append(f"{answer.status_code} {answer.text}")
                return
            if self.stopped.is_set():
                return
            await asyncio.sleep(0.05)

    async def has_accepted(self, count: int) -> None:
        def accepted() -> int:
            assert self.unexpected == []
            return len(self.accepted)

        await until(accepted, lambda number: number >= count, what=f"{count} jobs", within=PATIENCE)


async def test_the_services_run_jobs_and_lose_none_when_they_are_stopped_under_load(
    stack: Stack, namespace: str
) -> None:
    assert await stack.once("migrate") == "the schema is current"
    token = await stack.once("token", "create", "me", "--namespace", namespace)
    headers = {"Authorization": f"Bearer {token}"}
    with kept_port() as port, kept_port() as other:
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as http:
            user = User(http, namespace, headers)
            load = Load(user)
            async with stack.running("gateway", port) as gateway, stack.running("controller", other) as controller:
                await answering(http, "/readyz")
                assert (await http.get(f"/api/v1/namespaces/{namespace}/jobs")).status_code == 401
                await user.submit(job("first", "echo from the image"))
                assert (await user.ended("first"))["phase"] == "Succeeded"
                assert (await user.call("GET", "/first/logs")).text == "from the image\n"
                async with asyncio.TaskGroup() as group:
                    for client in range(CLIENTS):
                        group.create_task(load.submit_until_stopped(client))
                    await load.has_accepted(JOBS_BEFORE_STOP)
                    # Both are told to stop while jobs are submitted, created and running.
                    statuses = await asyncio.gather(gateway.stop(), controller.stop())
                    load.stopped.set()
                assert list(statuses) == [0, 0], (await gateway.log()) + (await controller.log())
            assert load.unexpected == []
            await _finishes_all(stack, user, load.accepted, port, other)


async def _finishes_all(stack: Stack, user: User, accepted: list[str], port: str, other: str) -> None:
    """New containers know every accepted job, and run each of them once."""
    async with AsyncExitStack() as running:
        for service, at in (("gateway", port), ("controller", other)):
            await running.enter_async_context(stack.running(service, at))
        await answering(user.http, "/readyz")
        assert len(accepted) == len(set(accepted)) >= JOBS_BEFORE_STOP
        for name in accepted:
            status = await user.until(name, *TERMINAL, within=PATIENCE)
            assert status["phase"] == "Succeeded", (name, status)
            replicas = await user.read(f"/{name}/replicas")
            assert [len(replica["attempts"]) for replica in replicas["items"]] == [1], name


async def test_a_second_migration_changes_nothing_and_serving_without_one_is_refused(stack: Stack) -> None:
    refused = await run_once(
        stack.image, "serve", "--role", "api", environment=stack.environment, volumes=stack.volumes
    )
    assert (refused.returncode, "run `jobgate migrate`" in refused.stderr) == (2, True), refused.stderr
    await stack.once("migrate")
    assert await stack.once("migrate", "--check") == "the schema is current"
