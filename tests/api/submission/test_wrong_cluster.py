"""While the controller reports that the cluster is not the one of the database, no new object is accepted."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from app.db.installation import heartbeats
from app.domain.kinds.registry import all_kinds
from app.services.reading import freshness
from tests.support.gateways.gateway import Gateway
from tests.support.kinds.every_kind import Collection, list_of

KEY = {"Idempotency-Key": "k1"}


@pytest.fixture
async def report(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A function that stores the state of the controller."""
    monkeypatch.setattr(freshness, "_REFRESH_SECONDS", 0.0)
    lease = await gateway.lease()

    async def store(state: str) -> None:
        now = datetime.now(UTC)  # noqa: TID251 - a test is its own clock
        await heartbeats.beat(gateway.db, lease, now, state, "kube-system has another uid")

    return store


@pytest.mark.parametrize("kind", sorted(all_kinds()))
async def test_new_objects_are_refused_and_known_ones_are_served(
    gateway: Gateway, report: Callable[[str], Any], kind: str
) -> None:
    of = Collection(gateway, kind)
    first = await of.post(of.manifest("known"), **KEY)
    assert first.status_code == 201
    await report("WrongCluster")
    requests = [
        of.post(of.manifest("new")),
        of.post(list_of(of.manifest("new"))),
        of.post(of.manifest("new"), **{"Idempotency-Key": "k2"}),
        gateway.client.post(of.path("batch"), json=list_of(of.manifest("new"))),
        gateway.client.post(of.path("batch") + "?atomic=true", json=list_of(of.manifest("new"))),
    ]
    for request in requests:
        answer = await request
        assert (answer.status_code, answer.json()["code"]) == (503, "WrongCluster"), answer.text
        assert answer.headers["retry-after"]
        assert "uid" not in answer.json()["detail"]
    assert (await of.post(of.manifest("known"), **KEY)).status_code == 200, "a stored answer is repeated"
    assert (await of.post(of.manifest("new"), "?dryRun=Local")).status_code == 200
    assert (await of.get("known")).status_code == 200
    assert (await gateway.client.delete(of.path("known"))).is_success
    assert [item["name"] for item in (await of.get()).json()["items"]] in ([], ["known"])
    await report("Running")
    assert (await of.post(of.manifest("new"))).status_code == 201


async def test_a_retry_is_a_new_job(gateway: Gateway, report: Callable[[str], Any]) -> None:
    of = Collection(gateway, "GenericJob")
    await of.submit()
    await report("WrongCluster")
    answer = await gateway.client.post(of.path("one", "retry"), json={})
    assert (answer.status_code, answer.json()["code"]) == (503, "WrongCluster")
    assert (await gateway.client.post(of.path("one", "cancel"))).status_code == 202


@pytest.mark.parametrize("state", ["Running", "Syncing", "Unreachable", "Waiting"])
async def test_other_states_of_the_controller_refuse_nothing(
    gateway: Gateway, report: Callable[[str], Any], state: str
) -> None:
    await report(state)
    await Collection(gateway, "GenericJob").submit()
