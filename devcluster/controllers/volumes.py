"""The volume controller: binds claims to existing volumes, and protects both from deletion while they are used.

claim Pending ─▶ Bound ─▶ (volume gone) Lost
volume Available ─▶ Bound ─▶ (claim gone) Released
"""

import asyncio
from contextlib import suppress

from devcluster import clock
from devcluster.controllers.events import Recorder
from devcluster.controllers.volume_matching import best_volume, is_reserved_for, storage_class, why_unfit
from devcluster.errors import StatusError
from devcluster.formats.objects import Object, is_terminating, meta, phase, spec, uid
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Change, ChangeType, Record
from devcluster.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from devcluster.strategies.volumes import CLAIM_PROTECTION, VOLUME_PROTECTION

# Annotations that the real binder sets; clients and backup tools read them.
_COMPLETED = "pv.kubernetes.io/bind-completed"
_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_NO_CLASS = "no persistent volumes available for this claim and no storage class is set"
_LOST = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
_LOST_NAME = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"


class VolumeController:
    """Reconciles all volumes and claims after each change that concerns one of them."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._feed = registry.store.feed()
        self._recorder = Recorder(registry, "persistentvolume-controller")
        self._recorded: dict[str, str] = {}

    async def run(self) -> None:
        self._reconcile_all()
        while True:
            relevant = _matters(await self._feed.get())
            while not self._feed.empty():
                relevant |= _matters(self._feed.get_nowait())
            if relevant:
                self._reconcile_all()
            # Reconciling causes further changes in the feed. Yield, so that this loop does not starve the others.
            await asyncio.sleep(0)

    def _reconcile_all(self) -> None:
        """Reconcile all volumes and claims. There are few, and a change of one may settle another."""
        for record in self._store.list_records(PERSISTENT_VOLUMES):
            with suppress(StatusError):
                self._reconcile_volume(record)
        for record in self._store.list_records(PERSISTENT_VOLUME_CLAIMS):
            with suppress(StatusError):
                self._reconcile_claim(record)

    def _reconcile_volume(self, record: Record) -> None:
        self._set_phase(record, self._phase_of(record))
        current = self._store.get(PERSISTENT_VOLUMES, "", record.name)
        if current is not None and is_terminating(current.object) and phase(current.object) != "Bound":
            self._unprotect(current, VOLUME_PROTECTION)

    def _phase_of(self, volume: Record) -> str:
        named = spec(volume.object).get("claimRef")
        if not named or not named.get("uid"):
            return "Available"
        claim = self._store.by_uid(named["uid"])
        if claim is None:
            return "Released"
        bound = spec(claim.object).get("volumeName")
        # The volume is bound before its claim, so the claim may not name it yet.
        return "Bound" if bound in (None, "", volume.name) else "Available"

    def _set_phase(self, record: Record, wanted: str) -> None:
        if phase(record.object) == wanted:
            return

        def change(volume: Object) -> Object:
            volume["status"] = {"phase": wanted, "lastPhaseTransitionTime": clock.timestamp()}
            return volume

        self._registry.update(ObjectAddress(PERSISTENT_VOLUMES, "", record.name, "status"), change)

    def _reconcile_claim(self, record: Record) -> None:
        if is_terminating(record.object):
            if not self._is_used(record):
                self._unprotect(record, CLAIM_PROTECTION)
            return
        if _COMPLETED in (meta(record.object).get("annotations") or {}):
            self._check_bound(record)
        elif spec(record.object).get("volumeName"):
            self._bind_named(record)
        else:
            self._bind_best(record)

    def _is_used(self, claim: Record) -> bool:
        """Return whether a pod on a node mounts the claim. Other pods do not start while the claim is deleted."""
        return any(
            spec(pod.object).get("nodeName") and claim.name in claims_of(pod.object)
            for pod in self._store.iterate(PODS, claim.namespace)
        )

    def _check_bound(self, claim: Record) -> None:
        name = spec(claim.object).get("volumeName")
        volume = self._store.get(PERSISTENT_VOLUMES, "", name) if name else None
        if volume is None:
            self._mark_lost(claim, _LOST if name else _LOST_NAME)
        # A binding that was interrupted, or whose volume has lost its reference, is completed.
        elif not spec(volume.object).get("claimRef") or is_reserved_for(volume.object, claim.object):
            self._bind(claim, volume)
        else:
            self._mark_lost(
                claim, "Two claims are bound to the same volume, this one is bound incorrectly", "ClaimMisbound"
            )

    def _mark_lost(self, claim: Record, message: str, reason: str = "ClaimLost") -> None:
        if phase(claim.object) == "Lost":
            return
        self._write_status(claim, {"phase": "Lost"})
        self._recorder.record(claim, "Warning", reason, message)

    def _bind_named(self, claim: Record) -> None:
        name = spec(claim.object)["volumeName"]
        volume = self._store.get(PERSISTENT_VOLUMES, "", name)
        if volume is None:
            return
        if spec(volume.object).get("claimRef") and not is_reserved_for(volume.object, claim.object):
            self._record_once(claim, "Warning", "FailedBinding", f'volume "{name}" already bound to a different claim.')
            return
        wrong = why_unfit(volume.object, claim.object)
        if wrong:
            self._record_once(claim, "Warning", "VolumeMismatch", f'Cannot bind to requested volume "{name}": {wrong}')
            return
        self._bind(claim, volume)

    def _bind_best(self, claim: Record) -> None:
        volume = best_volume(claim.object, self._store.list_records(PERSISTENT_VOLUMES))
        if volume is not None:
            self._bind(claim, volume)
        elif wanted := storage_class(claim.object):
            self._record_once(
                claim, "Warning", "ProvisioningFailed", f'storageclass.storage.k8s.io "{wanted}" not found'
            )
        else:
            self._record_once(claim, "Normal", "FailedBinding", _NO_CLASS)

    def _record_once(self, claim: Record, kind: str, reason: str, message: str) -> None:
        """Record an Event about the claim, unless it is the one recorded last."""
        if self._recorded.get(uid(claim.object)) != message:
            self._recorded[uid(claim.object)] = message
            self._recorder.record(claim, kind, reason, message)

    def _bind(self, claim: Record, volume: Record) -> None:
        """Bind the PersistentVolume to the claim first, then the claim to it.

        So the volume of a bound claim always names the claim.
        """
        self._recorded.pop(uid(claim.object), None)
        # The annotation marks a reference that the controller made, and not the user.
        kept = bool(spec(volume.object).get("claimRef"))
        asked = bool(spec(claim.object).get("volumeName"))
        reference = _reference(claim)

        def reserve(obj: Object) -> Object:
            if obj["spec"].get("claimRef", {}).get("uid") != reference["uid"]:
                obj["spec"]["claimRef"] = reference
            if not kept:
                meta(obj).setdefault("annotations", {})[_BY_CONTROLLER] = "yes"
            return obj

        def name(obj: Object) -> Object:
            obj["spec"]["volumeName"] = volume.name
            found = meta(obj).setdefault("annotations", {})
            found[_COMPLETED] = "yes"
            if not asked:
                found[_BY_CONTROLLER] = "yes"
            return obj

        stored = self._registry.update(ObjectAddress(PERSISTENT_VOLUMES, "", volume.name), reserve)
        self._set_phase(stored, "Bound")
        self._registry.update(ObjectAddress(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name), name)
        found = spec(stored.object)
        wanted = {"phase": "Bound", "accessModes": found["accessModes"], "capacity": dict(found["capacity"])}
        self._write_status(claim, wanted)

    def _write_status(self, claim: Record, wanted: Object) -> None:
        def change(obj: Object) -> Object:
            obj["status"] = {**obj.get("status", {}), **wanted}
            return obj

        self._registry.update(ObjectAddress(PERSISTENT_VOLUME_CLAIMS, claim.namespace, claim.name, "status"), change)

    def _unprotect(self, record: Record, finalizer: str) -> None:
        def change(obj: Object) -> Object:
            meta(obj)["finalizers"] = [name for name in meta(obj).get("finalizers") or [] if name != finalizer]
            return obj

        self._recorded.pop(uid(record.object), None)
        self._registry.update(ObjectAddress(record.resource, record.namespace, record.name), change)


def claims_of(pod: Object) -> set[str]:
    """Return the names of the claims that a pod mounts."""
    found = (volume.get("persistentVolumeClaim") or {} for volume in spec(pod).get("volumes") or [])
    return {str(claim["claimName"]) for claim in found if claim.get("claimName")}


def _reference(claim: Record) -> Object:
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": uid(claim.object),
        "resourceVersion": str(claim.version),
    }


def _matters(change: Change) -> bool:
    """Return whether a change concerns volumes: of a volume or claim, or the deletion of a pod that mounts one."""
    resource = change.record.resource
    if resource is PODS:
        return change.type is ChangeType.DELETED and bool(claims_of(change.record.object))
    return resource in (PERSISTENT_VOLUMES, PERSISTENT_VOLUME_CLAIMS)
