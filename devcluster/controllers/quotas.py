"""The controller that keeps the status of each ResourceQuota equal to the usage of its namespace."""

from contextlib import suppress

from devcluster.errors import StatusError
from devcluster.formats.objects import Object, spec
from devcluster.formats.quantity import render
from devcluster.registry import quota
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Change
from devcluster.resources import PODS, QUOTAS


class QuotaController:
    """Counts a namespace again whenever one of its pods or quotas changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()

    async def run(self) -> None:
        while True:
            touched = self._namespace(await self._feed.get())
            # One count serves all changes that are queued.
            while not self._feed.empty():
                touched |= self._namespace(self._feed.get_nowait())
            for namespace in touched:
                self._recount(namespace)

    def _namespace(self, change: Change) -> set[str]:
        return {change.record.namespace} if change.record.resource in (PODS, QUOTAS) else set()

    def _recount(self, namespace: str) -> None:
        quotas = self._store.list_records(QUOTAS, namespace)
        if not quotas:
            return
        used = quota.usage(self._store, namespace)

        def change(found: Object) -> Object:
            hard = spec(found).get("hard") or {}
            counted = {name: render(used[name]) if name in used else "0" for name in hard}
            found["status"] = {"hard": hard, "used": counted}
            return found

        for record in quotas:
            with suppress(StatusError):
                self._registry.update(ObjectAddress(QUOTAS, namespace, record.name, "status"), change)
