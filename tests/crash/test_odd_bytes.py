"""Invalid bytes in status messages and logs stop neither their job nor another one."""

import base64
import json
from pathlib import Path
from typing import Any

import asyncpg
import httpx2
import pytest

from tests.crash.ledger import ledger
from tests.crash.stories import Client, generic_job, serves, task
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import STEADY, gateway_process, insist

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

SCRIPT = "devcluster.jobgate.dev/script"
NUL = "before\0after"
LONE_SURROGATE = '"before\\ud800after"'
LOG = b"log \x00 and \xff\xfe and \xed\xa0\x80 end\n"


def scripted(name: str, *steps: dict[str, Any]) -> dict[str, Any]:
    """Return a job whose pod runs these steps."""
    played = task("worker", "unused")
    played["template"]["metadata"] = {"annotations": {SCRIPT: json.dumps(steps)}}
    return generic_job(name, played)


def ends_with(message: str) -> list[dict[str, Any]]:
    ended = {"exitCode": 7, "reason": f"Odd{message}", "message": message}
    return [
        {"phase": "Running"},
        {"log": {"base64": base64.b64encode(LOG).decode()}},
        {"event": {"reason": "Odd", "message": message, "type": "Warning"}},
        {"after": 0.3, "terminated": ended},
    ]


async def test_nul_and_invalid_utf8_stop_no_job(
    busy_cluster: Cluster, crash_api: KubeClient, crash_namespace: str, database_url: str, tmp_path: Path
) -> None:
    async with gateway_process(database_url, busy_cluster.kubeconfig, tmp_path / "gateway", **STEADY) as gateway:
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
            client = Client(http=http, api=crash_api, namespace=crash_namespace)
            waiting = {"waiting": {"reason": f"Image{NUL}", "message": NUL}}
            await client.submit(scripted("waits", waiting))
            await client.submit(scripted("ends", *ends_with(NUL)))
            await client.submit(generic_job("prints", task("worker", _prints())))
            await serves("bystander", tmp_path).run(client)
            await client.until("ends", "Failed")
            await client.until("prints", "Failed")
            status = await client.until("waits", "Pending", "Creating")
            assert "\0" not in json.dumps(status, ensure_ascii=False)
            for name in ("ends", "prints"):
                await _check_last_words(client, name)
            await _patched_status(client)
            await client.act("POST", "waits", "cancel")
            await client.until("waits", "Cancelled")
        async with ledger(database_url, busy_cluster) as book:
            await book.settled()
    assert await _unwritable(database_url) == 0


def _prints() -> str:
    octal = "".join(f"\\{byte:03o}" for byte in LOG)
    return f"printf '{octal}'; printf '{octal}' > /dev/termination-log; exit 7"


async def _check_last_words(client: Client, name: str) -> None:
    """Require that the log has the original bytes, and that all other answers are valid text."""
    log = await _read_log(client, name)
    assert LOG.rstrip(b"\n") in log
    for part in ("replicas", "events", "history"):
        answer = await insist(client.http, "GET", client.path(name, part))
        assert answer.status_code == 200, answer.text
        assert "\0" not in json.dumps(answer.json(), ensure_ascii=False)


async def _read_log(client: Client, name: str) -> bytes:
    """Read the log, and repeat while the cluster does not answer in time."""
    path = client.path(name, "logs") + "?task=worker&rank=0"
    log = await insist(client.http, "GET", path)
    assert log.status_code == 200, log.text
    return log.content


async def _patched_status(client: Client) -> None:
    """Write a status into the pod that a correct node would never write."""
    path = f"/api/v1/namespaces/{client.namespace}/pods/waits-worker-0/status"
    for text in (json.dumps(NUL), LONE_SURROGATE, '"' + "x" * 100_000 + '"'):
        await client.api.patch(path, f'{{"status":{{"message":{text},"reason":{text}}}}}'.encode())
    await client.until("waits", "Pending", "Creating", "Running")


async def _unwritable(database_url: str) -> int:
    connection = await asyncpg.connect(database_url)
    count = await connection.fetchval("SELECT count(*) FROM status_history WHERE reason = 'NotWritable'")
    await connection.close()
    return int(count)
