"""What a watch sends when a change and its timer come at the same time."""

import json

import pytest

from devcluster.registry.operations import ObjectAddress
from devcluster.registry.store import ObjectStore
from devcluster.resources import Catalog
from devcluster.server import watches
from devcluster.server.watches import WatchStream


async def test_no_bookmark_is_newer_than_a_change_that_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that continues from the bookmark would miss the change."""
    store = ObjectStore(Catalog(pod_groups=False), None, 100)
    resource = store.catalog.find("", "v1", "configmaps")
    assert resource is not None

    async def both(_: int) -> None:
        store.put(resource, "team", "late", {"metadata": {"name": "late", "namespace": "team"}})
        raise TimeoutError

    monkeypatch.setattr(store.logs[resource.key], "wait_beyond", both)
    request = watches.parse(ObjectAddress(resource, "team"), {"allowWatchBookmarks": "true"}, tables=False)
    lines = WatchStream(store, request, bookmark_seconds=60).lines()
    try:
        assert json.loads(await anext(lines))["type"] == "ADDED"
    finally:
        await lines.aclose()  # type: ignore[attr-defined]
        store.close()
