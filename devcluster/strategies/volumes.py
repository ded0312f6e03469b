"""The strategies of persistent volumes and claims: defaults, validation, and the fields that a binding fixes."""

from collections.abc import Iterator
from decimal import Decimal

from typing_extensions import override

from devcluster.errors import FieldCause, forbidden_field, invalid_value, required, unsupported
from devcluster.formats import names, quantity
from devcluster.formats.objects import Object, meta, spec, status
from devcluster.formats.schema import TYPES
from devcluster.strategies.base import Strategy

VOLUME_PROTECTION = "kubernetes.io/pv-protection"
CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
_RECLAIM_POLICIES = ("Delete", "Recycle", "Retain")
_VOLUME_MODES = ("Block", "Filesystem")
_NO_SOURCE = frozenset({
    "accessModes", "capacity", "claimRef", "mountOptions", "nodeAffinity", "persistentVolumeReclaimPolicy",
    "storageClassName", "volumeAttributesClassName", "volumeMode",
})  # fmt: skip
# Kubernetes checks csi last, so beside another source, csi is the one too many.
_SOURCES = (*sorted(TYPES["PersistentVolumeSpec"].keys() - _NO_SOURCE - {"csi"}), "csi")
_FROZEN_CLAIM = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)
_FROZEN_SOURCE = "spec.persistentvolumesource is immutable after creation"


class PersistentVolumeStrategy(Strategy):
    split_status = True

    @override
    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        # The finalizer keeps a volume that a claim uses, until a controller removes it.
        _protect(obj, VOLUME_PROTECTION)
        obj["status"] = {"phase": "Pending"}

    @override
    def default(self, obj: Object) -> None:
        found = obj.setdefault("spec", {})
        found.setdefault("persistentVolumeReclaimPolicy", "Retain")
        found.setdefault("volumeMode", "Filesystem")
        if "hostPath" in found:
            found["hostPath"].setdefault("type", "")

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        return list(_volume_causes(spec(obj)))

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        causes = self.validate(new)
        after, before = spec(new), spec(old)
        if any(after.get(source) != before.get(source) for source in _SOURCES):
            causes.append(forbidden_field("spec.persistentvolumesource", _FROZEN_SOURCE))
        if after.get("volumeMode") != before.get("volumeMode"):
            causes.append(invalid_value("volumeMode", after.get("volumeMode"), "field is immutable"))
        return causes


def _volume_causes(found: Object) -> Iterator[FieldCause]:
    modes = found.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes")
    yield from _mode_causes(modes)
    capacity = found.get("capacity")
    if not capacity:
        yield required("spec.capacity")
    if not capacity or set(capacity) != {"storage"}:
        shown = "null" if capacity is None else _compact(capacity)
        yield FieldCause(
            "FieldValueNotSupported", f'Unsupported value: {shown}: supported values: "storage"', "spec.capacity"
        )
    elif quantity.parse(capacity["storage"]) <= 0:
        yield invalid_value("spec.capacity[storage]", str(capacity["storage"]), "must be greater than zero")
    policy = found.get("persistentVolumeReclaimPolicy", "Retain")
    if policy not in _RECLAIM_POLICIES:
        yield unsupported("spec.persistentVolumeReclaimPolicy", policy, _RECLAIM_POLICIES)
    yield from _source_causes(found)
    if found.get("volumeMode", "Filesystem") not in _VOLUME_MODES:
        yield unsupported("spec.volumeMode", found["volumeMode"], _VOLUME_MODES)


def _source_causes(found: Object) -> Iterator[FieldCause]:
    given = [source for source in _SOURCES if source in found]
    if not given:
        yield required("spec", "must specify a volume type")
        return
    first, *others = given
    if first == "hostPath" and ".." in str(found["hostPath"].get("path", "")).split("/"):
        yield invalid_value("spec.hostPath.path", found["hostPath"]["path"], "must not contain '..'")
    if first == "csi":
        for field in ("driver", "volumeHandle"):
            if not found["csi"].get(field):
                yield required(f"spec.csi.{field}")
    for other in others:
        yield forbidden_field(f"spec.{other}", "may not specify more than 1 volume type")


class PersistentVolumeClaimStrategy(Strategy):
    split_status = True

    @override
    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        _protect(obj, CLAIM_PROTECTION)
        obj["status"] = {"phase": "Pending"}

    @override
    def default(self, obj: Object) -> None:
        found = obj.setdefault("spec", {})
        found.setdefault("volumeMode", "Filesystem")
        found.setdefault("resources", {})

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        return list(_claim_causes(spec(obj)))

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        causes = self.validate(new)
        if _frozen_part(new, old) != _frozen_part(old, old):
            causes.append(forbidden_field("spec", _FROZEN_CLAIM))
            return causes
        # A request that a volume could not fulfil may be lowered again, but no volume shrinks.
        held = (status(old).get("capacity") or {}).get("storage")
        if held is not None and _requested_size(new) < min(quantity.parse(held), _requested_size(old)):
            where = "spec.resources.requests.storage"
            causes.append(forbidden_field(where, "field can not be less than status.capacity"))
        return causes


def _claim_causes(found: Object) -> Iterator[FieldCause]:
    modes = found.get("accessModes") or []
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    yield from _mode_causes(modes)
    storage = ((found.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    elif quantity.parse(storage) <= 0:
        yield invalid_value("spec.resources[storage]", str(storage), "must be greater than zero")
    storage_class = found.get("storageClassName")
    wrong = names.dns_subdomain(storage_class) if storage_class else None
    if wrong:
        yield invalid_value("spec.storageClassName", storage_class, wrong)
    if found.get("volumeMode", "Filesystem") not in _VOLUME_MODES:
        yield unsupported("spec.volumeMode", found["volumeMode"], _VOLUME_MODES)


def _mode_causes(modes: list[str]) -> Iterator[FieldCause]:
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield unsupported("spec.accessModes", mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        yield forbidden_field("spec.accessModes", "may not use ReadWriteOncePod with other access modes")


def _frozen_part(claim: Object, before: Object) -> Object:
    """Return the part of the spec of a claim that an update must not change. The volume name may be set once."""
    kept = dict(spec(claim))
    if status(before).get("phase") == "Bound":
        kept["resources"] = {name: value for name, value in kept.get("resources", {}).items() if name != "requests"}
    if not spec(before).get("volumeName"):
        kept.pop("volumeName", None)
    return kept


def _requested_size(claim: Object) -> Decimal:
    return quantity.parse(spec(claim)["resources"]["requests"]["storage"])


def _protect(obj: Object, finalizer: str) -> None:
    finalizers = meta(obj).setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _compact(value: Object) -> str:
    return "{" + ",".join(f'"{key}":"{value[key]}"' for key in sorted(value)) + "}"
