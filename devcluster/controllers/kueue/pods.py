"""The controller that lets go of the pods that Kueue's webhook has gated.

Such a pod gets no Workload, so it stays gated. Its finalizer goes once it has ended or nothing runs of it.
"""

from contextlib import suppress

from devcluster.errors import StatusError
from devcluster.formats.objects import Object, is_terminal, is_terminating, meta
from devcluster.registry.kueue_pods import FINALIZER
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import ChangeType, Record
from devcluster.resources import PODS


class GatedPodController:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()

    async def run(self) -> None:
        for record in self._store.list_records(PODS):
            self._release(record)
        while True:
            change = await self._feed.get()
            if change.record.resource is PODS and change.type is not ChangeType.DELETED:
                self._release(change.record)

    def _release(self, record: Record) -> None:
        if not _is_held(record.object):
            return

        def change(pod: Object) -> Object:
            if _is_held(pod):
                meta(pod)["finalizers"].remove(FINALIZER)
            return pod

        with suppress(StatusError):
            self._registry.update(ObjectAddress(PODS, record.namespace, record.name), change)


def _is_held(pod: Object) -> bool:
    """Return whether nothing but the finalizer keeps a pod that has ended or is being deleted."""
    over = is_terminal(pod) or (is_terminating(pod) and not meta(pod).get("deletionGracePeriodSeconds"))
    return over and FINALIZER in (meta(pod).get("finalizers") or [])
