"""Access to the common fields of Kubernetes objects, which are plain dicts."""

from collections.abc import Iterable, Mapping
from typing import Any

from devcluster import clock

Object = dict[str, Any]


def meta(obj: Object) -> Object:
    """Return the metadata of an object, which is created if it is absent."""
    found: Object = obj.setdefault("metadata", {})
    return found


def labels(obj: Mapping[str, Any]) -> dict[str, str]:
    return obj.get("metadata", {}).get("labels") or {}


def uid(obj: Mapping[str, Any]) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def spec(obj: Mapping[str, Any]) -> Object:
    return obj.get("spec") or {}


def status(obj: Mapping[str, Any]) -> Object:
    return obj.get("status") or {}


def phase(obj: Mapping[str, Any]) -> str:
    return str(status(obj).get("phase", ""))


def is_terminal(pod: Mapping[str, Any]) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether the Ready condition holds."""
    return (condition(pod, "Ready") or {}).get("status") == "True"


def container_named(containers: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((container for container in containers if container["name"] == name), None)


def is_terminating(obj: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in obj.get("metadata", {})


def condition(obj: Mapping[str, Any], kind: str) -> Object | None:
    for entry in status(obj).get("conditions") or []:
        if entry.get("type") == kind:
            found: Object = entry
            return found
    return None


def set_condition(obj: Object, kind: str, value: str, *, reason: str = "", message: str = "") -> None:
    """Set a condition of the status. Its transition time changes only if its value does."""
    conditions: list[Object] = obj.setdefault("status", {}).setdefault("conditions", [])
    old = condition(obj, kind)
    entry: Object = {"type": kind, "status": value, "lastTransitionTime": clock.timestamp()}
    if old is not None and old.get("status") == value and "lastTransitionTime" in old:
        entry["lastTransitionTime"] = old["lastTransitionTime"]
    if reason:
        entry["reason"] = reason
    if message:
        entry["message"] = message
    if old is None:
        conditions.append(entry)
    else:
        conditions[conditions.index(old)] = entry


def owner_uids(obj: Mapping[str, Any]) -> list[str]:
    return [str(ref.get("uid", "")) for ref in obj.get("metadata", {}).get("ownerReferences") or []]
