"""Paths, and what discovery remembers."""

from typing import Any

import pytest

from app.k8s.errors import KubeNotFound, Unreachable
from app.k8s.resources import DISCOVERY_TTL, NODE, POD, POD_GROUPS, STATEFUL_SET, Discovery, KubeResource, resource_for
from tests.k8s.support import ManualClock

POD_GROUP = POD_GROUPS[-1]


@pytest.mark.parametrize(
    ("resource", "names", "path"),
    [
        (POD, (), "/api/v1/pods"),
        (POD, ("ns",), "/api/v1/namespaces/ns/pods"),
        (POD, ("ns", "a", "log"), "/api/v1/namespaces/ns/pods/a/log"),
        (NODE, (None, "n1"), "/api/v1/nodes/n1"),
        (NODE, ("ignored", "n1"), "/api/v1/nodes/n1"),
        (STATEFUL_SET, ("ns", "s"), "/apis/apps/v1/namespaces/ns/statefulsets/s"),
        (POD_GROUP, ("ns",), "/apis/scheduler.tensorstack.dev/v1beta1/namespaces/ns/podgroups"),
        (POD, ("n/s", "a?b"), "/api/v1/namespaces/n%2Fs/pods/a%3Fb"),
    ],
)
def test_paths_of_resources(resource: KubeResource, names: tuple[str, ...], path: str) -> None:
    assert resource.path(*names) == path


@pytest.mark.parametrize("names", [("ns", ".."), ("..", "a"), ("ns", ""), ("", "a"), (None, "a")])
def test_an_empty_name_is_refused(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="nam"):
        POD.path(*names)


def test_the_resource_of_a_manifest() -> None:
    assert resource_for("v1", "Pod") is POD
    with pytest.raises(ValueError, match="Gadget of v7"):
        resource_for("v7", "Gadget")


class Server:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: dict[str, Any] | Exception = {"resources": [{"kind": "PodGroup", "name": "podgroups"}]}

    async def fetch(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def test_discovery_caches_its_answers() -> None:
    server, clock = Server(), ManualClock()
    discovery = Discovery(server.fetch, clock)
    assert await discovery.has(POD_GROUP)
    server.answer = KubeNotFound(404, "NotFound", "404 page not found")
    assert await discovery.has(POD_GROUP)
    assert server.asked == ["/apis/scheduler.tensorstack.dev/v1beta1"]
    clock.seconds = DISCOVERY_TTL
    assert not await discovery.has(POD_GROUP)


async def test_discovery_uses_the_last_answer_while_the_cluster_is_unreachable() -> None:
    server, clock = Server(), ManualClock()
    discovery = Discovery(server.fetch, clock)
    server.answer = Unreachable("refused")
    with pytest.raises(Unreachable):
        await discovery.has(POD_GROUP)
    server.answer = {"resources": [{"kind": "PodGroup"}, None, {"kind": 3}]}
    assert await discovery.has(POD_GROUP)
    server.answer = Unreachable("refused")
    clock.seconds = DISCOVERY_TTL
    assert await discovery.has(POD_GROUP)


async def test_an_api_that_has_answered_404_is_looked_for_again() -> None:
    server, clock = Server(), ManualClock()
    discovery = Discovery(server.fetch, clock)
    discovery.doubt(POD_GROUP.api_version)
    assert await discovery.has(POD_GROUP)
    discovery.doubt(POD_GROUP.api_version)
    server.answer = Unreachable("refused")
    assert await discovery.has(POD_GROUP)
    discovery.doubt(POD_GROUP.api_version)
    server.answer = KubeNotFound(404, "NotFound", "404 page not found")
    assert not await discovery.has(POD_GROUP)


async def test_what_is_served_among_several_resources() -> None:
    server, clock = Server(), ManualClock()
    discovery = Discovery(server.fetch, clock)
    other = POD_GROUPS[0]
    server.answer = Unreachable("refused")
    assert await discovery.find_served([POD_GROUP, other]) == frozenset()
    server.answer = {"resources": [{"kind": "PodGroup"}]}
    assert await discovery.find_served([POD_GROUP]) == {POD_GROUP.api_version}
    server.answer = KubeNotFound(404, "NotFound", "404 page not found")
    assert await discovery.find_served([POD_GROUP, other]) == {POD_GROUP.api_version}
    assert sorted(server.asked[2:]) == [f"/apis/{one.api_version}" for one in (POD_GROUP, other)]
