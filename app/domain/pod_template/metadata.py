"""Rules on the metadata of a template: its labels, its annotations, and the fields that it may not set."""

import re
from collections.abc import Iterable
from typing import Final

from app.domain.decoding import JsonValue
from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import labels, names, topology
from app.domain.pod_template.reading import Mapping, items, mapping, text

# jobgate or the cluster sets these fields, so a value of the user must not be ignored silently. name and generateName
# are not listed: Kubernetes accepts and ignores them in a template, and generators of manifests write them.
_NOT_A_TEMPLATES = {
    "namespace": "pods are created in the namespace of their job",
    "ownerReferences": "pods are owned by their job",
    "finalizers": "only jobgate may keep a pod, until its end is recorded",
    "uid": "the cluster sets it",
    "resourceVersion": "the cluster sets it",
    "generation": "the cluster sets it",
    "selfLink": "the cluster sets it",
    "creationTimestamp": "the cluster sets it",
    "deletionTimestamp": "the cluster sets it",
    "deletionGracePeriodSeconds": "the cluster sets it",
    "managedFields": "the cluster sets it",
}


_SLICE_SIZE: Final = re.compile(r"[1-9][0-9]{0,5}")
_KUEUE: Final = "kueue.x-k8s.io/"


def check_metadata(metadata: JsonValue, pointer: str, problems: Problems) -> None:
    fields = mapping(metadata)
    for name, reason in _NOT_A_TEMPLATES.items():
        # Go programs write empty values of fields that they do not set, such as creationTimestamp: null.
        if fields.get(name) not in (None, "", 0, []):
            problems.add(
                pointer_to(pointer, name), "NotSupported", f"a template cannot set {name}: {reason}", "leave it out"
            )
    check_labels(fields.get("labels"), pointer_to(pointer, "labels"), problems)
    annotations, here = mapping(fields.get("annotations")), pointer_to(pointer, "annotations")
    check_annotations(annotations, here, problems)
    _check_topology(annotations, here, problems)
    _check_keys_of_kueue(mapping(fields.get("labels")), pointer_to(pointer, "labels"), problems)
    others = [key for key in annotations if not key.startswith(topology.PREFIX)]
    _check_keys_of_kueue(others, here, problems)


def _check_keys_of_kueue(keys: Iterable[str], pointer: str, problems: Problems) -> None:
    """Report keys of Kueue, also where the pod policy allows all keys. By them, Kueue queues the pod by itself, puts it
    in a group that cannot restart, or holds it until another client queues it.
    """
    for key in keys:
        if key.startswith(_KUEUE):
            detail = "Kueue would not treat the pod as one of its job"
            accepted = f"the label {_KUEUE}queue-name of the manifest, which queues the job as a whole"
            problems.add(pointer_to(pointer, key), "NotSupported", detail, accepted)


def _check_topology(annotations: Mapping, pointer: str, problems: Problems) -> None:
    """Report a request for a topology that Kueue cannot fulfil in any cluster."""
    for key, value in annotations.items():
        if key.startswith(topology.PREFIX):
            _check_request(key, value, pointer_to(pointer, key), problems)
    requests = [key for key in topology.PLACES if key in annotations]
    if len(requests) > 1:
        problems.add(pointer, "Conflict", f"the template has {' and '.join(requests)}", "one of them")
    slices = [key for key in (topology.SLICE_LEVEL, topology.SLICE_SIZE) if key in annotations]
    if len(slices) == 1:
        detail = f"the template has {slices[0]} alone"
        problems.add(pointer, "Required", detail, f"{topology.SLICE_LEVEL} and {topology.SLICE_SIZE}, or none of them")
    if slices and topology.UNCONSTRAINED in annotations:
        detail = f"the template has {slices[0]} and {topology.UNCONSTRAINED}"
        problems.add(pointer, "Conflict", detail, "one of them")


def _check_request(key: str, value: JsonValue, pointer: str, problems: Problems) -> None:
    if key not in topology.ANNOTATIONS:
        problems.add(pointer, "NotSupported", "jobgate does not pass this request to Kueue", _any_of_topology())
    elif not isinstance(value, str):
        return  # reported with the other values that are not strings
    elif key == topology.UNCONSTRAINED:
        if value != "true":
            problems.add(pointer, "Invalid", "the topology is requested by another value", '"true"')
    elif key == topology.SLICE_SIZE:
        if _SLICE_SIZE.fullmatch(value) is None:
            problems.add(pointer, "Invalid", f'"{shorten(value)}" is no number of pods', '"1" to "999999"')
    elif (wrong := names.label_key(value)) or len(value) > topology.MOST_OF_LEVEL:
        detail = f"the level of the topology {wrong or 'is too long'}"
        problems.add(pointer, "Invalid", detail, f"a label of nodes, of at most {topology.MOST_OF_LEVEL} characters")


def _any_of_topology() -> str:
    return ", ".join(topology.ANNOTATIONS)


def check_main_container(template: Mapping, pointer: str, problems: Problems) -> None:
    """Report a main container that is none of the containers which run to completion."""
    annotations = mapping(mapping(template.get("metadata")).get("annotations"))
    named = annotations.get(labels.MAIN_CONTAINER)
    known = container_names(template)
    if isinstance(named, str) and named not in known:
        here = pointer_to(pointer, "metadata", "annotations", labels.MAIN_CONTAINER)
        detail = f'the pod has no container "{shorten(named)}" beside init containers'
        problems.add(here, "UnknownContainer", detail, f"one of {', '.join(map(shorten, known))}")


def container_names(template: Mapping) -> list[str]:
    """Return the names of the containers of a pod template, without init containers."""
    return [text(container, "name") for container, _ in items(mapping(template.get("spec")), "containers", "")]


def check_labels(declared: JsonValue, pointer: str, problems: Problems) -> None:
    for key, value in mapping(declared).items():
        here = pointer_to(pointer, key)
        _check_key(key, names.label_key(key), here, problems)
        wrong = names.label_value(value) if isinstance(value, str) else None
        if wrong:
            problems.add(here, "Invalid", f"the label value {wrong}", "a label value")


def check_annotations(annotations: Mapping, pointer: str, problems: Problems) -> None:
    size = 0
    for key, value in annotations.items():
        if key != labels.MAIN_CONTAINER:
            _check_key(key, names.annotation_key(key), pointer_to(pointer, key), problems)
        size += len(key.encode()) + (len(value.encode()) if isinstance(value, str) else 0)
    if size > names.ANNOTATIONS_MAX_BYTES:
        accepted = f"at most {names.ANNOTATIONS_MAX_BYTES} bytes, keys and values together"
        problems.add(pointer, "TooLong", f"the annotations have {size} bytes", accepted)


def _check_key(key: str, wrong: str | None, here: str, problems: Problems) -> None:
    if wrong:
        problems.add(here, "Invalid", f"the key {shorten(key)}: {wrong}", "a name, with or without a DNS prefix and /")
    elif key.startswith(labels.PREFIX):
        problems.add(here, "Reserved", f"keys that begin with {labels.PREFIX} are jobgate's own", "another prefix")
