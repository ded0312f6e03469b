"""Pod templates as upstream's users write them, made into what a cluster takes."""

from collections.abc import Callable
from typing import Any, Final

from app.domain.plan import Manifest

# Upstream uses nothing of a template's metadata: what names an object is dropped, since pods are named here.
_UNUSED_NAMES: Final = ("name", "generateName", "namespace")


def current_templates(spec: Any) -> Any:
    """The posted spec with the templates of its tasks mended; whatever has another shape is left for the checks."""
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
    """Devices cannot be requested without a limit, which can only be the same number: upstream's example lacks it."""
    requests = resources.get("requests") if isinstance(resources, dict) else None
    limits = resources.get("limits") or {} if isinstance(resources, dict) else None
    if not isinstance(requests, dict) or not isinstance(limits, dict):
        return resources
    missing: Manifest = {name: count for name, count in requests.items() if "/" in name and name not in limits}
    return {**resources, "limits": {**limits, **missing}} if missing else resources


def _with(owner: Any, field: str, change: Callable[[Any], Any]) -> Any:
    """The object with one of its fields changed, if it is an object that has it."""
    return {**owner, field: change(owner[field])} if isinstance(owner, dict) and field in owner else owner
