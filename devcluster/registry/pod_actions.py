"""The actions on pods that are not updates: binding to a node, eviction and disruption."""

from devcluster.errors import StatusError, bad_request, conflict
from devcluster.formats.objects import Object, is_terminating, set_condition, spec
from devcluster.registry.deletion import DeleteOptions, check_preconditions, parse_options
from devcluster.registry.operations import ObjectAddress, Registry
from devcluster.resources import PODS


def bind(registry: Registry, address: ObjectAddress, node: str, *, expected_uid: str = "") -> None:
    """Assign a pod to a node.

    Raises:
        StatusError: the pod has a node or scheduling gates, is being deleted, or has another uid than expected.
    """

    def change(pod: Object) -> Object:
        if expected_uid and pod["metadata"]["uid"] != expected_uid:
            raise _refusal(address, "uid mismatch")
        if is_terminating(pod):
            raise _refusal(address, f"pod {address.name} is being deleted, cannot be assigned to a host")
        taken = spec(pod).get("nodeName")
        if taken:
            raise _refusal(address, f'pod {address.name} is already assigned to node "{taken}"')
        if spec(pod).get("schedulingGates"):
            raise _refusal(address, f"pod {address.name} has non-empty .spec.schedulingGates")
        pod["spec"]["nodeName"] = node
        set_condition(pod, "PodScheduled", "True")
        return pod

    registry.update(ObjectAddress(PODS, address.namespace, address.name, "binding"), change)


def _refusal(address: ObjectAddress, why: str) -> StatusError:
    return conflict("pods/binding", address.name, why)


def bind_from_body(registry: Registry, address: ObjectAddress, body: Object) -> None:
    target = body.get("target") or {}
    if target.get("kind", "Node") not in ("", "Node") or not target.get("name"):
        raise bad_request('target: Invalid value: a Binding needs target.kind "Node" and target.name')
    expected = (body.get("metadata") or {}).get("uid", "")
    bind(registry, address, str(target["name"]), expected_uid=expected)


def evict(registry: Registry, address: ObjectAddress, body: Object) -> None:
    """Delete a pod for a drain of its node, with the condition DisruptionTarget."""
    options = parse_options(body.get("deleteOptions"), {}, dry_run=False)
    disrupt(registry, address, "EvictionByEvictionAPI", "Eviction API: evicting", options)


def disrupt(
    registry: Registry, address: ObjectAddress, reason: str, message: str, options: DeleteOptions, *, phase: str = ""
) -> None:
    """Set the condition DisruptionTarget of a pod, then delete the pod."""

    def change(pod: Object) -> Object:
        set_condition(pod, "DisruptionTarget", "True", reason=reason, message=message)
        if phase:
            pod["status"]["phase"] = phase
        return pod

    pod = ObjectAddress(PODS, address.namespace, address.name)
    # A pod with another uid or version must not get the condition either.
    check_preconditions(PODS, registry.get(pod).object, options)
    registry.update(ObjectAddress(PODS, address.namespace, address.name, "status"), change)
    registry.delete(pod, options)
