"""The strategy of pods: defaults, validation, and the few fields that may change."""

import msgspec
from typing_extensions import override

from devcluster.errors import FieldCause, forbidden_field
from devcluster.formats.objects import Object, spec
from devcluster.formats.quantity import parse, pod_amounts, qos_class, render_canonical
from devcluster.strategies.base import Strategy
from devcluster.strategies.pod_spec import validate_spec

_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MUTABLE = ("activeDeadlineSeconds", "schedulingGates", "tolerations", "terminationGracePeriodSeconds")


_GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}


class PodStrategy(Strategy):
    split_status = True

    @override
    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        # The scheduler ignores such a pod, so nobody else would write the condition.
        if spec(obj).get("schedulingGates"):
            obj["status"] = {"conditions": [dict(_GATED)]}

    @override
    def default(self, obj: Object) -> None:
        _default_spec(obj.setdefault("spec", {}))
        if not spec(obj).get("schedulingGates"):
            obj["spec"].pop("schedulingGates", None)
        found = obj.setdefault("status", {})
        found.setdefault("phase", "Pending")
        found.setdefault("qosClass", qos_class(obj))

    @override
    def validate(self, obj: Object) -> list[FieldCause]:
        return validate_spec(spec(obj))

    @override
    def warnings(self, obj: Object) -> list[str]:
        return [
            f"spec.{field}[{index}].resources.{kind}[{name}]: "
            f'fractional byte value "{amount}" is invalid, must be an integer'
            for field in ("initContainers", "containers")
            for index, container in enumerate(spec(obj).get(field) or [])
            for kind in ("limits", "requests")
            for name, amount in ((container.get("resources") or {}).get(kind) or {}).items()
            if name in ("memory", "ephemeral-storage") and parse(amount) % 1
        ]

    @override
    def validate_update(self, new: Object, old: Object) -> list[FieldCause]:
        causes = _gates(new, old)
        before, after = _comparable(spec(old)), _comparable(spec(new))
        if spec(old).get("schedulingGates"):
            # Whoever opens the gates may narrow the choice of nodes first.
            causes += _selector(after.pop("nodeSelector", {}), before.pop("nodeSelector", {}))
        if before != after or not _only_additions(new, old):
            causes.append(forbidden_field("spec", _IMMUTABLE))
        return causes

    @override
    def prepare_update(self, new: Object, old: Object, subresource: str) -> None:
        super().prepare_update(new, old, subresource)
        if subresource == "status":
            new.setdefault("status", {}).setdefault("qosClass", qos_class(new))


def _default_spec(found: Object) -> None:
    default_template_spec(found)
    found.setdefault("enableServiceLinks", True)
    found.setdefault("priority", 0)
    found.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if "serviceAccountName" not in found:
        found["serviceAccountName"] = found.get("serviceAccount") or "default"
    # The deprecated field repeats the current one.
    found["serviceAccount"] = found["serviceAccountName"]


def default_template_spec(found: Object) -> None:
    """Set the defaults that a pod spec has in pods and in templates alike."""
    found.setdefault("restartPolicy", "Always")
    found.setdefault("terminationGracePeriodSeconds", 30)
    found.setdefault("dnsPolicy", "ClusterFirst")
    found.setdefault("securityContext", {})
    found.setdefault("schedulerName", "default-scheduler")
    for container in [*(found.get("initContainers") or []), *(found.get("containers") or [])]:
        _default_container(container)
    if (found.get("resources") or {}).get("limits"):
        _default_requests_of_pod(found)
    for volume in found.get("volumes") or []:
        _default_volume(volume)


def _default_requests_of_pod(found: Object) -> None:
    """Complete the requests of the pod as a whole: what its containers request, otherwise the limit."""
    whole = found["resources"]
    of_containers = pod_amounts({"spec": {field: found.get(field) for field in ("initContainers", "containers")}})
    shared = {name: render_canonical(name, of_containers[name]) for name in ("cpu", "memory") if name in of_containers}
    whole["requests"] = {**whole["limits"], **shared, **(whole.get("requests") or {})}


def _default_container(container: Object) -> None:
    image = container.get("image", "")
    tag = image.rpartition("/")[2].partition(":")[2]
    # The image of such a tag may change.
    always = tag in ("", "latest") and "@" not in image
    container.setdefault("imagePullPolicy", "Always" if always else "IfNotPresent")
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    resources = container.setdefault("resources", {})
    if resources.get("limits"):
        # A limit alone is also the request.
        resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
    for port in container.get("ports") or []:
        port.setdefault("protocol", "TCP")
    for variable in container.get("env") or []:
        field = (variable.get("valueFrom") or {}).get("fieldRef")
        if field is not None:
            field.setdefault("apiVersion", "v1")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            _default_probe(container[probe])


def _default_probe(probe: Object) -> None:
    for name, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        probe.setdefault(name, value)
    if "httpGet" in probe:
        probe["httpGet"].setdefault("path", "/")
        probe["httpGet"].setdefault("scheme", "HTTP")


def _default_volume(volume: Object) -> None:
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            # 0644 as a decimal number.
            volume[source].setdefault("defaultMode", 420)
    if "hostPath" in volume:
        volume["hostPath"].setdefault("type", "")
    # A volume without a source is an empty directory.
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}


def _gates(new: Object, old: Object) -> list[FieldCause]:
    present = [gate["name"] for gate in spec(old).get("schedulingGates") or []]
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate['name']}'",
        )
        for index, gate in enumerate(spec(new).get("schedulingGates") or [])
        if gate["name"] not in present
    ]


def _selector(new: dict[str, str], old: dict[str, str]) -> list[FieldCause]:
    if old.items() <= new.items():
        return []
    shown = msgspec.json.encode(new).decode()
    why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    return [FieldCause("FieldValueInvalid", f"Invalid value: {shown}: {why}", "spec.nodeSelector")]


def _comparable(found: Object) -> Object:
    """Return the spec without the fields that may change."""
    kept = {name: value for name, value in found.items() if name not in _MUTABLE}
    for group in ("containers", "initContainers"):
        if group in kept:
            kept[group] = [{name: v for name, v in item.items() if name != "image"} for item in kept[group]]
    return kept


def _only_additions(new: Object, old: Object) -> bool:
    tolerations = spec(new).get("tolerations") or []
    if any(entry not in tolerations for entry in spec(old).get("tolerations") or []):
        return False
    before = spec(old).get("terminationGracePeriodSeconds")
    after = spec(new).get("terminationGracePeriodSeconds")
    return before == after or (before is not None and before < 0 and after == 1)
