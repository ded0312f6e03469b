"""The state of the installation, and the caller."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from app.api.views.system import ContactState, system_view
from app.db.installation import heartbeats
from app.db.installation.heartbeats import ControllerLoad, Heartbeat
from app.db.postgres.schema_version import check_database
from app.domain.access.namespaces import NamespaceSet
from app.services.reading.freshness import Freshness
from app.services.reading.system import Check, SystemState
from tests.support.gateways.gateway import Gateway, running_gateway
from tests.support.waiting import until

SYSTEM = "/api/v1/system"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "GET https://10.0.0.1:6443/api/v1/namespaces/jobgate-system/configmaps/x: refused"


async def read(gateway: Gateway, **headers: str) -> Any:
    answer = await gateway.client.get(SYSTEM, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def report(gateway: Gateway, state: str, message: str = "", load: ControllerLoad | None = None) -> datetime:
    """Report as the controller does, and wait until the gateway shows it."""
    now = datetime.now(UTC).replace(microsecond=0)  # noqa: TID251 - a test is its own clock
    lease = await gateway.lease()
    await heartbeats.beat(gateway.db, lease, now, state, message, load=load or ControllerLoad())

    async def is_shown() -> bool:
        beat = await gateway.services.freshness.heartbeat()
        return beat is not None and (beat.state, beat.observed_at) == (state, now)

    await until(is_shown)
    return now


async def test_before_the_first_controller(gateway: Gateway, database_url: str) -> None:
    found = await read(gateway)
    assert found["database"] == {"ok": True, "detail": ""}
    assert found["lease"] == {"held": False, "epoch": 0, "expiresAt": None}
    assert (found["controller"]["ok"], found["controller"]["state"]) == (False, "Waiting")
    assert found["mirror"] == {"observedAt": None, "ageSeconds": None, "stale": True, "staleAfterSeconds": 30.0}
    assert found["queue"] == {"reconciles": 0, "waitingSince": None}
    assert found["cluster"] == {"contact": "Unknown", "latencySeconds": {"p50": None, "p99": None}}
    assert found["features"] == {
        "autoscaler": False,
        "podPolicy": "baseline",
        "missingNamespaces": "refuse",
        "maxReplicas": 10_000,
    }
    assert await check_database(database_url) == []
    async with gateway.db.read() as connection:
        assert found["schemaRevision"] == await connection.fetchval("SELECT version_num FROM schema_revision")


async def test_what_the_controller_reports(gateway: Gateway) -> None:
    since = NOW + timedelta(seconds=5)
    load = ControllerLoad(queued=7, queued_since=since, call_p50=0.25, call_p99=1.5)
    now = await report(gateway, "Running", load=load)
    found = await read(gateway)
    assert found["controller"] == {"ok": True, "state": "Running", "message": ""}
    assert found["lease"]["held"] is True
    assert found["lease"]["epoch"] == 1
    assert datetime.fromisoformat(found["lease"]["expiresAt"]) > now
    assert found["queue"] == {"reconciles": 7, "waitingSince": "2026-01-01T00:00:05Z"}
    assert found["cluster"] == {"contact": "Connected", "latencySeconds": {"p50": 0.25, "p99": 1.5}}
    assert (found["mirror"]["stale"], datetime.fromisoformat(found["mirror"]["observedAt"])) == (False, now)
    assert 0 <= found["mirror"]["ageSeconds"] < 60


async def test_the_feed_has_a_position_and_a_backlog(gateway: Gateway) -> None:
    await gateway.submit("one")

    async def is_numbered() -> bool:
        feed = (await read(gateway))["feed"]
        return bool(feed["position"].endswith(".1") and feed["backlog"] == 0)

    await until(is_numbered)


async def test_a_viewer_of_one_namespace_gets_no_message_of_the_cluster(closed_gateway: Gateway) -> None:
    await report(closed_gateway, "Unreachable", SECRET)
    viewer = await closed_gateway.token("viewer", "team")
    found = await read(closed_gateway, **viewer)
    assert found["controller"] == {
        "ok": True,
        "state": "Unreachable",
        "message": "the cluster does not answer the controller",
    }
    assert found["cluster"]["contact"] == "Unreachable"
    admin = await closed_gateway.token("admin", "*")
    assert (await read(closed_gateway, **admin))["controller"]["message"] == SECRET
    assert (await closed_gateway.client.get(SYSTEM)).status_code == 401


def state(beat: Heartbeat | None, *, ok: bool = True, stale: bool = False) -> SystemState:
    database = Check(name="database", ok=ok, detail="" if ok else SECRET)
    return SystemState(database=database, stored=None, beat=beat, freshness=Freshness(observed_at=None, stale=stale))


@pytest.mark.parametrize(
    ("reported", "stale", "contact"),
    [
        ("Running", False, ContactState.CONNECTED),
        ("Running", True, ContactState.UNKNOWN),
        ("Syncing", True, ContactState.SYNCING),
        ("Unreachable", True, ContactState.UNREACHABLE),
        ("WrongCluster", True, ContactState.WRONG_CLUSTER),
        (None, True, ContactState.UNKNOWN),
    ],
)
async def test_the_contact_with_the_cluster(
    gateway: Gateway, reported: str | None, *, stale: bool, contact: ContactState
) -> None:
    beat = None if reported is None else Heartbeat(observed_at=NOW, epoch=1, state=reported, message="")
    view = system_view(state(beat, stale=stale), gateway.services, with_messages=False)
    assert view.cluster.contact == contact


async def test_without_an_answer_of_the_database_the_rest_is_shown(gateway: Gateway) -> None:
    view = system_view(state(None, ok=False, stale=True), gateway.services, with_messages=False)
    assert (view.lease, view.feed, view.schema_revision) == (None, None, None)
    assert (view.database.ok, view.database.detail) == (False, "PostgreSQL does not accept writes")
    assert system_view(state(None, ok=False), gateway.services, with_messages=True).database.detail == SECRET


async def test_a_caller_reads_what_its_token_permits(closed_gateway: Gateway) -> None:
    async def caller(*token: str) -> Any:
        answer = await closed_gateway.client.get("/api/v1/whoami", headers=await closed_gateway.token(*token))
        assert answer.status_code == 200, answer.text
        return answer.json()

    submitter = await caller("submitter", "team", "other")
    assert submitter.pop("actorId").startswith("token:")
    assert submitter == {
        "name": "a submitter",
        "role": "submitter",
        "namespaces": ["other", "team"],
        "grants": [{"role": "submitter", "namespaces": ["other", "team"]}],
        "administers": False,
        "expiresAt": None,
    }
    everywhere = await caller("admin", "*")
    assert (everywhere["namespaces"], everywhere["administers"]) == (None, True)
    assert (await closed_gateway.client.get("/api/v1/whoami")).status_code == 401


async def test_a_caller_reaches_no_namespace_that_is_not_served(database_url: str) -> None:
    async with running_gateway(database_url, closed=True, namespaces=NamespaceSet.of("team", "lab")) as gateway:
        for names, reached in ((("team", "other"), ["team"]), (("*",), ["lab", "team"])):
            answer = await gateway.client.get("/api/v1/whoami", headers=await gateway.token("viewer", *names))
            assert answer.json()["namespaces"] == reached


async def test_a_gateway_without_tokens_serves_an_admin(gateway: Gateway) -> None:
    found = (await gateway.client.get("/api/v1/whoami")).json()
    assert (found["name"], found["role"], found["namespaces"]) == ("anonymous", "admin", None)
