"""Rules on the volumes of a pod: one source each, and the fields of a source that depend on one another."""

from collections.abc import Iterator

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import names
from app.domain.pod_template.downward import check_resource, check_volume_field
from app.domain.pod_template.metadata import check_annotations, check_labels
from app.domain.pod_template.placement import check_selector
from app.domain.pod_template.reading import Mapping, check_name, items, mapping, present_fields, text
from app.domain.pod_template.resources import amount_of, check_amount

# Sources that name a Secret only if they need one, and then its name must not be empty.
_SECRETS = (("cinder", "secretRef"), ("csi", "nodePublishSecretRef"), ("storageos", "secretRef"))
# Pairs of fields of which a source has exactly one.
_CHOICES = (("fc", "targetWWNs", "wwids"), ("flocker", "datasetName", "datasetUUID"))
_CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_CLAIM = "PersistentVolumeClaim"
# Empty values of the metadata of a claim template that are the same as none; those of its texts are empty texts.
_EMPTY = {"creationTimestamp": None, "deletionTimestamp": None, "deletionGracePeriodSeconds": None, "generation": 0}
_RESERVED_OPTIONS = (".kubernetes.io", ".k8s.io")

Volumes = dict[str, Mapping]
"""The volumes of a pod by name."""


def check_volumes(pod: Mapping, pointer: str, problems: Problems) -> Volumes:
    """Check the volumes, and return them by name."""
    found: Volumes = {}
    for volume, here in items(pod, "volumes", pointer):
        check_name(volume, here, found.keys(), problems, what="volume")
        found[text(volume, "name")] = volume
        # A volume without a source is an empty directory, so none is no error.
        sources = [name for name, value in volume.items() if name != "name" and value is not None]
        if len(sources) > 1:
            listed = ", ".join(map(shorten, sources[:5]))
            problems.add(here, "Invalid", f"a volume can have only one source, and has {listed}", "one source")
        check_amount(volume, ("emptyDir", "sizeLimit"), here, problems)
        _check_paths(volume, here, problems)
        _check_downward(mapping(volume.get("downwardAPI")), pointer_to(here, "downwardAPI"), problems)
        _check_projections(mapping(volume.get("projected")), pointer_to(here, "projected"), problems)
        _check_storage(volume, here, problems)
        _check_azure(mapping(volume.get("azureDisk")), pointer_to(here, "azureDisk"), problems)
        _check_options(mapping(volume.get("flexVolume")), pointer_to(here, "flexVolume"), problems)
        claim = mapping(mapping(volume.get("ephemeral")).get("volumeClaimTemplate"))
        _check_claim(claim, pointer_to(here, "ephemeral", "volumeClaimTemplate"), problems)
    return found


def _check_paths(volume: Mapping, here: str, problems: Problems) -> None:
    if ".." in text(mapping(volume.get("hostPath")), "path").split("/"):
        pointer = pointer_to(here, "hostPath", "path")
        problems.add(pointer, "Invalid", "the path must not contain '..'", "an absolute path")
    exported = text(mapping(volume.get("nfs")), "path")
    if exported and not exported.startswith("/"):
        problems.add(pointer_to(here, "nfs", "path"), "Invalid", "the path must be absolute", "an absolute path")


def _check_downward(source: Mapping, here: str, problems: Problems) -> None:
    for item, pointer in items(source, "items", here):
        chosen = present_fields(item, ("fieldRef", "resourceFieldRef"))
        if len(chosen) != 1:
            detail = "an item has exactly one of fieldRef and resourceFieldRef"
            problems.add(pointer, "Invalid" if chosen else "Required", detail, "one of: fieldRef, resourceFieldRef")
        check_volume_field(mapping(item.get("fieldRef")), pointer_to(pointer, "fieldRef"), problems)
        if item.get("resourceFieldRef") is not None:
            reference = mapping(item["resourceFieldRef"])
            at = pointer_to(pointer, "resourceFieldRef")
            check_resource(reference, at, problems)
            if not text(reference, "containerName"):
                detail = "a volume must name the container"
                problems.add(pointer_to(at, "containerName"), "Required", detail, "the name of a container")


def _check_projections(projected: Mapping, here: str, problems: Problems) -> None:
    paths: set[str] = set()
    for source, pointer in items(projected, "sources", here):
        for path, at in _projected_paths(source, pointer):
            if path and path in paths:
                problems.add(at, "Duplicate", "another file of the volume has this path", "a path of its own")
            paths.add(path)
        if len(kinds := present_fields(source, tuple(source))) > 1:
            listed = " and ".join(map(shorten, kinds[:5]))
            problems.add(pointer, "Invalid", f"{listed} exclude each other", "one source")
        _check_downward(mapping(source.get("downwardAPI")), pointer_to(pointer, "downwardAPI"), problems)
        if source.get("clusterTrustBundle") is not None:
            at = pointer_to(pointer, "clusterTrustBundle")
            _check_trust_bundle(mapping(source["clusterTrustBundle"]), at, problems)
        if source.get("podCertificate") is not None:
            _check_certificate(mapping(source["podCertificate"]), pointer_to(pointer, "podCertificate"), problems)


def _projected_paths(source: Mapping, here: str) -> Iterator[tuple[str, str]]:
    for kind in ("configMap", "secret", "downwardAPI"):
        for item, pointer in items(mapping(source.get(kind)), "items", pointer_to(here, kind)):
            yield text(item, "path"), pointer_to(pointer, "path")
    yield text(mapping(source.get("clusterTrustBundle")), "path"), pointer_to(here, "clusterTrustBundle", "path")


def _check_trust_bundle(bundle: Mapping, here: str, problems: Problems) -> None:
    if len(chosen := present_fields(bundle, ("name", "signerName"))) != 1:
        detail = "a trust bundle has exactly one of name and signerName"
        problems.add(here, "Invalid" if chosen else "Required", detail, "one of them")
    if bundle.get("labelSelector") is not None and bundle.get("signerName") is None:
        detail = "only bundles of a signer are selected"
        problems.add(pointer_to(here, "labelSelector"), "Invalid", detail, "leave it out")
    check_selector(mapping(bundle.get("labelSelector")), pointer_to(here, "labelSelector"), problems)


def _check_certificate(certificate: Mapping, here: str, problems: Problems) -> None:
    paths = [path for name in _CERTIFICATE_PATHS if (path := text(certificate, name))]
    if not paths:
        detail = "the projection needs a file for the key or the certificates"
        problems.add(here, "Required", detail, "one of: " + ", ".join(_CERTIFICATE_PATHS))
    if len(paths) != len(set(paths)):
        problems.add(here, "Duplicate", "two files have the same path", "a path of its own for each file")
    for key in mapping(certificate.get("userAnnotations")):
        wrong = names.annotation_key(key) if "/" in key else "the key needs the prefix of a domain"
        if wrong:
            problems.add(pointer_to(here, "userAnnotations", key), "Invalid", wrong, "a key such as example.com/name")


def _check_storage(volume: Mapping, here: str, problems: Problems) -> None:
    for source, name in _SECRETS:
        reference = mapping(volume.get(source)).get(name)
        if reference is not None and not text(mapping(reference), "name"):
            pointer = pointer_to(here, source, name, "name")
            problems.add(pointer, "Required", "the Secret must have a name", "the name of a Secret")
    secret = text(mapping(mapping(volume.get("csi")).get("nodePublishSecretRef")), "name")
    if secret and (wrong := names.dns_subdomain(secret)):
        problems.add(pointer_to(here, "csi", "nodePublishSecretRef", "name"), "Invalid", wrong, "the name of a Secret")
    for source, one, other in _CHOICES:
        fields = mapping(volume.get(source))
        if volume.get(source) is not None and bool(fields.get(one)) == bool(fields.get(other)):
            detail = f"the volume needs exactly one of {one} and {other}"
            problems.add(pointer_to(here, source), "Invalid", detail, f"{one} or {other}")
    fc = mapping(volume.get("fc"))
    if fc.get("targetWWNs") and fc.get("lun") is None:
        problems.add(pointer_to(here, "fc", "lun"), "Required", "targetWWNs needs a lun", "0 to 255")
    iscsi = mapping(volume.get("iscsi"))
    if True in (iscsi.get("chapAuthDiscovery"), iscsi.get("chapAuthSession")) and iscsi.get("secretRef") is None:
        pointer = pointer_to(here, "iscsi", "secretRef")
        problems.add(pointer, "Required", "CHAP authentication needs a Secret", "the name of a Secret")


def _check_azure(disk: Mapping, here: str, problems: Problems) -> None:
    start = "/subscriptions/" if text(disk, "kind") == "Managed" else "https://"
    if text(disk, "diskURI") and not text(disk, "diskURI").startswith(start):
        detail = f"the URI of a disk of this kind begins with {start}"
        problems.add(pointer_to(here, "diskURI"), "NotSupported", detail, f"{start}…")


def _check_options(source: Mapping, here: str, problems: Problems) -> None:
    for name in mapping(source.get("options")):
        domain = "." + name.split("/")[0].lower()
        if "/" in name and domain.endswith(_RESERVED_OPTIONS):
            pointer = pointer_to(here, "options", name)
            problems.add(pointer, "Reserved", "Kubernetes uses options of this domain", "another domain")


def _check_claim(template: Mapping, here: str, problems: Problems) -> None:
    metadata = mapping(template.get("metadata"))
    at = pointer_to(here, "metadata")
    check_labels(metadata.get("labels"), pointer_to(at, "labels"), problems)
    check_annotations(mapping(metadata.get("annotations")), pointer_to(at, "annotations"), problems)
    for name, value in metadata.items():
        if name not in ("labels", "annotations") and value is not None and value != _EMPTY.get(name, ""):
            detail = f"a claim template cannot set {shorten(name)}"
            problems.add(pointer_to(at, name), "NotSupported", detail, "labels and annotations")
    spec, pointer = mapping(template.get("spec")), pointer_to(here, "spec")
    modes = spec.get("accessModes")
    if isinstance(modes, list) and "ReadWriteOncePod" in modes and len(set(map(str, modes))) > 1:
        detail = "ReadWriteOncePod excludes other access modes"
        problems.add(pointer_to(pointer, "accessModes"), "Invalid", detail, "ReadWriteOncePod alone")
    if template:
        _check_claimed_size(mapping(spec.get("resources")), pointer_to(pointer, "resources"), problems)
    check_selector(mapping(spec.get("selector")), pointer_to(pointer, "selector"), problems)
    for name in present_fields(spec, ("dataSource", "dataSourceRef")):
        _check_data_source(mapping(spec[name]), pointer_to(pointer, name), problems)


def _check_claimed_size(resources: Mapping, here: str, problems: Problems) -> None:
    requested = mapping(resources.get("requests"))
    size, pointer = amount_of(requested.get("storage")), pointer_to(here, "requests", "storage")
    if requested.get("storage") is None:
        problems.add(pointer, "Required", "a claim must request storage", "a quantity, such as 10Gi")
    elif size is not None and size <= 0:
        problems.add(pointer, "OutOfRange", "the size must be greater than zero", "a quantity, such as 10Gi")


def _check_data_source(source: Mapping, here: str, problems: Problems) -> None:
    for name in ("kind", "name"):
        # The schema reports a field that is missing.
        if source.get(name) == "":
            problems.add(pointer_to(here, name), "Required", f"{name} must not be empty", f"the {name} of an object")
    kind = text(source, "kind")
    if not text(source, "apiGroup") and kind and kind != _CLAIM:
        detail = f"an object without an apiGroup must be a {_CLAIM}"
        problems.add(pointer_to(here, "kind"), "Invalid", detail, _CLAIM)


def check_use(mount: Mapping, kind: str, here: str, volumes: Volumes, problems: Problems) -> None:
    """Check that the volume of a mount or device exists, and that a device has a volume that can be one."""
    name = text(mount, "name")
    if name not in volumes:
        # The schema reports a name that is missing or empty.
        if name:
            accepted = "one of: " + ", ".join(sorted(volumes)[:10]) if volumes else "a volume in spec.volumes"
            detail = f"the pod has no volume {shorten(name)}"
            problems.add(pointer_to(here, "name"), "NotFound", detail, accepted)
        return
    if kind == "volumeDevices" and not present_fields(volumes[name], ("persistentVolumeClaim", "ephemeral")):
        detail = "a block device needs a volume of the source persistentVolumeClaim or ephemeral"
        problems.add(pointer_to(here, "name"), "Invalid", detail, "the name of such a volume")


def check_file_volume(reference: Mapping, here: str, volumes: Volumes, problems: Problems) -> None:
    """Check the volume that `valueFrom.fileKeyRef` of an environment variable names."""
    name = text(reference, "volumeName")
    pointer = pointer_to(here, "volumeName")
    if name not in volumes:
        problems.add(pointer, "NotFound", f"the pod has no volume {shorten(name)}", "a volume of the source emptyDir")
    elif volumes[name].get("emptyDir") is None and len(present_fields(volumes[name], tuple(volumes[name]))) > 1:
        problems.add(pointer, "Invalid", "the volume is no emptyDir", "a volume of the source emptyDir")
