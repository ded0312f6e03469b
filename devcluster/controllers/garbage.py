"""Garbage collection: of dependents whose owners are gone, and of pods whose node is gone."""

import asyncio
from contextlib import suppress

from devcluster.errors import StatusError
from devcluster.formats.objects import Object, is_terminal, is_terminating, meta, owner_uids, spec, uid
from devcluster.registry.deletion import FOREGROUND, ORPHAN, DeleteOptions
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.pod_actions import disrupt
from devcluster.registry.store import Change, ChangeType, Record
from devcluster.resources import NODES, PODS


class GarbageCollector:
    """Deletes each dependent once its last owner is gone, and carries out orphan and foreground deletion."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()

    async def run(self) -> None:
        # The feed has no changes from before the start, so all objects are checked once.
        for row in self._store.catalog.rows:
            for record in list(self._store.iterate(row)):
                self._reconcile(record)
        while True:
            self._handle_change(await self._feed.get())

    def _handle_change(self, change: Change) -> None:
        record = change.record
        if change.type is not ChangeType.DELETED:
            self._reconcile(record)
            return
        for dependent in self._store.dependents(uid(record.object)):
            self._collect(dependent)
        # An owner in foreground deletion may have waited for this dependent.
        for owner in owner_uids(record.object):
            found = self._store.by_uid(owner)
            if found is not None:
                self._reconcile(found)

    def _reconcile(self, record: Record) -> None:
        finalizers = meta(record.object).get("finalizers") or []
        if is_terminating(record.object) and ORPHAN in finalizers:
            self._orphan(record)
        elif is_terminating(record.object) and FOREGROUND in finalizers:
            self._delete_foreground(record)
        elif owner_uids(record.object):
            self._collect(record)

    def _collect(self, record: Record) -> None:
        """Delete the object if it has owners and none of them exists."""
        owners = owner_uids(record.object)
        # An object with several owners lives until the last one is gone.
        if not owners or any(self._store.by_uid(owner) is not None for owner in owners):
            return
        if not is_terminating(record.object):
            self._delete(record, "Background")

    def _delete(self, record: Record, propagation: str) -> None:
        options = DeleteOptions(uid=uid(record.object), propagation=propagation)
        with suppress(StatusError):
            self._registry.delete(_address(record), options)

    def _orphan(self, record: Record) -> None:
        own = uid(record.object)

        def disown(obj: Object) -> Object:
            references = meta(obj).get("ownerReferences") or []
            meta(obj)["ownerReferences"] = [entry for entry in references if entry.get("uid") != own]
            return obj

        with suppress(StatusError):
            for dependent in self._store.dependents(own):
                self._registry.update(_address(dependent), disown)
            self._drop_finalizer(record, ORPHAN)

    def _delete_foreground(self, record: Record) -> None:
        own = uid(record.object)
        blocking = False
        for dependent in self._store.dependents(own):
            references = meta(dependent.object).get("ownerReferences") or []
            blocking |= any(entry.get("uid") == own and entry.get("blockOwnerDeletion") for entry in references)
            if not is_terminating(dependent.object):
                # Foreground again, so that the dependents of the dependent are deleted before it.
                self._delete(dependent, "Foreground")
        # Foreground deletion waits only for dependents with blockOwnerDeletion.
        if not (blocking and self._store.dependents(own)):
            with suppress(StatusError):
                self._drop_finalizer(record, FOREGROUND)

    def _drop_finalizer(self, record: Record, name: str) -> None:
        def drop(obj: Object) -> Object:
            meta(obj)["finalizers"] = [entry for entry in meta(obj).get("finalizers") or [] if entry != name]
            return obj

        self._registry.update(_address(record), drop)


class OrphanPods:
    """Fails and removes pods whose node has not existed for the grace period."""

    def __init__(self, registry: Registry, grace_seconds: float) -> None:
        self._registry = registry
        self._grace = grace_seconds
        self._missing_since: dict[str, float] = {}

    async def run(self) -> None:
        while True:
            self.sweep(asyncio.get_running_loop().time())
            # A pod outlives the grace period by at most half of it.
            await asyncio.sleep(min(self._grace / 2, 5.0))

    def sweep(self, now: float) -> None:
        store = self._registry.store
        bound = [record for record in store.iterate(PODS) if spec(record.object).get("nodeName")]
        missing = {str(spec(record.object)["nodeName"]) for record in bound}
        missing = {name for name in missing if store.get(NODES, "", name) is None}
        # A node that comes back starts a new grace period.
        self._missing_since = {name: self._missing_since.get(name, now) for name in missing}
        for record in bound:
            since = self._missing_since.get(spec(record.object)["nodeName"])
            if since is not None and now - since >= self._grace:
                with suppress(StatusError):
                    self._remove(record)

    def _remove(self, record: Record) -> None:
        address = ObjectAddress(PODS, record.namespace, record.name)
        # No kubelet is left that could end the containers and confirm that.
        options = DeleteOptions(grace=0, uid=uid(record.object))
        if is_terminal(record.object):
            self._registry.delete(address, options)
            return
        disrupt(self._registry, address, "DeletionByPodGC", "PodGC: node no longer exists", options, phase="Failed")


def _address(record: Record) -> ObjectAddress:
    return ObjectAddress(record.resource, record.namespace, record.name)
