"""Schemathesis finds no answer of `jobgate serve` that contradicts the OpenAPI document.

`make test-openapi` installs Schemathesis and runs this test. schemathesis.toml lists each exception with its reason.
"""

import asyncio
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from app.db.installation import tokens
from app.db.postgres.engine import Database
from app.running.application import create_app
from tests.support.clusters.kube import Cluster
from tests.support.documents.openapi import operations
from tests.support.gateways.process import gateway_process

SECONDS = 3000.0  # generous: two minutes of computing on a busy machine
PROGRAM = "JOBGATE_TEST_SCHEMATHESIS"  # the path of the program
OPTIONS = "JOBGATE_TEST_SCHEMATHESIS_OPTIONS"  # of the program, which override those of schemathesis.toml
CONFIGURATION = Path(__file__).parent / "schemathesis.toml"

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 600)]


def document_for_generation() -> dict[str, Any]:
    """Return the OpenAPI document without the parameter `pageToken`, whose values Schemathesis cannot generate."""
    document: dict[str, Any] = create_app().openapi()
    for _, _, operation in operations(document):
        parameters = operation.get("parameters", [])
        operation["parameters"] = [parameter for parameter in parameters if parameter["name"] != "pageToken"]
    return document


async def create_token(database_url: str) -> str:
    db = await Database.open(database_url, pool_size=1)
    try:
        now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
        _, text = await tokens.create(db, name="schemathesis", role="admin", namespaces=["*"], now=now)
    finally:
        await db.close()
    return text


async def run(url: str, token: str, directory: Path) -> tuple[int | None, str]:
    """Run Schemathesis against a gateway, and return its exit status and its output."""
    document = directory / "openapi.json"
    document.write_text(json.dumps(document_for_generation()))
    process = await asyncio.create_subprocess_exec(
        *(os.environ[PROGRAM], "--no-color", "--config-file", str(CONFIGURATION), "run", str(document), "--url", url),
        *os.environ.get(OPTIONS, "").split(),
        cwd=directory,
        env=os.environ | {"JOBGATE_TOKEN": token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(SECONDS):
        output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_answers_follow_the_document(database_url: str, embedded_cluster: Cluster, tmp_path: Path) -> None:
    # Without a controller, so that no container runs what Schemathesis makes up.
    environment = {"JOBGATE_OPEN_ACCESS": "false", "JOBGATE_ROLE": "api"}
    async with gateway_process(database_url, embedded_cluster.kubeconfig, tmp_path, **environment) as gateway:
        status, output = await run(await gateway.start(), await create_token(database_url), tmp_path)
    assert status == 0, output
    assert "Test cases:" in output
