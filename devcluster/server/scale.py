"""The scale subresource, which reads and sets the number of replicas."""

from devcluster.errors import bad_request
from devcluster.formats.objects import Object, meta, spec, status
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.registry.store import Record

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def render(record: Record) -> Object:
    metadata = meta(record.object)
    size = spec(record.object).get("replicas", 1)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        # As the JSON encoding of Go, which omits 0 here.
        "spec": {"replicas": size} if size else {},
        "status": {
            "replicas": status(record.object).get("replicas", 0),
            "selector": _selector(spec(record.object).get("selector") or {}),
        },
    }


def _selector(found: Object) -> str:
    """Format a label selector as a query parameter."""
    terms = [f"{key}={value}" for key, value in (found.get("matchLabels") or {}).items()]
    for entry in found.get("matchExpressions") or []:
        values = ",".join(sorted(entry.get("values") or []))
        words = {"In": f"{entry['key']} in ({values})", "NotIn": f"{entry['key']} notin ({values})"}
        words |= {"Exists": entry["key"], "DoesNotExist": f"!{entry['key']}"}
        terms.append(words[entry["operator"]])
    return ",".join(sorted(terms))


def write(registry: Registry, address: ObjectAddress, wanted: Object, *, dry_run: bool) -> Record:
    """Set the number of replicas of a Scale. If it has a resourceVersion, that must be the version of the object."""
    replicas = spec(wanted).get("replicas", 0)
    if not isinstance(replicas, int):
        raise bad_request("Scale: spec.replicas must be a whole number")
    version = meta(wanted).get("resourceVersion")

    def change(obj: Object) -> Object:
        obj["spec"]["replicas"] = replicas
        if version:
            obj["metadata"]["resourceVersion"] = version
        return obj

    whole = ObjectAddress(address.resource, address.namespace, address.name)
    return registry.update(whole, change, dry_run=dry_run)
