"""The archive of logs has each byte that programs wrote, once and in order, through SIGKILLs of every process.

programs: chatty, torn, binary, huge lines, an init container, a container that is restarted in place
all:      API, controller and logs ─▶ SIGKILL ─▶ start ─▶ …
logs:     shares the pods with it  ─▶ SIGKILL, also between the object of a chunk and its row ─▶ start ─▶ …
"""

import os
import pickle
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final
from uuid import UUID

import httpx2
import pytest

from app.base.faultpoints import FaultPoint as At
from app.db import kept_logs
from app.db.postgres.engine import Database
from app.domain.kept_logs.codec import decode_chunk
from app.domain.kept_logs.keys import place_of_chunk
from app.domain.kept_logs.records import KeptLog, KeptLogState
from app.domain.plan import Rank
from app.log_store import LogStore, open_store
from tests.crash.stories import Client, generic_job, task
from tests.log_store.servers import served_bucket
from tests.support.clusters.kube import Cluster, KubeClient
from tests.support.gateways.process import STEADY, GatewayProcess, gateway_process
from tests.support.waiting import until

pytestmark = [pytest.mark.crash, pytest.mark.timeout(900)]

PATIENCE: Final = 240.0
QUICK: Final = {**STEADY, "JOBGATE_LOG_FLUSH_AFTER": "0.5"}
OF_LOGS: Final = frozenset({At.LOG_CHUNK_PUT, At.LOG_CHUNK_INDEXED})
# Each process dies at a point or by a SIGKILL from outside after a while, and is started again.
KILLS: Final = (
    ("logs", At.LOG_CHUNK_PUT, 2),
    ("all", At.LOG_CHUNK_INDEXED, 2),
    ("logs", At.LOG_CHUNK_INDEXED, 3),
    ("all", At.LOG_CHUNK_PUT, 1),
    ("logs", None, 0),
    ("all", None, 0),
)
# Prints the pieces in a file.
PROGRAM: Final = """
import pickle, sys, time
for pause, piece in pickle.load(open(sys.argv[1], "rb")):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    time.sleep(pause)
"""
ALIVE: Final = 3.0  # seconds from the start of a process until it is killed, unless it has died at its point
AGAIN: Final = 42  # the exit status after which a container is started again in place


async def test_the_archive_has_each_byte_once_and_in_order(
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
    prove: Callable[[str], None],
) -> None:
    store = f"file://{tmp_path}/store"
    async with (
        two_keepers(busy_cluster, database_url, tmp_path, JOBGATE_LOG_STORE=store) as processes,
        httpx2.AsyncClient(base_url=processes["all"].url, timeout=60) as http,
    ):
        client = Client(http=http, api=crash_api, namespace=crash_namespace)
        job = UUID((await client.submit(a_job(tmp_path)))["uid"])
        for name, point, passing in KILLS:
            await kill(processes[name], {} if point is None else {"JOBGATE_FAULT_POINTS": f"{point}:{passing}"})
        await client.until("prints", "Succeeded")
        kept = await archive(database_url, open_store(store), job)
    assert kept.keys() == WRITTEN.keys()
    for key, written in WRITTEN.items():
        assert kept[key] == written, f"{key}: {difference(kept[key], written)}"
    total = sum(map(len, WRITTEN.values()))
    prove(f"whole logs: kills {len(KILLS)}, logs {len(kept)}, bytes {total}, lost 0, twice 0")


@asynccontextmanager
async def two_keepers(
    cluster: Cluster, database_url: str, directory: Path, **settings: str
) -> AsyncIterator[Mapping[str, GatewayProcess]]:
    """A process with all roles and one with the role logs, which share the pods."""
    async with (
        gateway_process(database_url, cluster.kubeconfig, directory / "all", **QUICK, **settings) as everything,
        gateway_process(
            database_url, cluster.kubeconfig, directory / "logs", **QUICK, **settings, JOBGATE_ROLE="logs"
        ) as logs,
    ):
        await everything.start()
        await logs.start()
        yield {"all": everything, "logs": logs}


async def kill(process: GatewayProcess, armed: Mapping[str, str]) -> None:
    """Kill the process, let it die again at its point or after a while, and start it."""
    await process.kill()
    if armed:
        process.launch(armed)
        begun = monotonic()
        await until(lambda: not process.is_running or monotonic() > begun + ALIVE, within=PATIENCE)
        await process.kill()
    await process.start()


# What runs of containers print, by container and run.
KINDS: Final = {("first", 0): "first", ("again", 0): "before", ("again", 1): "after"} | {
    (kind, 0): kind for kind in ("chatty", "torn", "binary", "huge")
}


def pieces(kind: str) -> Iterator[tuple[float, bytes]]:
    """Yield the pieces of the output of a kind of program, each with the pause after it in seconds."""
    chosen = random.Random(kind)
    if kind == "chatty":
        for number in range(80):
            yield 0.1, b"".join(b"%d %s\n" % (number, b"x" * chosen.randrange(90)) for _ in range(500))
    elif kind == "torn":
        ends = [b"", b"\n", b"\r\n", b"\n\n", b"\n2026-01-02T03:04:05Z "]
        for number in range(80):
            yield 0.1, b"%d" % number * chosen.randrange(1, 9) + chosen.choice(ends)
    elif kind == "binary":
        for _ in range(40):
            yield 0.2, chosen.randbytes(5000)
    elif kind == "huge":
        for number in range(4):
            yield 1.0, b"%d" % number * 900_000
            yield 1.0, chosen.choice([b"\n", b"end\nnext "])
    else:
        yield 0.3, b"the output of " + kind.encode() + b"\n"
        yield 0.0, b"without a line break at its end"


WRITTEN: Final = {key: b"".join(piece for _, piece in pieces(kind)) for key, kind in KINDS.items()}


def a_job(directory: Path) -> dict[str, Any]:
    """Return a job with a pod for each kind of program, so that processes share them."""
    tasks = [in_container(task(kind, prints(directory, kind)), kind) for kind in ("chatty", "torn", "binary", "huge")]
    mark = directory / "again"
    script = f"test -e {mark} && {{ {prints(directory, 'after')}; exit 0; }}"
    again = in_container(task("again", f"{script}; {prints(directory, 'before')}; touch {mark}; exit {AGAIN}"), "again")
    pod = again["template"]["spec"]
    pod["containers"][0] |= {
        "restartPolicy": "Never",
        "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [AGAIN]}}],
    }
    pod["initContainers"] = [{"name": "first", "image": "busybox", "command": ["sh", "-c", prints(directory, "first")]}]
    return generic_job("prints", *tasks, again)


def in_container(replicas: dict[str, Any], name: str) -> dict[str, Any]:
    replicas["template"]["spec"]["containers"][0]["name"] = name
    return replicas


def prints(directory: Path, kind: str) -> str:
    """Return a command of a shell that prints the pieces of a kind."""
    file = directory / f"{kind}.pickle"
    file.write_bytes(pickle.dumps(list(pieces(kind))))
    return f"{sys.executable} -c '{PROGRAM}' {file}"


async def archive(database_url: str, store: LogStore, job: UUID) -> dict[tuple[str, int], bytes]:
    """Return the text of the kept logs of the job, by container and run, once all are final."""
    db = await Database.open(database_url, pool_size=1)
    try:

        async def logs() -> list[KeptLog]:
            tasks = ("chatty", "torn", "binary", "huge", "again")
            return [log for name in tasks for log in await kept_logs.of_attempt(db, job, Rank(name, 0), 1)]

        found = await until(
            logs, lambda found: len(found) >= len(KINDS) and all(log.is_final for log in found), within=PATIENCE
        )
        assert {log.state for log in found} == {KeptLogState.COMPLETE}
        return {(log.container, log.run): await text_of(db, store, log) for log in found}
    finally:
        await db.close()


async def text_of(db: Database, store: LogStore, log: KeptLog) -> bytes:
    """Return the text of a log, after checking its index. No line of it is lost."""
    text = b""
    for chunk in await kept_logs.chunks_in_bytes(db, log.key):
        assert chunk.gap is None
        assert chunk.object_name is not None
        assert place_of_chunk(chunk.object_name) == (log.key, chunk.start) == (log.key, len(text))
        content = decode_chunk(await store.get(chunk.object_name))
        assert content.start == chunk.start
        assert len(content.text) == chunk.length
        text += content.text
    assert len(text) == log.text_bytes
    return text


def difference(found: bytes, expected: bytes) -> str:
    """Return where two texts begin to differ."""
    same = next(
        (n for n, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), min(len(found), len(expected))
    )
    around = slice(max(0, same - 40), same + 40)
    return f"{len(found)} bytes for {len(expected)}; after {same}: {found[around]!r} for {expected[around]!r}"


async def test_jobs_go_on_while_the_store_is_frozen(
    busy_cluster: Cluster,
    crash_api: KubeClient,
    crash_namespace: str,
    database_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A replica is restarted and its job ends. What the node still has then is written when the store is thawed."""
    mark = tmp_path / "mark"
    script = f"echo the first; test -e {mark} && exit 0; touch {mark}; exit 1"
    manifest = generic_job("frozen", task("worker", script, policy="OnFailure", limit=2))
    async with (
        served_bucket(monkeypatch) as bucket,
        gateway_process(
            database_url,
            busy_cluster.kubeconfig,
            tmp_path / "all",
            **QUICK,
            JOBGATE_LOG_STORE=bucket.url,
            JOBGATE_LOG_DEADLINE="3",
        ) as gateway,
    ):
        await gateway.start()
        async with httpx2.AsyncClient(base_url=gateway.url, timeout=60) as http:
            client = Client(http=http, api=crash_api, namespace=crash_namespace)
            os.kill(bucket.pid, signal.SIGSTOP)
            job = UUID((await client.submit(manifest))["uid"])
            await client.until("frozen", "Succeeded")
        os.kill(bucket.pid, signal.SIGCONT)
        db = await Database.open(database_url, pool_size=1)
        try:
            [kept] = await until(
                lambda: kept_logs.of_attempt(db, job, Rank("worker", 0), 2),
                lambda found: found and found[0].is_final,
                what="the log of the second attempt is final",
                within=PATIENCE,
            )
            assert await text_of(db, open_store(bucket.url), kept) == b"the first\n"
        finally:
            await db.close()
