"""Gateways of this checkout of the repository and of another one, to be measured alternately in one run."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from app.embedded_postgres.server import EmbeddedPostgres
from bench.measuring.client import MeasurementFailed, Target
from bench.measuring.gateway import gateway, new_token

HERE = Path(__file__).parents[2]
NAMESPACE = "bench"
# All clients of a benchmark have one address and one token.
_MANY_CLIENTS = dict.fromkeys(
    (
        "JOBGATE_MAX_OPEN",
        "JOBGATE_MAX_OPEN_PER_TOKEN",
        "JOBGATE_MAX_CONNECTIONS",
        "JOBGATE_MAX_CONNECTIONS_PER_ADDRESS",
    ),
    "15000",
)
NOT_STARTED = Target(name="jobgate", port=0, tls=False, token="", pids={})
MANIFEST = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "GenericJob",
    "metadata": {"name": "first"},
    "spec": {
        "replicaSpecs": [
            {
                "type": "worker",
                "replicas": 2,
                "restartPolicy": {"policy": "Never"},
                "template": {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["true"]}]}},
            }
        ]
    },
}


@dataclass(slots=True, kw_only=True)
class Side:
    name: str
    checkout: Path
    url: str = ""
    target: Target = NOT_STARTED
    uids: list[Any] = field(default_factory=list)


class Connection:
    """A keep-alive connection that sends requests and reads whole answers."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def open(self) -> "Connection":
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self._target.port, limit=2**24)
        return self

    async def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        self.writer.write(self._target.request(method, path, body, headers))
        return await self.answer()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
        if headers.get("transfer-encoding") == "chunked":
            return int(head[0].split()[1]), headers, await self._chunks()
        return int(head[0].split()[1]), headers, await self.reader.readexactly(int(headers.get("content-length", 0)))

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:size]
        await self.reader.readuntil(b"\r\n")
        return body


def sides_of(against: Path | None) -> list[Side]:
    """Return the side of this checkout, preceded by that of the other one, if any."""
    sides = [Side(name="after", checkout=HERE)]
    if against is not None:
        sides.insert(0, Side(name="before", checkout=against.absolute()))
    return sides


@asynccontextmanager
async def run_gateway(side: Side, folder: Path, postgres: EmbeddedPostgres, *, jobs: int) -> AsyncIterator[None]:
    """Run a gateway of the checkout on a new database, which has one submitted job and `jobs` copies of its row."""
    name = f"bench_{side.name}"
    connection: Any = await asyncpg.connect(postgres.url, timeout=30)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    side.url = postgres.url.replace("/jobgate?", f"/{name}?", 1)
    environment = os.environ | {"JOBGATE_DATABASE_URL": side.url}
    migrating = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app.cli", "migrate"), cwd=side.checkout, env=environment
    )
    if await migrating.wait():
        raise MeasurementFailed("the schema cannot be created")
    token = await new_token(side.url)
    os.chdir(side.checkout)  # `python -m app.cli` imports the code of its working directory
    async with gateway(side.url, folder, postgres, role="api", token=token, settings=_MANY_CLIENTS) as side.target:
        os.chdir(HERE)
        submitting = await Connection(side.target).open()
        path, body = f"/api/v1/namespaces/{NAMESPACE}/jobs", json.dumps(MANIFEST).encode()
        status, _, _ = await submitting.ask("POST", path, body)
        if status != 201:
            raise MeasurementFailed(f"the first job was answered {status}")
        connection = await asyncpg.connect(side.url, timeout=30)
        await _copy_rows(connection, jobs)
        found = await connection.fetch("SELECT uid FROM jobs WHERE name <> 'first' ORDER BY created_at DESC LIMIT 1000")
        side.uids = [row["uid"] for row in found]
        await connection.close()
        yield


async def _copy_rows(connection: Any, jobs: int) -> None:
    """Copy the row of the first job. One copy in a hundred is Running, the others have ended."""
    columns = [
        row["column_name"]
        for row in await connection.fetch(
            "SELECT column_name FROM information_schema.columns WHERE table_name = 'jobs' AND is_generated = 'NEVER'"
        )
    ]
    other = {
        "uid": "gen_random_uuid()",
        "name": "'job-' || n",
        "created_at": "created_at - n * interval '1 second'",
        "labels": "jsonb_build_object('team', 't' || n % 20, 'user', 'u' || n % 1000)",
        "phase": "CASE WHEN n % 100 = 0 THEN 'Running' ELSE 'Succeeded' END",
        "quiet": "n % 100 <> 0",
        "finished_at": "CASE WHEN n % 100 <> 0 THEN created_at - (n - 10) * interval '1 second' END",
        "intent_at": "NULL",
    }
    values = ", ".join(other.get(column, column) for column in columns)
    await connection.execute(
        f"INSERT INTO jobs ({', '.join(columns)}) SELECT {values} FROM jobs, generate_series(1, {jobs}) AS n",
        timeout=1800,
    )
    # Without statistics the planner would choose other plans than in an installation of this size.
    await connection.execute("VACUUM ANALYZE jobs", timeout=600)
