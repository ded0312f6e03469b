"""Generates the strict JSON schema of a PodTemplateSpec from the OpenAPI document of a Kubernetes API server.

    SCHEMA=app/domain/data/pod_template.schema.json
    kubectl get --raw /openapi/v2 | python tools/generators/pod_template_schema.py > $SCHEMA

The published definitions are documentation: they allow unknown fields and omit what the server checks in code. This
program forbids unknown fields, types quantities and integers as the server reads them, and adds the bounds that the
server enforces on single fields.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from app.domain.kubernetes.quantity import QUANTITY_PATTERN

ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
REFERENCE = "#/definitions/"

INT32 = {"minimum": -(2**31), "maximum": 2**31 - 1}
INT64 = {"minimum": -(2**63), "maximum": 2**63 - 1}
PORT = {"minimum": 1, "maximum": 65535}
MODE = {"minimum": 0, "maximum": 0o777}
ID = {"minimum": 0, "maximum": 2**31 - 1}
NATURAL = {"minimum": 0}
POSITIVE = {"minimum": 1}
BYTE = {"minimum": 0, "maximum": 255}
WEIGHT = {"minimum": 1, "maximum": 100}
NOT_EMPTY: dict[str, Any] = {"minLength": 1}

SCALARS: dict[str, dict[str, Any]] = {
    "Quantity": {"type": ["string", "number"], "pattern": QUANTITY_PATTERN},
    "IntOrString": {"type": ["integer", "string"], **INT32},
    "Time": {"type": "string"},
    "FieldsV1": {"type": "object"},
}

# Checks of pkg/apis/core/validation/validation.go. Zero is allowed where it means the default.
BOUNDS: dict[tuple[str, str], dict[str, Any]] = {
    ("PodSpec", "containers"): {"minItems": 1},
    ("PodSpec", "activeDeadlineSeconds"): {"minimum": 1, "maximum": 2**31 - 1},
    ("ContainerPort", "containerPort"): PORT,
    ("ContainerPort", "hostPort"): {**PORT, "minimum": 0},
    ("GRPCAction", "port"): PORT,
    ("Probe", "initialDelaySeconds"): NATURAL,
    ("Probe", "timeoutSeconds"): NATURAL,
    ("Probe", "periodSeconds"): NATURAL,
    ("Probe", "successThreshold"): NATURAL,
    ("Probe", "failureThreshold"): NATURAL,
    ("Probe", "terminationGracePeriodSeconds"): POSITIVE,
    ("EnvVar", "name"): NOT_EMPTY,
    ("VolumeMount", "name"): NOT_EMPTY,
    ("VolumeMount", "mountPath"): NOT_EMPTY,
    ("VolumeDevice", "devicePath"): NOT_EMPTY,
    ("PreferredSchedulingTerm", "weight"): WEIGHT,
    ("WeightedPodAffinityTerm", "weight"): WEIGHT,
    ("TopologySpreadConstraint", "maxSkew"): POSITIVE,
    ("TopologySpreadConstraint", "minDomains"): POSITIVE,
    ("TopologySpreadConstraint", "topologyKey"): NOT_EMPTY,
    ("PodAffinityTerm", "topologyKey"): NOT_EMPTY,
    ("NodeSelector", "nodeSelectorTerms"): {"minItems": 1},
    ("ConfigMapVolumeSource", "defaultMode"): MODE,
    ("SecretVolumeSource", "defaultMode"): MODE,
    ("ProjectedVolumeSource", "defaultMode"): MODE,
    ("DownwardAPIVolumeSource", "defaultMode"): MODE,
    ("DownwardAPIVolumeFile", "mode"): MODE,
    ("KeyToPath", "mode"): MODE,
    ("KeyToPath", "path"): NOT_EMPTY,
    ("HostPathVolumeSource", "path"): NOT_EMPTY,
    ("PersistentVolumeClaimVolumeSource", "claimName"): NOT_EMPTY,
    ("SecurityContext", "runAsUser"): ID,
    ("SecurityContext", "runAsGroup"): ID,
    ("PodSecurityContext", "runAsUser"): ID,
    ("PodSecurityContext", "runAsGroup"): ID,
    ("PodSecurityContext", "fsGroup"): ID,
    ("PodSecurityContext", "supplementalGroups"): {"items": {"type": "integer", **ID}},
    ("ObjectFieldSelector", "fieldPath"): NOT_EMPTY,
    ("ResourceFieldSelector", "resource"): NOT_EMPTY,
    ("DownwardAPIVolumeFile", "path"): NOT_EMPTY,
    ("ServiceAccountTokenProjection", "path"): NOT_EMPTY,
    ("NFSVolumeSource", "server"): NOT_EMPTY,
    ("NFSVolumeSource", "path"): NOT_EMPTY,
    ("CSIVolumeSource", "driver"): NOT_EMPTY,
    ("FlexVolumeSource", "driver"): NOT_EMPTY,
    ("ISCSIVolumeSource", "targetPortal"): NOT_EMPTY,
    ("ISCSIVolumeSource", "iqn"): NOT_EMPTY,
    ("GlusterfsVolumeSource", "endpoints"): NOT_EMPTY,
    ("GlusterfsVolumeSource", "path"): NOT_EMPTY,
    ("RBDVolumeSource", "monitors"): {"minItems": 1},
    ("RBDVolumeSource", "image"): NOT_EMPTY,
    ("CephFSVolumeSource", "monitors"): {"minItems": 1},
    ("CinderVolumeSource", "volumeID"): NOT_EMPTY,
    ("AzureFileVolumeSource", "secretName"): NOT_EMPTY,
    ("AzureFileVolumeSource", "shareName"): NOT_EMPTY,
    ("GCEPersistentDiskVolumeSource", "pdName"): NOT_EMPTY,
    ("AWSElasticBlockStoreVolumeSource", "volumeID"): NOT_EMPTY,
    ("VsphereVirtualDiskVolumeSource", "volumePath"): NOT_EMPTY,
    ("PortworxVolumeSource", "volumeID"): NOT_EMPTY,
    ("GitRepoVolumeSource", "repository"): NOT_EMPTY,
    ("PhotonPersistentDiskVolumeSource", "pdID"): NOT_EMPTY,
    ("QuobyteVolumeSource", "registry"): NOT_EMPTY,
    ("QuobyteVolumeSource", "volume"): NOT_EMPTY,
    ("ScaleIOVolumeSource", "gateway"): NOT_EMPTY,
    ("ScaleIOVolumeSource", "system"): NOT_EMPTY,
    ("ScaleIOVolumeSource", "volumeName"): NOT_EMPTY,
    ("Sysctl", "name"): NOT_EMPTY,
    ("PodDNSConfig", "nameservers"): {"maxItems": 3},
    ("PodDNSConfig", "searches"): {"maxItems": 32, "items": {"type": "string", "format": "search-domain", **NOT_EMPTY}},
    ("PodDNSConfigOption", "name"): NOT_EMPTY,
    ("ConfigMapEnvSource", "name"): NOT_EMPTY,
    ("SecretEnvSource", "name"): NOT_EMPTY,
    ("ConfigMapKeySelector", "name"): NOT_EMPTY,
    ("SecretKeySelector", "name"): NOT_EMPTY,
    ("Container", "restartPolicy"): {"enum": ["Always", "Never", "OnFailure"]},
    ("ContainerResizePolicy", "resourceName"): {"enum": ["cpu", "memory"]},
    # RestartContainer is refused in pods with the restartPolicy Never, which those of jobs have.
    ("ContainerResizePolicy", "restartPolicy"): {"enum": ["NotRequired"]},
    ("Container", "restartPolicyRules"): {"maxItems": 20},
    ("ServiceAccountTokenProjection", "expirationSeconds"): {"minimum": 600, "maximum": 2**32},
    ("SleepAction", "seconds"): NATURAL,
    ("ConfigMapKeySelector", "key"): NOT_EMPTY,
    ("SecretKeySelector", "key"): NOT_EMPTY,
    ("ConfigMapVolumeSource", "name"): NOT_EMPTY,
    ("SecretVolumeSource", "secretName"): NOT_EMPTY,
    ("PodSpec", "runtimeClassName"): NOT_EMPTY,
    ("PodOS", "name"): {"enum": ["linux", "windows"]},
    ("LabelSelectorRequirement", "operator"): {"enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
    ("ContainerRestartRule", "action"): {"enum": ["Restart", "RestartAllContainers"]},
    ("ContainerRestartRuleOnExitCodes", "values"): {"maxItems": 255},
    ("ContainerRestartRuleOnExitCodes", "operator"): {"enum": ["In", "NotIn"]},
    ("PodSecurityContext", "seLinuxChangePolicy"): {"enum": ["MountOption", "Recursive"]},
    ("VolumeMount", "recursiveReadOnly"): {"enum": ["Disabled", "Enabled", "IfPossible"]},
    ("ObjectFieldSelector", "apiVersion"): {"enum": ["", "v1"]},
    ("AWSElasticBlockStoreVolumeSource", "partition"): BYTE,
    ("GCEPersistentDiskVolumeSource", "partition"): BYTE,
    ("ISCSIVolumeSource", "lun"): BYTE,
    ("FCVolumeSource", "lun"): BYTE,
    ("AzureDiskVolumeSource", "diskName"): NOT_EMPTY,
    ("AzureDiskVolumeSource", "diskURI"): NOT_EMPTY,
    ("KeyToPath", "key"): NOT_EMPTY,
    ("FileKeySelector", "path"): NOT_EMPTY,
    ("VolumeDevice", "name"): NOT_EMPTY,
    ("ImageVolumeSource", "reference"): NOT_EMPTY,
    ("ConfigMapProjection", "name"): NOT_EMPTY,
    ("SecretProjection", "name"): NOT_EMPTY,
    ("PersistentVolumeClaimSpec", "accessModes"): {"minItems": 1},
    ("ClusterTrustBundleProjection", "path"): NOT_EMPTY,
    ("ClusterTrustBundleProjection", "name"): NOT_EMPTY,
    ("ClusterTrustBundleProjection", "signerName"): NOT_EMPTY,
    ("PodCertificateProjection", "signerName"): NOT_EMPTY,
    ("PodCertificateProjection", "keyType"): {
        "enum": ["ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519", "RSA3072", "RSA4096"]
    },
    # 1 hour to 91 days.
    ("PodCertificateProjection", "maxExpirationSeconds"): {"minimum": 3600, "maximum": 91 * 86400},
    ("PodResourceClaim", "name"): NOT_EMPTY,
    ("PodResourceClaim", "resourceClaimName"): NOT_EMPTY,
    ("PodResourceClaim", "resourceClaimTemplateName"): NOT_EMPTY,
    ("PodSpec", "hostnameOverride"): NOT_EMPTY,
    ("FileKeySelector", "key"): NOT_EMPTY,
    ("HTTPHeader", "name"): NOT_EMPTY,
    ("WindowsSecurityContextOptions", "gmsaCredentialSpec"): NOT_EMPTY,
    ("WindowsSecurityContextOptions", "gmsaCredentialSpecName"): NOT_EMPTY,
    ("WindowsSecurityContextOptions", "runAsUserName"): NOT_EMPTY,
    ("ISCSIVolumeSource", "initiatorName"): NOT_EMPTY,
    ("StorageOSVolumeSource", "volumeName"): NOT_EMPTY,
    # Gt and Lt are published, but refused without an alpha feature gate.
    ("Toleration", "operator"): {"enum": ["", "Equal", "Exists"]},
}

# Fields that are optional in the published definition and required by the server.
REQUIRED = {
    "ConfigMapVolumeSource": ["name"],
    "SecretVolumeSource": ["secretName"],
    "ConfigMapEnvSource": ["name"],
    "SecretEnvSource": ["name"],
    "ConfigMapKeySelector": ["name"],
    "SecretKeySelector": ["name"],
    "PodDNSConfigOption": ["name"],
    "ConfigMapProjection": ["name"],
    "SecretProjection": ["name"],
    "ImageVolumeSource": ["reference"],
    "ScaleIOVolumeSource": ["volumeName"],
    "StorageOSVolumeSource": ["volumeName"],
    "ContainerRestartRule": ["exitCodes"],
    "EphemeralVolumeSource": ["volumeClaimTemplate"],
    "PersistentVolumeClaimSpec": ["accessModes"],
}

# Fields that are required in the published definition, and for which the server accepts the zero value of Go.
NOT_REQUIRED = {
    "HTTPHeader": ["value"],
    "SleepAction": ["seconds"],
    "Sysctl": ["value"],
    "ISCSIVolumeSource": ["lun"],
    "PreferredSchedulingTerm": ["preference"],
    "ScaleIOVolumeSource": ["secretRef"],
}

# The formats of app.domain.pod_template.formats.
FORMATS = {
    ("ConfigMapKeySelector", "name"): "dns-subdomain",
    ("SecretKeySelector", "name"): "dns-subdomain",
    ("ConfigMapEnvSource", "name"): "dns-subdomain-prefix",
    ("SecretEnvSource", "name"): "dns-subdomain-prefix",
    ("PodResourceClaim", "name"): "dns-label",
    ("PodResourceClaim", "resourceClaimName"): "dns-subdomain",
    ("PodResourceClaim", "resourceClaimTemplateName"): "dns-subdomain",
    ("ResourceClaim", "request"): "dns-label",
    ("PodSpec", "hostnameOverride"): "host-name",
    ("FileKeySelector", "key"): "env-name",
    ("FileKeySelector", "path"): "path-without-backsteps",
    ("ResourceFieldSelector", "resource"): "container-resource",
    ("HTTPHeader", "name"): "header-name",
    ("Sysctl", "name"): "sysctl",
    ("SeccompProfile", "localhostProfile"): "relative-path",
    ("AppArmorProfile", "localhostProfile"): "unpadded-text",
    ("WindowsSecurityContextOptions", "gmsaCredentialSpec"): "gmsa-spec",
    ("WindowsSecurityContextOptions", "gmsaCredentialSpecName"): "dns-subdomain",
    ("WindowsSecurityContextOptions", "runAsUserName"): "windows-user",
    ("VolumeDevice", "devicePath"): "path-without-backsteps",
    ("KeyToPath", "path"): "file-in-volume",
    ("DownwardAPIVolumeFile", "path"): "file-in-volume",
    ("ServiceAccountTokenProjection", "path"): "file-in-volume",
    ("ClusterTrustBundleProjection", "path"): "file-in-volume",
    ("ClusterTrustBundleProjection", "name"): "dns-subdomain",
    ("ClusterTrustBundleProjection", "signerName"): "signer",
    ("PodCertificateProjection", "signerName"): "signer",
    ("PodCertificateProjection", "credentialBundlePath"): "file-in-volume",
    ("PodCertificateProjection", "keyPath"): "file-in-volume",
    ("PodCertificateProjection", "certificateChainPath"): "file-in-volume",
    ("GitRepoVolumeSource", "directory"): "relative-path",
    ("CSIVolumeSource", "driver"): "csi-driver",
    ("FlockerVolumeSource", "datasetName"): "without-slash",
    ("ISCSIVolumeSource", "iqn"): "iscsi-name",
    ("ISCSIVolumeSource", "initiatorName"): "iscsi-name",
    ("QuobyteVolumeSource", "registry"): "quobyte-registry",
    ("QuobyteVolumeSource", "tenant"): "quobyte-tenant",
    ("StorageOSVolumeSource", "volumeName"): "dns-label",
    ("StorageOSVolumeSource", "volumeNamespace"): "dns-label",
    ("PersistentVolumeClaimSpec", "storageClassName"): "dns-subdomain",
    ("PersistentVolumeClaimSpec", "volumeAttributesClassName"): "dns-subdomain",
    ("TypedLocalObjectReference", "apiGroup"): "dns-subdomain",
    ("TypedObjectReference", "apiGroup"): "dns-subdomain",
    ("TypedObjectReference", "namespace"): "dns-label",
}

# Fields that are not pointers in Go: the empty text is the same as no text, and the server fills in its default.
EMPTY_IS_DEFAULT = {
    ("PodSpec", "restartPolicy"),
    ("PodSpec", "dnsPolicy"),
    ("Container", "imagePullPolicy"),
    ("Container", "terminationMessagePolicy"),
    ("ContainerPort", "protocol"),
    ("HTTPGetAction", "scheme"),
    ("Toleration", "effect"),
    ("Toleration", "operator"),
    ("ImageVolumeSource", "pullPolicy"),
}

# Fields that a template must not have. app.domain.pod_template refuses them with a better message.
UNSUPPORTED = {("PodSpec", "ephemeralContainers")}


def main() -> None:
    definitions = json.load(sys.stdin)["definitions"]
    json.dump(schema_of(definitions), sys.stdout, separators=(",", ":"), sort_keys=True)
    sys.stdout.write("\n")


def schema_of(definitions: dict[str, Any]) -> dict[str, Any]:
    closed: dict[str, Any] = {}
    pending = [ROOT]
    while pending:
        full = pending.pop()
        name = short(full)
        if name in closed:
            continue
        closed[name] = close(name, definitions[full])
        pending.extend(references(definitions[full]["properties"]) if "properties" in closed[name] else ())
    reached = set(reachable(closed, short(ROOT)))
    return {
        # The first drafts distinguish 1.0 from an integer, as the server does.
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$ref": f"#/$defs/{short(ROOT)}",
        "$defs": {name: definition for name, definition in closed.items() if name in reached},
    }


def short(full: str) -> str:
    return full.rsplit(".", 1)[1]


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"].removeprefix(REFERENCE)
        for child in node.values():
            yield from references(child)


def reachable(closed: dict[str, Any], root: str) -> Iterator[str]:
    seen: set[str] = set()
    pending = [root]
    while pending:
        name = pending.pop()
        if name not in seen:
            seen.add(name)
            yield name
            pending += [reference.removeprefix("#/$defs/") for reference in references(closed[name])]


def close(name: str, definition: dict[str, Any]) -> dict[str, Any]:
    if name in SCALARS:
        return SCALARS[name]
    properties = {
        field: strict_field(name, field, declared) for field, declared in definition.get("properties", {}).items()
    }
    strict: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = {*definition.get("required", ()), *REQUIRED.get(name, ())} - {*NOT_REQUIRED.get(name, ())}
    if required:
        strict["required"] = sorted(required)
    return strict


def strict_field(name: str, field: str, declared: dict[str, Any]) -> dict[str, Any]:
    if (name, field) in UNSUPPORTED:
        return {}
    strict = strict_type(declared)
    if (name, field) in EMPTY_IS_DEFAULT and "enum" in strict:
        strict["enum"] = ["", *strict["enum"]]
    if (name, field) in FORMATS:
        strict["format"] = FORMATS[name, field]
    return strict | BOUNDS.get((name, field), {})


def strict_type(declared: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in declared:
        return {"$ref": f"#/$defs/{short(declared['$ref'])}"}
    strict: dict[str, Any] = {"type": declared["type"]}
    if "enum" in declared:
        strict["enum"] = declared["enum"]
    if declared["type"] == "integer":
        strict |= INT64 if declared.get("format") == "int64" else INT32
    if "items" in declared:
        strict["items"] = strict_type(declared["items"])
    if "additionalProperties" in declared:
        strict["additionalProperties"] = strict_type(declared["additionalProperties"])
    return strict


if __name__ == "__main__":
    main()
