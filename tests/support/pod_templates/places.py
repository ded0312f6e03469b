"""Every field that a pod template can have, and values for each: valid ones, and wrong ones.

The schema of the product supplies the fields and their types, so a new field is covered without a change here. The
tables of this module supply what a schema cannot express: valid texts, and the fields that others need.
"""

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

Step = str | int
Path = tuple[Step, ...]
Template = dict[str, Any]

SCHEMA: Final[dict[str, Any]] = json.loads(
    files("app.domain").joinpath("data", "pod_template.schema.json").read_text(encoding="utf-8")
)
DEFINITIONS: Final[dict[str, Any]] = SCHEMA["$defs"]

# Exactly one of these fields, or at most one, is set.
ALTERNATIVES: Final[dict[str, tuple[str, ...]]] = {
    "Probe": ("tcpSocket", "exec", "grpc", "httpGet"),
    "LifecycleHandler": ("exec", "httpGet", "sleep", "tcpSocket"),
    "EnvVarSource": ("fieldRef", "configMapKeyRef", "fileKeyRef", "resourceFieldRef", "secretKeyRef"),
    "EnvFromSource": ("configMapRef", "secretRef"),
    "DownwardAPIVolumeFile": ("fieldRef", "resourceFieldRef"),
    "VolumeProjection": tuple(sorted(DEFINITIONS["VolumeProjection"]["properties"])),
    "Volume": ("emptyDir", *sorted(set(DEFINITIONS["Volume"]["properties"]) - {"name", "emptyDir"})),
    "PodResourceClaim": ("resourceClaimName", "resourceClaimTemplateName"),
    "FCVolumeSource": ("targetWWNs", "wwids"),
    "FlockerVolumeSource": ("datasetName", "datasetUUID"),
    "ClusterTrustBundleProjection": ("name", "signerName"),
    "PodCertificateProjection": ("credentialBundlePath", "keyPath", "certificateChainPath"),
    "VolumeMount": ("subPath", "subPathExpr"),
}
# Valid texts of fields for which "a" is none, by type and field, or by the field of every type.
TEXTS: Final[dict[tuple[str, str] | str, str]] = {
    ("EnvVarSource", "fieldPath"): "metadata.name",
    ("ObjectFieldSelector", "apiVersion"): "v1",
    ("ResourceFieldSelector", "resource"): "limits.cpu",
    ("ResourceFieldSelector", "containerName"): "c",
    ("HostAlias", "ip"): "10.0.0.1",
    ("ContainerPort", "hostIP"): "10.0.0.1",
    ("VolumeMount", "mountPath"): "/m",
    ("VolumeMount", "name"): "v",
    ("VolumeDevice", "devicePath"): "/dev/x",
    ("VolumeDevice", "name"): "claimed",
    ("ResourceClaim", "name"): "claim",
    ("FileKeySelector", "volumeName"): "v",
    ("ContainerRestartRule", "action"): "Restart",
    ("ContainerRestartRuleOnExitCodes", "operator"): "In",
    ("SELinuxOptions", "level"): "s0",
    ("ISCSIVolumeSource", "iqn"): "iqn.2001-04.com.example:a",
    ("ISCSIVolumeSource", "targetPortal"): "10.0.0.1:3260",
    ("ISCSIVolumeSource", "initiatorName"): "iqn.2001-04.com.example:b",
    ("AzureDiskVolumeSource", "diskURI"): "https://a.example/b.vhd",
    ("QuobyteVolumeSource", "registry"): "a:1",
    ("ScaleIOVolumeSource", "storageMode"): "ThinProvisioned",
    ("ImageVolumeSource", "reference"): "a.example/b:1",
    ("PodSecurityContext", "seLinuxChangePolicy"): "Recursive",
    ("Sysctl", "name"): "kernel.shm_rmid_forced",
    ("TypedLocalObjectReference", "apiGroup"): "a.example",
    ("TypedObjectReference", "apiGroup"): "a.example",
    ("PodReadinessGate", "conditionType"): "a.example/b",
    ("PodSchedulingGate", "name"): "a.example/b",
    ("NFSVolumeSource", "path"): "/a",
    "fieldPath": "metadata.name",
    "signerName": "a.example/b",
    "topologyKey": "a.example/zone",
    "recursiveReadOnly": "Disabled",
    "localhostProfile": "a.json",
    "gmsaCredentialSpecName": "a.example",
}
# Other valid values, by type and field, or by type.
VALUES: Final[dict[tuple[str, str] | str, Any]] = {
    "Quantity": "1",
    "IntOrString": 80,
    ("ResourceRequirements", "limits"): {"cpu": "1"},
    ("ResourceRequirements", "requests"): {"cpu": "1"},
    ("VolumeResourceRequirements", "requests"): {"storage": "1Gi"},
    ("VolumeResourceRequirements", "limits"): {"storage": "1Gi"},
    ("PodSpec", "overhead"): {},
    ("PodSpec", "priority"): 0,
    ("ObjectMeta", "labels"): {"a": "b"},
    ("LabelSelector", "matchLabels"): {"a": "b"},
    ("PodSpec", "nodeSelector"): {"a": "b"},
    ("PersistentVolumeClaimSpec", "accessModes"): ["ReadWriteOnce"],
    ("SecurityContext", "procMount"): "Default",
    ("PodDNSConfig", "nameservers"): ["10.0.0.1"],
    ("PodCertificateProjection", "maxExpirationSeconds"): 86400,
    ("PodCertificateProjection", "keyType"): "ED25519",
    ("PodCertificateProjection", "userAnnotations"): {"a.example/b": "c"},
    ("LabelSelectorRequirement", "operator"): "In",
    ("LabelSelectorRequirement", "values"): ["a"],
    ("NodeSelectorRequirement", "operator"): "In",
    ("NodeSelectorRequirement", "values"): ["a"],
    ("ContainerRestartRuleOnExitCodes", "values"): [1],
    ("PodAffinityTerm", "namespaces"): ["a"],
    ("TopologySpreadConstraint", "whenUnsatisfiable"): "DoNotSchedule",
    ("PodOS", "name"): "linux",
    ("NodeSelectorRequirement", "key"): "metadata.name",
    ("VolumeMount", "mountPropagation"): "None",
    ("AppArmorProfile", "type"): "RuntimeDefault",
    ("SeccompProfile", "type"): "RuntimeDefault",
    ("ExecAction", "command"): ["a"],
    ("FCVolumeSource", "lun"): 0,
    ("CephFSVolumeSource", "monitors"): ["a"],
    ("RBDVolumeSource", "monitors"): ["a"],
    ("ServiceAccountTokenProjection", "expirationSeconds"): 600,
    ("LocalObjectReference", "name"): "a",
}
# Fields that another field of the same object needs to be valid.
NEEDED: Final[dict[tuple[str, str], Template]] = {
    ("Toleration", "tolerationSeconds"): {"effect": "NoExecute", "key": "a"},
    ("Toleration", "value"): {"key": "a"},
    ("Toleration", "effect"): {"key": "a"},
    ("Toleration", "operator"): {"key": "a"},
    ("PodAffinityTerm", "matchLabelKeys"): {"labelSelector": {}},
    ("PodAffinityTerm", "mismatchLabelKeys"): {"labelSelector": {}},
    ("TopologySpreadConstraint", "matchLabelKeys"): {"labelSelector": {}},
    ("SeccompProfile", "localhostProfile"): {"type": "Localhost"},
    ("AppArmorProfile", "localhostProfile"): {"type": "Localhost"},
    ("Container", "restartPolicyRules"): {"restartPolicy": "Never"},
    ("ContainerRestartRule", "action"): {"exitCodes": {"operator": "In", "values": [1]}},
    ("ContainerRestartRule", "exitCodes"): {"action": "Restart"},
    ("FCVolumeSource", "targetWWNs"): {"lun": 0},
    ("VolumeMount", "readOnly"): {"mountPropagation": "None"},
    ("VolumeMount", "recursiveReadOnly"): {"readOnly": True, "mountPropagation": "None"},
    ("ClusterTrustBundleProjection", "labelSelector"): {"signerName": "a.example/b"},
    ("WindowsSecurityContextOptions", "gmsaCredentialSpec"): {"gmsaCredentialSpecName": "a"},
}
# Fields without which an object of the type is not valid, although its schema does not require them.
COMPLETIONS: Final[dict[str, Template]] = {
    "PodTemplateSpec": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    "Container": {"image": "i"},
    "LabelSelectorRequirement": {"values": ["a"]},
    "NodeSelectorRequirement": {"values": ["a"]},
    "ExecAction": {"command": ["a"]},
    "ContainerRestartRule": {"exitCodes": {"operator": "In", "values": [1]}},
    "ContainerRestartRuleOnExitCodes": {"values": [1]},
    "PersistentVolumeClaimSpec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
    "EphemeralVolumeSource": {
        "volumeClaimTemplate": {
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}},
        },
    },
    "VolumeResourceRequirements": {"requests": {"storage": "1"}},
    "ImageVolumeSource": {"reference": "a.example/b:1"},
    "ConfigMapProjection": {"name": "a"},
    "SecretProjection": {"name": "a"},
    "ScaleIOVolumeSource": {"volumeName": "a"},
    "StorageOSVolumeSource": {"volumeName": "a"},
    "LocalObjectReference": {"name": "a"},
    "ResourceFieldSelector": {"containerName": "c"},
    "Toleration": {"operator": "Exists"},
    "FCVolumeSource": {"lun": 0},
    "CSIVolumeSource": {"driver": "a.example"},
    "PodSpec": {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [
            {"name": "v", "emptyDir": {}},
            {"name": "claimed", "persistentVolumeClaim": {"claimName": "a"}},
        ],
        "resourceClaims": [{"name": "claim", "resourceClaimName": "a"}],
    },
}


@dataclass(frozen=True, slots=True)
class Place:
    """A field, or an item of a list, below a template that is valid with its value."""

    path: Path
    owner: str
    schema: dict[str, Any]
    template: Template

    def with_value(self, value: Any) -> Template:
        changed: Template = replaced(self.template, self.path, value)
        return changed


def resolved(schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a schema, or of its type, and the schema itself."""
    if "$ref" not in schema:
        return "", schema
    name = schema["$ref"].rpartition("/")[2]
    return name, DEFINITIONS[name]


def example(owner: str, field: str) -> Any:
    """Return a valid value of a field of a type."""
    if (owner, field) in VALUES:
        return deepcopy(VALUES[owner, field])
    return _example_of(DEFINITIONS[owner]["properties"][field], owner, field)


def _example_of(schema: dict[str, Any], owner: str, field: str) -> Any:
    name, found = resolved(schema)
    if name in VALUES:
        return deepcopy(VALUES[name])
    if "properties" in found:
        return complete(name, {})
    match found.get("type"):
        case "array":
            return [_example_of(found["items"], owner, field)]
        case "object":
            return {"a": "b"}
        case "boolean":
            return False
        case "integer":
            return max(found.get("minimum", 1), 1)
    options = [option for option in found.get("enum", ()) if option]
    return options[0] if options else TEXTS.get((owner, field), TEXTS.get(field, "a"))


def complete(owner: str, fields: Template) -> Template:
    """Return an object of a type with these fields and those without which it is not valid."""
    whole = {name: example(owner, name) for name in DEFINITIONS[owner].get("required", ()) if name not in fields}
    whole |= {name: value for name, value in deepcopy(COMPLETIONS.get(owner, {})).items() if name not in fields}
    for name in fields:
        whole |= {needed: value for needed, value in NEEDED.get((owner, name), {}).items() if needed not in fields}
    choices = ALTERNATIVES.get(owner, ())
    if choices and owner != "VolumeMount" and not any(name in fields or name in whole for name in choices):
        whole[choices[0]] = example(owner, choices[0])
    return whole | fields


def places() -> Iterator[Place]:
    """Yield each field of a pod template, and each item of its lists, once for each object that can have it."""
    yield from _places("PodTemplateSpec", (), lambda value: value)


def _places(owner: str, path: Path, around: Callable[[Any], Template]) -> Iterator[Place]:
    for field, declared in sorted(DEFINITIONS[owner]["properties"].items()):
        if not declared:
            continue

        def within(value: Any, field: str = field) -> Template:
            return around(complete(owner, {field: value}))

        yield Place((*path, field), owner, resolved(declared)[1], within(example(owner, field)))
        yield from _below(owner, field, declared, (*path, field), within)


def _below(
    owner: str, field: str, declared: dict[str, Any], path: Path, within: Callable[[Any], Template]
) -> Iterator[Place]:
    name, schema = resolved(declared)
    if "properties" in schema:
        yield from _places(name, path, within)
    elif schema.get("type") == "array":
        item = schema["items"]

        def one(value: Any) -> Template:
            # Only an init container that runs on can have probes and hooks.
            return within([{"restartPolicy": "Always", **value}] if field == "initContainers" else [value])

        value = example(owner, field)
        yield Place((*path, 0), owner, resolved(item)[1], within(value))
        if "properties" in resolved(item)[1]:
            yield from _places(resolved(item)[0], (*path, 0), one)


def replaced(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of the value in which `new` is at the path."""
    if not path:
        return new
    copy: Any = list(value) if isinstance(value, list) else dict(value)
    copy[path[0]] = replaced(copy[path[0]] if len(path) > 1 else None, path[1:], new)
    return copy


# Texts that are wrong in some fields: empty, upper case, white space, paths, dots, long, not ASCII.
_TEXTS: Final = (
    "",
    "b",
    "B",
    "a b",
    " a",
    "a/b",
    "/a",
    "../a",
    "a/..",
    "..a",
    ".",
    "a.b",
    "a..b",
    "1",
    "-a",
    "a-",
    "a_b",
    "a:b",
    "a=b",
    "a" * 63,
    "a" * 64,
    "a" * 254,
    "b.example/" + "a" * 64,
    "ä",
    "$(A)",
    "10.0.0.1",
    "::1",
    "01.0.0.1",
    "a\n",
    "metadata.labels['a']",
    "metadata.labels",
    "status.podIP",
    "spec.nodeName",
    "requests.memory",
    "a.example",
    "/a/../b",
    "a,b",
    "*.a.example",
)
_INTEGERS: Final = (-(2**63) - 1, -(2**31) - 1, -1, 0, 1, 2, 65535, 65536, 2**31 - 1, 2**31, 2**63 - 1, 2**63)
_QUANTITIES: Final = (0, 1.5, "-1", "1.5", "", "1Q", "1Ki", "0.1m", "1e3", "+1", "1 ", 10**20, -1, "1e-3")
_KEYS: Final = (
    "",
    "a b",
    "a/b",
    "A.b/c",
    "a/b/c",
    "a" * 64,
    "/a",
    "cpu",
    "memory",
    "hugepages-2Mi",
    "a.example/b",
    "requests.a.example/b",
    "storage",
    "ephemeral-storage",
    "pods",
    "kubernetes.io/a",
    "attachable-volumes-a",
)


def other_values(schema: dict[str, Any]) -> Iterator[Any]:
    """Yield values that are wrong in some field of this type, and others that are unusual."""
    yield None
    kinds = schema.get("type", "")
    if kinds == "array":
        yield from ([], [None], {}, "a")
        return
    if "properties" in schema:
        yield from ({}, [], "a")
        return
    if kinds == "object":
        values = schema.get("additionalProperties", {})
        amounts = _QUANTITIES if "$ref" in values else (*_TEXTS, 1)
        yield from ({}, [], {"a": None})
        yield from ({key: "1"} for key in _KEYS)
        yield from ({key: amount} for amount in amounts for key in ("a.example/b", "cpu"))
        return
    if "pattern" in schema:
        yield from _QUANTITIES
        return
    if kinds == "boolean":
        yield from (True, False, "true", 1)
        return
    if "integer" in kinds:
        bounds = (schema.get("minimum", 0), schema.get("maximum", 0))
        yield from (*_INTEGERS, *(near for bound in bounds for near in (bound - 1, bound, bound + 1)), "1", 1.5, 1.0)
    if "string" in kinds:
        yield from (*schema.get("enum", ()), *_TEXTS, 1)


# The templates may not set the other fields of their metadata, deliberately: app/domain/pod_template/metadata.py.
PLACES: Final = tuple(
    place
    for place in places()
    if len(place.path) > 1 and (place.path[0] != "metadata" or place.path[1] in ("labels", "annotations"))
)
