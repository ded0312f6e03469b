"""Logs of running and of deleted pods, and watches that show every transition."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2

from tests.e2e.user import Event, User, job, watching
from tests.support.clusters.kube import KubeClient
from tests.support.gateways.process import GatewayProcess
from tests.support.waiting import until

STEPS = "for i in 1 2 3; do echo step $i; done; while ! test -e /tmp/jobgate-no-such-file; do sleep 0.1; done"
WAITING = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit("asked to stop"))
print("waiting", flush=True)
time.sleep(600)
"""


async def test_a_live_log_with_every_option(user: User) -> None:
    await user.submit(job("steps", STEPS))
    await user.until("steps", "Running")
    log = await until(
        lambda: user.call("GET", "/steps/logs"),
        lambda log: log.text == "step 1\nstep 2\nstep 3\n",
        what="three steps",
        within=120,
    )
    assert log.headers["Jobgate-Log-Source"] == "live"
    assert log.headers["Content-Type"].startswith("text/plain")
    assert (await user.call("GET", "/steps/logs?tailLines=1")).text == "step 3\n"
    stamped = (await user.call("GET", "/steps/logs?timestamps=true&sinceSeconds=3600")).text.splitlines()
    assert [line.partition(" ")[2] for line in stamped] == ["step 1", "step 2", "step 3"]
    assert all(line[:4].isdigit() for line in stamped)
    wrong = (await user.call("GET", "/steps/logs?container=mian", status=400)).json()
    assert (wrong["errors"][0]["pointer"], wrong["errors"][0]["accepted"]) == ("/query/container", "one of main")
    await user.call("POST", "/steps/cancel", status=202)


async def test_a_followed_log_continues_until_the_container_ends(user: User, api: KubeClient) -> None:
    manifest = job("followed", "")
    await user.submit(_with(manifest, image="python:3.12-slim", command=["python", "-c", WAITING]))
    await user.until("followed", "Running")
    async with user.http.stream("GET", f"{user.jobs}/followed/logs", params={"follow": True}) as response:
        lines = response.aiter_lines()
        assert await anext(lines) == "waiting"
        await user.call("POST", "/followed/cancel", status=202)
        assert [line async for line in lines] == ["asked to stop"]
    await user.until("followed", "Cancelled")
    await user.call("DELETE", "/followed", status=202)
    await api.eventually(f"/api/v1/namespaces/{user.namespace}/pods", lambda found: not found["items"])
    kept = await user.call("GET", "/followed/logs")
    assert kept.text == "waiting\nasked to stop\n"
    assert (kept.headers["Jobgate-Log-Source"], kept.headers["Jobgate-Log-Truncated"]) == ("stored", "false")


async def test_the_end_of_a_long_log_is_stored(user: User, api: KubeClient) -> None:
    script = "i=0; while [ $i -lt 9000 ]; do echo a line of no great use, number $i; i=$((i + 1)); done; exit 7"
    await user.submit(job("long", script, cleanUpPolicy="All"))
    await user.ended("long")
    await api.eventually(f"/api/v1/namespaces/{user.namespace}/pods", lambda found: not found["items"])
    kept = await user.call("GET", "/long/logs")
    assert kept.headers["Jobgate-Log-Truncated"] == "true"
    assert 60_000 < len(kept.content) <= 64 * 1024
    assert kept.text.endswith("number 8999\n")


async def test_a_watch_shows_every_transition_also_to_a_client_that_reconnects(user: User) -> None:
    restarts = {"policy": "OnFailure", "limit": 3}
    script = "test $ATTEMPT = 2"
    attempt = {"fieldRef": {"fieldPath": "metadata.labels['jobgate.dev/attempt']"}}
    environment = [{"name": "ATTEMPT", "valueFrom": attempt}]
    manifest = _with(job("watched", script, restart=restarts), env=environment)
    async with watching(user) as events:
        ready = await anext(events)
        assert ready.name == "ready"
        await user.submit(manifest)
        steady = await _to_the_end(events)
    restless = await _reconnecting(user, ready.id, until=steady[-1].id)
    assert [event.id for event in restless] == [event.id for event in steady]
    assert steady[0].data["type"] == "created"
    numbers = [int(event.id.partition(".")[2]) for event in steady]
    assert numbers == sorted(set(numbers))
    history = {entry["phase"] for entry in await user.history("watched")}
    assert {"Queued", "Succeeded"} <= history
    # An event shows the job at the time of sending, so phases may be skipped, but never the last one.
    assert {event.phase for event in steady} <= history
    assert steady[-1].phase == "Succeeded"
    assert (await user.read("/watched/replicas"))["items"][0]["restartCount"] == 1


async def test_the_watch_of_a_job_closes_when_the_job_and_its_objects_are_done(user: User) -> None:
    await user.submit(job("brief", "exit 0"))
    async with asyncio.timeout(120):
        answer = await user.http.get(
            f"{user.jobs}/brief/watch", headers={"Accept": "application/jsonl"}, timeout=httpx2.Timeout(120)
        )
    events = [json.loads(line) for line in answer.text.splitlines()]
    assert [event["event"] for event in (events[0], events[-1])] == ["ready", "end"]
    states = [event["data"] for event in events if event["event"] == "job"]
    assert (states[0]["type"], states[-1]["object"]["status"]["phase"]) == ("current", "Succeeded")


def _with(manifest: dict[str, Any], **container: Any) -> dict[str, Any]:
    """Return the manifest with these fields in its container."""
    manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0].update(container)
    return manifest


async def _to_the_end(events: AsyncIterator[Event]) -> list[Event]:
    seen: list[Event] = []
    async with asyncio.timeout(120):
        async for event in events:
            seen.append(event)
            if event.is_end:
                return seen
    raise AssertionError(f"the stream ended before the job: {seen}")


async def _reconnecting(user: User, position: str, *, until: str) -> list[Event]:
    """Return the events that a client receives if its connection breaks after every event."""
    seen: list[Event] = []
    async with asyncio.timeout(120):
        while not (seen and seen[-1].id == until):
            async with watching(user, after=seen[-1].id if seen else position) as events:
                seen.append(await anext(events))
    return seen


async def test_the_watch_of_a_job_ends_with_an_event_when_the_gateway_stops(
    own_gateway: GatewayProcess, namespace: str
) -> None:
    await own_gateway.start()
    async with httpx2.AsyncClient(base_url=own_gateway.url, timeout=60) as http:
        user = User(http, namespace)
        await user.submit(job("steps", STEPS))
        await user.until("steps", "Running")
        async with watching(user, f"{user.jobs}/steps/watch") as events:
            assert (await anext(events)).name == "ready"
            async with asyncio.TaskGroup() as group:
                stopping = group.create_task(own_gateway.stop())
                names = [event.name async for event in events]
            assert names[-1] == "shutdown"
            assert stopping.result() == 0
