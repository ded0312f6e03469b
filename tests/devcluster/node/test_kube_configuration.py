"""The cache of ConfigMaps and Secrets of a node."""

from typing import Any, cast

import pytest

from devcluster.node.kube import configuration
from devcluster.node.kube.client import KubeClient
from devcluster.node.kube.configuration import CONFIG_MAPS, ObjectCache


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


class Server:
    """Answers with the number of the request, half a second after it was asked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.requests = 0

    async def get(self, _: str) -> dict[str, Any]:
        self.requests += 1
        answer = {"data": {"request": str(self.requests)}}
        self._clock.now += 0.5
        return answer


@pytest.mark.parametrize(("after", "max_age", "request_"), [(0.0, 0.6, "1"), (0.0, 0.4, "2"), (0.6, 1.0, "2")])
async def test_cached_objects_age_from_the_time_of_the_request(
    after: float, max_age: float, request_: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    monkeypatch.setattr(configuration, "time", clock)
    cache = ObjectCache(cast(KubeClient, Server(clock)))
    wanted = {(CONFIG_MAPS, "hosts")}
    await cache.fetch("default", wanted, max_age=max_age)
    clock.now += after
    found = await cache.fetch("default", wanted, max_age=max_age)
    assert found[CONFIG_MAPS, "hosts"] == {"data": {"request": request_}}
