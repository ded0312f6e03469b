"""Corrects pod templates that upstream accepts and Kubernetes does not."""

from collections.abc import Callable
from typing import Any, Final

from app.domain.plan import Manifest

# Upstream ignores these fields of a template's metadata. They are dropped, since the plan names the pods.
_UNUSED_NAMES: Final = ("name", "generateName", "namespace")


def current_templates(spec: Any) -> Any:
    """Return the posted spec with corrected templates. Values of another shape stay as they are, for the checks."""
    tasks = spec.get("tasks") if isinstance(spec, dict) else None
    if not isinstance(tasks, list):
        return spec
    return {**spec, "tasks": [_with(task, "template", _template) for task in tasks]}


def _template(template: Any) -> Any:
    named = _with(template, "metadata", _without_names)
    return _with(named, "spec", lambda spec: _with(spec, "containers", _containers))


def _without_names(metadata: Any) -> Any:
    if not isinstance(metadata, dict):
        return metadata
    return {key: value for key, value in metadata.items() if key not in _UNUSED_NAMES}


def _containers(containers: Any) -> Any:
    if not isinstance(containers, list):
        return containers
    return [_with(container, "resources", _with_limits) for container in containers]


def _with_limits(resources: Any) -> Any:
    """Return resources with a limit for each device that has a request only, as upstream's example has.

    Kubernetes requires limits of devices, equal to the requests.
    """
    requests = resources.get("requests") if isinstance(resources, dict) else None
    limits = resources.get("limits") or {} if isinstance(resources, dict) else None
    if not isinstance(requests, dict) or not isinstance(limits, dict):
        return resources
    missing: Manifest = {name: count for name, count in requests.items() if "/" in name and name not in limits}
    return {**resources, "limits": {**limits, **missing}} if missing else resources


def _with(owner: Any, field: str, change: Callable[[Any], Any]) -> Any:
    """Return the object with one field changed; a value that is no object, or lacks the field, is returned as it is."""
    return {**owner, field: change(owner[field])} if isinstance(owner, dict) and field in owner else owner
