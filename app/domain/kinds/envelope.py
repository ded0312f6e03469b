"""The envelope that manifests of all kinds share: apiVersion, kind, metadata, and the annotations of jobgate."""

from collections.abc import Iterator, Mapping
from typing import Final, TypedDict

from app.domain.errors import Problems, pointer_to, shorten
from app.domain.kubernetes import labels, names
from app.domain.kubernetes.topology import PREFIX as TOPOLOGY_PREFIX
from app.domain.plan import Manifest
from app.domain.policy.table import NAMES
from app.domain.suggestions import add_unknown_field
from app.domain.value_types import add_wrong_type

ASSIGNED: Final = "assigned"  # the field of an accepted manifest with the values that its kind assigned
_TOP: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_KEPT: Final = ("name", "generateName", "namespace", "labels", "annotations")
# The fields that a cluster writes into exported objects. They are accepted and ignored.
_CLUSTERS_OWN: Final = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "ownerReferences",
    "finalizers",
    "selfLink",
    # Of Kubernetes 1.16 and earlier, which printed them even if they were empty.
    "clusterName",
    "initializers",
)
_IN_TEMPLATE: Final = "this annotation in pod templates, which TrainingJobs and SampleSets do not have"
_KEY: Final = "a name of 63 characters or fewer, which a DNS prefix and a slash may precede"
FLAGS: Final = ("true", "false")
# Ten years: longer than any job, and short enough to be added to any date.
_MAX_SECONDS: Final = 10 * 366 * 86_400


class ClientDeadlines(TypedDict):
    """The durations of a plan that clients may set, in seconds."""

    active_deadline: int | None
    pending_deadline: int | None
    start_deadline: int | None
    ttl_after_finished: int | None


def read_envelope(manifest: Manifest, problems: Problems) -> Manifest:
    """Return the manifest without spec, status and the fields that a cluster writes.

    Every error of these is reported.
    """
    for name in manifest:
        if name not in _TOP:
            add_unknown_field(problems, pointer_to("", name), name, _TOP)
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        problems.add("/metadata", "Required", "metadata must be an object with a name", "an object")
        metadata = {}
    for name in metadata:
        if name not in _KEPT and name not in _CLUSTERS_OWN:
            add_unknown_field(problems, pointer_to("/metadata", name), name, _KEPT)
    # Views of objects without labels or annotations have empty ones, and a client can put a view back.
    kept = {name: metadata[name] for name in _KEPT if metadata.get(name) not in (None, {})}
    _check_name(kept, problems)
    _check_labels(kept, problems)
    _check_annotations(kept, problems)
    return {"apiVersion": manifest.get("apiVersion"), "kind": manifest.get("kind"), "metadata": kept}


def postable(manifest: Manifest) -> Manifest:
    """Return an accepted manifest in the form in which a client could have posted it."""
    return {name: value for name, value in manifest.items() if name != ASSIGNED}


def usable_name(manifest: Manifest) -> str:
    """Return the name of the manifest; empty if it is missing or not valid."""
    name = manifest["metadata"].get("name")
    return name if isinstance(name, str) and _name_problem(name) is None else ""


def client_seconds(annotations: Mapping[str, str], key: str) -> int | None:
    """Return the seconds that an annotation of an accepted manifest states, or None if it has no such annotation."""
    return int(annotations[key]) if key in annotations else None


def listed_controls(text: str) -> frozenset[str]:
    """Return the names of a comma-separated list."""
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def allowed_controls(manifest: Manifest) -> frozenset[str]:
    """Return the controls of the pod policy from which an accepted manifest's annotation exempts its pods."""
    return listed_controls((manifest["metadata"].get("annotations") or {}).get(labels.POD_POLICY_ALLOW, ""))


def is_pinned(manifest: Manifest) -> bool:
    """Return whether an annotation of an accepted manifest keeps the record of the job for ever."""
    return (manifest["metadata"].get("annotations") or {}).get(labels.KEEP) == "true"


def client_deadlines(manifest: Manifest) -> ClientDeadlines:
    """Return the durations that an accepted manifest's annotations set."""
    annotations = manifest["metadata"].get("annotations") or {}
    return {
        "active_deadline": client_seconds(annotations, labels.ACTIVE_DEADLINE_SECONDS),
        "pending_deadline": client_seconds(annotations, labels.PENDING_DEADLINE_SECONDS),
        "start_deadline": client_seconds(annotations, labels.START_DEADLINE_SECONDS),
        "ttl_after_finished": client_seconds(annotations, labels.TTL_SECONDS_AFTER_FINISHED),
    }


def _check_name(metadata: Manifest, problems: Problems) -> None:
    """Check the name for its uses in every kind: as the value of a label and as the beginning of other names."""
    name = metadata.get("name")
    if name is None:
        problems.add("/metadata/name", "Required", "the manifest needs a name", "a lowercase RFC 1123 name")
    elif not isinstance(name, str):
        add_wrong_type(problems, "/metadata/name", "InvalidType", "a string", name)
    elif wrong := _name_problem(name):
        accepted = "lower-case letters, digits, - and .; 63 characters or fewer"
        problems.add("/metadata/name", "InvalidName", wrong, accepted)
    namespace = metadata.get("namespace")
    if namespace is not None and not isinstance(namespace, str):
        add_wrong_type(problems, "/metadata/namespace", "InvalidType", "a string", namespace)
    elif namespace is not None and (wrong := names.dns_label(namespace)):
        problems.add("/metadata/namespace", "InvalidName", wrong, "an RFC 1123 label")


def _name_problem(name: str) -> str | None:
    return names.dns_subdomain(name) or names.label_value(name)


def _check_labels(metadata: Manifest, problems: Problems) -> None:
    for key, value in _texts(metadata, "labels", problems):
        at = pointer_to("/metadata/labels", key)
        if wrong := names.label_key(key):
            problems.add(at, "InvalidLabel", f"the key: {wrong}", _KEY)
        elif key.startswith(labels.PREFIX):
            problems.add(at, "Reserved", f"labels with the prefix {labels.PREFIX} are jobgate's own", "another prefix")
        if wrong := names.label_value(value):
            problems.add(at, "InvalidLabel", wrong, "letters, digits, -, _ and .; 63 characters or fewer")


def _check_annotations(metadata: Manifest, problems: Problems) -> None:
    size = 0
    for key, value in _texts(metadata, "annotations", problems):
        at = pointer_to("/metadata/annotations", key)
        size += len(key.encode()) + len(value.encode())
        if wrong := names.annotation_key(key):
            problems.add(at, "InvalidAnnotation", f"the key: {wrong}", _KEY)
        elif key.startswith(labels.PREFIX) and key not in labels.CLIENT_ANNOTATIONS:
            known = sorted(labels.CLIENT_ANNOTATIONS)
            add_unknown_field(problems, at, key, known)
        elif key.startswith(TOPOLOGY_PREFIX):
            # Of the whole job, it would have no effect.
            problems.add(at, "NotSupported", "each pod template requests its own topology", _IN_TEMPLATE)
        elif key in labels.CLIENT_FLAGS and value not in FLAGS:
            problems.add(at, "InvalidAnnotation", f'"{shorten(value)}" is neither', " or ".join(FLAGS))
        elif key == labels.POD_POLICY_ALLOW and (unknown := sorted(listed_controls(value) - NAMES)):
            accepted = "comma-separated names of controls: " + ", ".join(sorted(NAMES))
            problems.add(at, "InvalidAnnotation", f"there is no control {shorten(unknown[0])}", accepted)
        elif key in labels.CLIENT_DURATIONS and not _is_seconds(value):
            problems.add(
                at, "InvalidAnnotation", f'"{shorten(value)}" is not a duration', f"0 to {_MAX_SECONDS} seconds"
            )
    if size > names.ANNOTATIONS_MAX_BYTES:
        accepted = f"{names.ANNOTATIONS_MAX_BYTES} bytes or fewer in all"
        problems.add("/metadata/annotations", "TooLong", f"the annotations have {size} bytes", accepted)


def _texts(metadata: Manifest, field: str, problems: Problems) -> Iterator[tuple[str, str]]:
    """Yield the entries of labels or annotations. Values that are not strings are reported."""
    entries = metadata.get(field, {})
    if not isinstance(entries, dict):
        problems.add(pointer_to("/metadata", field), "InvalidType", "must be an object", "an object of strings")
        return
    for key, value in entries.items():
        if isinstance(value, str):
            yield key, value
        else:
            add_wrong_type(problems, pointer_to("/metadata", field, key), "InvalidType", "a string", value)


def _is_seconds(text: str) -> bool:
    # The length is checked before int(), which raises ValueError for a text of more than 4300 digits.
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= _MAX_SECONDS
