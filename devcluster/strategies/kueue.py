"""The strategies of Kueue's kinds: what its custom resource definitions and its webhooks default and refuse."""

import re
from collections.abc import Iterator

import msgspec
from typing_extensions import override

from devcluster.errors import (
    FieldCause,
    StatusError,
    denied,
    duplicate_item,
    invalid_value,
    required,
    too_many,
    unsupported,
)
from devcluster.formats import quantity
from devcluster.formats.objects import Object, condition, spec, status
from devcluster.strategies.simple import CustomStrategy

_LABEL = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
MAX_POD_SETS = 18
_STATUSES = ("True", "False", "Unknown")
_STOP_POLICIES = ("None", "Hold", "HoldAndDrain")
_FIELDS_OF_CONDITIONS = ("lastTransitionTime", "message", "reason", "status", "type")
_DEFAULTS_OF_CLUSTER_QUEUE = {
    "flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "TryNextFlavor"},
    "preemption": {
        "borrowWithinCohort": {"policy": "Never"},
        "reclaimWithinCohort": "Never",
        "withinClusterQueue": "Never",
    },
    "queueingStrategy": "BestEffortFIFO",
    "stopPolicy": "None",
}


def holds_quota(workload: Object) -> bool:
    return (condition(workload, "QuotaReserved") or {}).get("status") == "True"


class WorkloadStrategy(CustomStrategy):
    @override
    def default(self, obj: Object) -> None:
        found = obj.setdefault("spec", {})
        found.setdefault("active", True)
        for pod_set in found.get("podSets") or []:
            pod_set.setdefault("name", "main")
            pod_set.setdefault("count", 1)

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        found = spec(obj)
        pod_sets = found.get("podSets") or []
        causes = list(_matching("spec.queueName", found.get("queueName"), _SUBDOMAIN))
        if not pod_sets:
            causes.append(invalid_value("spec.podSets", 0, "spec.podSets in body should have at least 1 items"))
        if len(pod_sets) > MAX_POD_SETS:
            causes.append(too_many("spec.podSets", len(pod_sets), MAX_POD_SETS))
        for index, pod_set in enumerate(pod_sets):
            causes += _pod_set(f"spec.podSets[{index}]", pod_set)
            if pod_set["name"] in [other["name"] for other in pod_sets[:index]]:
                causes.append(duplicate_item(f"spec.podSets[{index}]", {"name": pod_set["name"]}))
        if found.get("priorityClassRef") and found.get("priority") is None:
            why = "Invalid value: priority should not be nil when priorityClassRef is set"
            causes.append(FieldCause("FieldValueInvalid", why, "spec"))
        return causes

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        causes = self.validate(new)
        if causes or not (holds_quota(new) and holds_quota(old)):
            return causes
        for field in ("queueName", "priorityClassRef"):
            if spec(new).get(field) != spec(old).get(field):
                why = f"Invalid value: {field} is immutable while workload quota reserved"
                causes.append(FieldCause("FieldValueInvalid", why, "<nil>"))
        before, after = spec(old)["podSets"], spec(new)["podSets"]
        if not causes and len(before) != len(after):
            why = "Invalid value: podSetAssignments must have the same number of podSets as the spec"
            causes.append(FieldCause("FieldValueInvalid", why, "<nil>"))
        for index, pair in enumerate(zip(before, after, strict=False)):
            if not causes and not _is_same_or_smaller(*pair):
                raise _refusal(f"spec.podSets.{index}", f"Invalid value: {_json(pair[1])}: field is immutable")
        return causes

    @override
    def validate_status(self, new: Object, old: Object) -> list[FieldCause]:
        causes = [
            cause
            for index, entry in enumerate(status(new).get("conditions") or [])
            for cause in _condition(f"status.conditions[{index}]", entry)
        ]
        if causes:
            return causes
        if holds_quota(new) and not status(new).get("admission"):
            why = "Required value: must be set while the QuotaReserved condition is true"
            raise _refusal("status.admission", why)
        _check_reclaimable(new, old)
        return []


def _pod_set(path: str, pod_set: Object) -> Iterator[FieldCause]:
    yield from _matching(f"{path}.name", pod_set["name"], _LABEL)
    if pod_set["count"] < 0:
        why = f"{path}.count in body should be greater than or equal to 0"
        yield invalid_value(f"{path}.count", pod_set["count"], why)
    if not pod_set.get("template"):
        yield required(f"{path}.template")


def _matching(path: str, value: str | None, pattern: str) -> Iterator[FieldCause]:
    if value is not None and not re.fullmatch(pattern, value):
        yield invalid_value(path, value, f"{path} in body should match '{pattern}'")


def _is_same_or_smaller(old: Object, new: Object) -> bool:
    """Return whether a pod set has changed at most by a smaller count, which Kueue accepts while quota is reserved."""
    return old | {"count": 0} == new | {"count": 0} and new["count"] <= old["count"]


def _condition(path: str, entry: Object) -> Iterator[FieldCause]:
    for field in _FIELDS_OF_CONDITIONS:
        if field not in entry:
            yield required(f"{path}.{field}")
    if entry.get("status", "True") not in _STATUSES:
        yield unsupported(f"{path}.status", entry["status"], _STATUSES)


def _check_reclaimable(new: Object, old: Object) -> None:
    """Check the pods that a workload does not need any more.

    Raises:
        StatusError: their pod set does not exist or has fewer pods, or the quota is reserved and the number shrinks.
    """
    counts = {pod_set["name"]: pod_set["count"] for pod_set in spec(new)["podSets"]}
    before = {entry["name"]: entry["count"] for entry in status(old).get("reclaimablePods") or []}
    for entry in status(new).get("reclaimablePods") or []:
        name, count = entry["name"], entry["count"]
        path = f"status.reclaimablePods[{name}]"
        if name not in counts:
            listed = ", ".join(f'"{known}"' for known in counts)
            raise _refusal(f"{path}.name", f'Unsupported value: "{name}": supported values: {listed}')
        if count > counts[name]:
            raise _refusal(f"{path}.count", f"Invalid value: {count}: should be less or equal to {counts[name]}")
        if holds_quota(new) and holds_quota(old) and count < before.get(name, 0):
            raise _refusal(f"{path}.count", f"Invalid value: {count}: cannot be less than {before[name]}")


def _refusal(path: str, why: str) -> StatusError:
    return denied("vworkload.kb.io", FieldCause("FieldValueInvalid", why, path))


def _json(value: Object) -> str:
    return msgspec.json.encode(value).decode()


class LocalQueueStrategy(CustomStrategy):
    @override
    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {}).setdefault("stopPolicy", "None")

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        if "clusterQueue" not in spec(obj):
            return [required("spec.clusterQueue"), *_stop_policy(obj)]
        return [*_matching("spec.clusterQueue", spec(obj)["clusterQueue"], _SUBDOMAIN), *_stop_policy(obj)]

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        name = spec(new).get("clusterQueue")
        if name != spec(old).get("clusterQueue"):
            return [invalid_value("spec.clusterQueue", name, "field is immutable")]
        return self.validate(new)


class ClusterQueueStrategy(CustomStrategy):
    @override
    def default(self, obj: Object) -> None:
        found = obj.setdefault("spec", {})
        for field, value in _DEFAULTS_OF_CLUSTER_QUEUE.items():
            found[field] = {**value, **(found.get(field) or {})} if isinstance(value, dict) else found.get(field, value)

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        return [*_stop_policy(obj), *_resource_groups(obj, "clusterqueue")]

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        return self.validate(new)


class CohortStrategy(CustomStrategy):
    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        causes = [*_matching("spec.parentName", spec(obj).get("parentName"), _SUBDOMAIN)]
        return [*causes, *_resource_groups(obj, "cohort")]

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        return self.validate(new)


def _resource_groups(obj: Object, kind: str) -> Iterator[FieldCause]:
    for at, group in enumerate(spec(obj).get("resourceGroups") or []):
        for index, flavor in enumerate(group.get("flavors") or []):
            path = f"spec.resourceGroups[{at}].flavors[{index}]"
            yield from _matching(f"{path}.name", flavor.get("name", ""), _SUBDOMAIN)
            for number, quota in enumerate(flavor.get("resources") or []):
                _check_quota(f"{path}.resources[{number}].nominalQuota", quota.get("nominalQuota"), kind)


def _stop_policy(obj: Object) -> Iterator[FieldCause]:
    policy = spec(obj)["stopPolicy"]
    if policy not in _STOP_POLICIES:
        yield unsupported("spec.stopPolicy", policy, _STOP_POLICIES)


def _check_quota(path: str, value: str | float | None, kind: str) -> None:
    try:
        amount = quantity.parse(value if value is not None else "")
    except ValueError as error:
        why = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise StatusError(400, "", f'admission webhook "m{kind}.kb.io" denied the request: {why}') from error
    if amount < 0:
        raise denied(f"v{kind}.kb.io", invalid_value(path, str(value), "must be greater than or equal to 0"))


class ResourceFlavorStrategy(CustomStrategy):
    @override
    def default(self, obj: Object) -> None:
        obj.setdefault("spec", {})


class WorkloadPriorityClassStrategy(CustomStrategy):
    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        return [] if "value" in obj else [required("value")]
