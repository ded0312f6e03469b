"""The columns of all kinds but pods. Most cells are single fields."""

from collections.abc import Callable, Iterable
from datetime import datetime

from devcluster.columns.base import AGE, NAME, NONE, UNKNOWN, Column, age, join, selector_text, text
from devcluster.formats.objects import Object, condition, is_terminating, labels, meta, phase, spec, status

# kubectl shows the modes in this order.
_ACCESS_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_ROLE = "node-role.kubernetes.io/"


def _node_status(node: Object) -> str:
    ready = condition(node, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"]
    if spec(node).get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _node_roles(node: Object) -> str:
    roles = {key.removeprefix(_ROLE) for key in labels(node) if key.startswith(_ROLE)}
    return join(sorted(roles | {labels(node).get("kubernetes.io/role", "")} - {""}))


def _node_address(kind: str) -> Callable[[Object], str]:
    def address(node: Object) -> str:
        found = (entry["address"] for entry in status(node).get("addresses") or [] if entry.get("type") == kind)
        return next(found, NONE)

    return address


def _node_info(field: str) -> Callable[[Object], str]:
    return lambda node: str((status(node).get("nodeInfo") or {}).get(field) or UNKNOWN)


def _cluster_ip(service: Object) -> str:
    return str(spec(service).get("clusterIP") or NONE)


def _external_ip(service: Object) -> str:
    if spec(service).get("type") == "ExternalName":
        return str(spec(service).get("externalName") or NONE)
    return join(spec(service).get("externalIPs") or [], "<pending>" if _awaits_address(service) else NONE)


def _awaits_address(service: Object) -> bool:
    return spec(service).get("type") == "LoadBalancer"


def _ports(service: Object) -> str:
    return join(
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in spec(service).get("ports") or []
    )


def _count(*fields: str) -> Callable[[Object], int]:
    return lambda obj: sum(len(obj.get(field) or ()) for field in fields)


def _last_seen(event: Object, now: datetime) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    return age(series or event.get("lastTimestamp") or event.get("firstTimestamp") or event.get("eventTime"), now)


def _first_seen(event: Object, now: datetime) -> str:
    return age(event.get("firstTimestamp") or event.get("eventTime"), now)


def _event_object(event: Object) -> str:
    about = event.get("involvedObject") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(event: Object) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else str(component)


def _quota(*, limits: bool) -> Callable[[Object], str]:
    def used(quota: Object) -> str:
        hard, spent = status(quota).get("hard") or {}, status(quota).get("used") or {}
        names = sorted(name for name in hard if name.startswith("limits.") is limits)
        return ", ".join(f"{name}: {spent.get(name, 0)}/{hard[name]}" for name in names)

    return used


def _modes(modes: Iterable[str]) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def _volume_phase(obj: Object) -> str:
    return "Terminating" if is_terminating(obj) else phase(obj)


def _volume_claim(volume: Object) -> str:
    claim = spec(volume).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _once_bound(read: Callable[[Object], str]) -> Callable[[Object], str]:
    """Make a cell that stays empty until the claim is bound to a volume."""
    return lambda claim: read(status(claim)) if spec(claim).get("volumeName") else ""


def _storage_class(obj: Object) -> str:
    return str(spec(obj).get("storageClassName") or "")


def _attributes_class(obj: Object) -> str:
    return str(spec(obj).get("volumeAttributesClassName") or "<unset>")


def _set_ready(found: Object) -> str:
    return f"{status(found).get('readyReplicas', 0)}/{spec(found).get('replicas', 0)}"


def _template(field: str) -> Callable[[Object], str]:
    def words(found: Object) -> str:
        template = spec(spec(found).get("template") or {})
        return ",".join(container.get(field, "") for container in template.get("containers") or [])

    return words


def _controller(obj: Object) -> str:
    owner = next((ref for ref in meta(obj).get("ownerReferences") or [] if ref.get("controller")), None)
    if owner is None:
        return NONE
    group = owner.get("apiVersion", "").rpartition("/")[0]
    return f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Namespace": (NAME, Column("Status", text(phase)), AGE),
    "Node": (
        NAME,
        Column("Status", text(_node_status)),
        Column("Roles", text(_node_roles)),
        AGE,
        Column("Version", text(lambda node: str((status(node).get("nodeInfo") or {}).get("kubeletVersion", "")))),
        Column("Internal-IP", text(_node_address("InternalIP")), wide=True),
        Column("External-IP", text(_node_address("ExternalIP")), wide=True),
        Column("OS-Image", text(_node_info("osImage")), wide=True),
        Column("Kernel-Version", text(_node_info("kernelVersion")), wide=True),
        Column("Container-Runtime", text(_node_info("containerRuntimeVersion")), wide=True),
    ),
    "Service": (
        NAME,
        Column("Type", text(lambda service: str(spec(service).get("type", "")))),
        Column("Cluster-IP", text(_cluster_ip)),
        Column("External-IP", text(_external_ip)),
        Column("Port(s)", text(_ports)),
        AGE,
        Column("Selector", text(lambda service: selector_text(spec(service).get("selector") or {})), wide=True),
    ),
    "ConfigMap": (NAME, Column("Data", text(_count("data", "binaryData"))), AGE),
    "Secret": (
        NAME,
        Column("Type", text(lambda secret: str(secret.get("type", "")))),
        Column("Data", text(_count("data"))),
        AGE,
    ),
    "Event": (
        Column("Last Seen", _last_seen),
        Column("Type", text(lambda event: event.get("type", ""))),
        Column("Reason", text(lambda event: event.get("reason", ""))),
        Column("Object", text(_event_object)),
        Column("Subobject", text(lambda event: (event.get("involvedObject") or {}).get("fieldPath", "")), wide=True),
        Column("Source", text(_event_source), wide=True),
        Column("Message", text(lambda event: event.get("message", "").strip())),
        Column("First Seen", _first_seen, wide=True),
        Column("Count", text(lambda event: (event.get("series") or event).get("count") or 1), wide=True),
        Column("Name", NAME.cell, wide=True, format="name"),
    ),
    "ResourceQuota": (
        NAME,
        Column("Request", text(_quota(limits=False))),
        Column("Limit", text(_quota(limits=True))),
        AGE,
    ),
    "Lease": (NAME, Column("Holder", text(lambda lease: spec(lease).get("holderIdentity") or "")), AGE),
    "PersistentVolume": (
        NAME,
        Column("Capacity", text(lambda volume: str((spec(volume).get("capacity") or {}).get("storage", "0")))),
        Column("Access Modes", text(lambda volume: _modes(spec(volume).get("accessModes") or ()))),
        Column("Reclaim Policy", text(lambda volume: spec(volume).get("persistentVolumeReclaimPolicy", ""))),
        Column("Status", text(_volume_phase)),
        Column("Claim", text(_volume_claim)),
        Column("StorageClass", text(_storage_class)),
        Column("VolumeAttributesClass", text(_attributes_class)),
        Column("Reason", text(lambda volume: status(volume).get("reason", ""))),
        AGE,
        Column("VolumeMode", text(lambda volume: spec(volume).get("volumeMode", "")), wide=True),
    ),
    "PersistentVolumeClaim": (
        NAME,
        Column("Status", text(_volume_phase)),
        Column("Volume", text(lambda claim: spec(claim).get("volumeName", ""))),
        Column("Capacity", text(_once_bound(lambda found: str((found.get("capacity") or {}).get("storage", "0"))))),
        Column("Access Modes", text(_once_bound(lambda found: _modes(found.get("accessModes") or ())))),
        Column("StorageClass", text(_storage_class)),
        Column("VolumeAttributesClass", text(_attributes_class)),
        AGE,
        Column("VolumeMode", text(lambda claim: spec(claim).get("volumeMode", "")), wide=True),
    ),
    "StatefulSet": (
        NAME,
        Column("Ready", text(_set_ready)),
        AGE,
        Column("Containers", text(_template("name")), wide=True),
        Column("Images", text(_template("image")), wide=True),
    ),
    "ControllerRevision": (
        NAME,
        Column("Controller", text(_controller)),
        Column("Revision", text(lambda revision: int(revision.get("revision", 0)))),
        AGE,
    ),
}
