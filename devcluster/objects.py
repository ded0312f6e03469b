"""Small readings of a Kubernetes object held as a plain dict."""

from typing import Any

from devcluster import clock

Object = dict[str, Any]


def meta(obj: Object) -> Object:
    """Return the object's metadata, making an empty one where there is none."""
    found: Object = obj.setdefault("metadata", {})
    return found


def labels(obj: Object) -> dict[str, str]:
    return obj.get("metadata", {}).get("labels") or {}


def uid(obj: Object) -> str:
    return str(obj.get("metadata", {}).get("uid", ""))


def spec(obj: Object) -> Object:
    return obj.get("spec") or {}


def status(obj: Object) -> Object:
    return obj.get("status") or {}


def phase(obj: Object) -> str:
    return str(status(obj).get("phase", ""))


def is_terminal(pod: Object) -> bool:
    return phase(pod) in ("Succeeded", "Failed")


def is_terminating(obj: Object) -> bool:
    return "deletionTimestamp" in obj.get("metadata", {})


def condition(obj: Object, kind: str) -> Object | None:
    for entry in status(obj).get("conditions") or []:
        if entry.get("type") == kind:
            found: Object = entry
            return found
    return None


def set_condition(obj: Object, kind: str, value: str, *, reason: str = "", message: str = "") -> None:
    """Write a status condition; its transition time moves only when its value does."""
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


def owner_uids(obj: Object) -> list[str]:
    return [str(ref.get("uid", "")) for ref in obj.get("metadata", {}).get("ownerReferences") or []]
